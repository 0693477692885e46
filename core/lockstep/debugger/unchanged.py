"""How far a probe of a native run was the recorded run, though nothing was served to it.

Past its cut a probe asks everything anew. As long as its states are the recorded ones all the same, what came was what
had come before: a probe that keeps these answers would be the same experiment, and need not be made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from lockstep.log import checkpoints
from lockstep.log.checkpoints import States
from lockstep.log.model import Event, Kind, Value
from lockstep.log.store import RunReader
from lockstep.log.timeline import END, Effect, Timeline

type Alike = Callable[[Value, Value], bool]


def upto(recorded: RunReader, probe: RunReader, step: int, alike: Alike | None = None) -> int:
    """The last step of the recorded run, `step` or a later one, up to which the probe's states are the recorded ones.

    step   the last one that the probe has from the record
    alike  whether two states say the same, where they are not equal; None: only equal ones do
    """
    if checkpoints.are_commanded(recorded):
        return _answered(recorded, probe, step)
    mine, theirs = _steps(recorded), _steps(probe)
    waiting: dict[str, list[Event]] = {}
    for event in theirs[_own(probe) :]:
        waiting.setdefault(event.lane, []).append(event)
    states = States(recorded), States(probe)
    for number, event in enumerate(mine[step + 1 :], step + 1):
        own = waiting.get(event.lane)
        if not own or not _same(event, own.pop(0), states, alike):
            return number - 1
    return len(mine) - 1


def again(recorded: RunReader, probe: RunReader, after: int, upto: int) -> bool:
    """Whether what the probe asked in its steps behind `after` up to `upto` was answered as it had been: a program may
    come to the same states by other answers."""
    return _answers(recorded, after, upto) == _answers(probe, after, upto)


def _answers(reader: RunReader, after: int, upto: int) -> list[Value]:
    return [
        [_came(reader, effect) for effect in step.effects]
        for step in Timeline(reader).steps if after < step.number <= upto
    ]  # fmt: skip


def _came(reader: RunReader, effect: Effect) -> Value:
    end = effect.end
    return None if end is None else [end.what, end.key or reader.body(effect.stream, effect.end_seq)]


def _answered(recorded: RunReader, probe: RunReader, step: int) -> int:
    """Of a workflow, whose state is what it was answered: the same answers and the same commands to each."""
    reached = step
    for one, other in zip(_told(recorded, step), _told(probe, step), strict=False):
        if one != other:
            break
        reached += 1
    return reached


def _told(reader: RunReader, after: int) -> Iterator[Value]:
    """What is the same in two runs that were answered and commanded the same, step by step."""
    keys: dict[int, bytes] = {}

    def seen(seq: int, event: Event) -> None:
        if event.kind is Kind.STEP:
            keys[seq] = event.key

    for step in Timeline(reader).walk(seen):
        if step.number > after and step.kind != END:
            # What came together is numbered as it was asked for.
            yield [step.kind, step.name, keys[step.seq], [_answer(reader, effect) for effect in step.effects]]


def _answer(reader: RunReader, effect: Effect) -> Value:
    begin, end = effect.begin, effect.end
    if end is None:
        return [begin.what, begin.name, begin.key]
    return [begin.what, begin.name, begin.key, end.what, end.key or reader.body(effect.stream, effect.end_seq)]


def _same(one: Event, other: Event, states: tuple[States, States], alike: Alike | None) -> bool:
    if (one.what, one.name) != (other.what, other.name):
        return False
    if one.key == other.key:
        return True
    return alike is not None and alike({**states[0].at(one.pos)}, {**states[1].at(other.pos)})


def _steps(reader: RunReader) -> Sequence[Event]:
    return [event for _, event in reader.heads(reader.main) if event.kind is Kind.STEP]


def _own(reader: RunReader) -> int:
    """How many of a branch's steps it shares with the one that it left."""
    return next((branch.before for branch in reader.branches if branch.name == reader.branch), 0)
