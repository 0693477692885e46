"""How a run or a branch of it ended and what it did, as a predicate is shown it: read from the store, nothing runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import msgspec

from lockstep.debugger import calls, checkpointed, cuts, ending, outcomes, spoken
from lockstep.debugger.calls import Call
from lockstep.errors import Divergence
from lockstep.log import address as addresses
from lockstep.log import checkpoints
from lockstep.log.address import MAIN, Address
from lockstep.log.model import Kind, RunState, Status, Value
from lockstep.log.store import RunReader, open_store
from lockstep.log.timeline import END, Timeline, find

DIVERGED = "diverged"

# Of a run that a framework keeps itself, what its last turn ended with, where that was no failure of its own.
_STOPPED = {
    f"{Divergence.__module__}.{Divergence.__name__}": DIVERGED,
    "builtins.KeyboardInterrupt": RunState.INTERRUPTED.value,
    "builtins.SystemExit": RunState.INTERRUPTED.value,
}


type Plain = Callable[[Value], Value]


class Raised(msgspec.Struct, frozen=True):
    """The exception that a program ended with: its class, as `module.Name`, and the function that raised it."""

    type: str
    message: str
    function: str

    def __str__(self) -> str:
        name = self.type.removeprefix("builtins.")
        return f"{name}: {self.message}" if self.message else name


class View(msgspec.Struct, frozen=True):
    """A run, or a branch of it.

    address  as in `refund` or `refund@bisect-7-1f3c9a2b`
    state    complete, failed, refused (a call was not allowed), diverged (the served part was not the recorded one),
             interrupted or growing
    exit     the command's status, -N for signal N; None where there was no command, or nobody saw its end
    error    what it raised at its end, None if nothing
    result   what the target, the recorded function, the workflow, the team or the crew returned, None where that is
             not known; of another run that a framework keeps itself, its last state, by channel
    plain    makes of a value that is stored in another form what the program had; None where there is none
    """

    address: str
    store: str
    state: str
    exit: int | None
    error: Raised | None
    result: Any = None
    plain: Plain | None = None

    @property
    def branch(self) -> str:
        return addresses.parse(self.address).branch

    @property
    def stdout(self) -> str:
        """All that the program printed."""
        with self._read() as timeline:
            stream = timeline.stream.id
            pieces = [
                timeline.reader.body(stream, seq)
                for seq, event in timeline.reader.heads(stream)
                if event.kind is Kind.OUTPUT and event.what == "stdout" and not event.of
            ]
        return "".join(one.decode("utf-8", "replace") if isinstance(one, bytes) else str(one) for one in pieces)

    @property
    def calls(self) -> tuple[Call, ...]:
        """Its calls to the outside in the order in which they were answered: kind, name, request, outcome, …"""
        with self._read() as timeline:
            found = [effect for step in timeline.steps for effect in step.effects]
            found.sort(key=lambda effect: (effect.end is None, effect.end_seq))
            read = tuple(calls.read(timeline, effect) for effect in found)
        plain = self.plain
        if plain is None:
            return read

        def told(value: Any) -> Any:
            return outcomes.to_json(plain(outcomes.from_json(value)))

        return tuple(
            msgspec.structs.replace(call, request=told(call.request), outcome=told(call.outcome)) for call in read
        )

    @contextmanager
    def _read(self) -> Iterator[Timeline]:
        place = addresses.parse(self.address)
        with open_store(self.store) as opened:
            run, _ = find(opened, place)
            yield Timeline(opened.run(run, place.branch))


def view(reader: RunReader, path: str, store: str, branch: str = MAIN, plain: Plain | None = None) -> View:
    """Reads one. `path`: the run's name, as it stands in an address; `plain`: see `View`."""
    timeline = Timeline(reader)
    if timeline.is_native:
        return _kept(timeline, path, store, branch, plain)
    last = timeline.steps[-1]
    event = next(reader.heads(last.stream, last.seq, last.seq + 1), None) if last.seq >= 0 else None
    body = reader.body(last.stream, last.seq) if event is not None else None
    said: Any = body.get("end") if isinstance(body, dict) else None
    end: dict[str, Any] = said if isinstance(said, dict) else {}
    status = ending.read(reader)
    state = ending.state(reader.info, status)
    diverged = event is not None and event[1].what == DIVERGED
    own = end.get("exit")
    return View(
        address=str(Address(path, branch)),
        store=store,
        state=DIVERGED if diverged else state.value,
        exit=status if status is not None else own if isinstance(own, int) else None,
        error=_raised(end.get("error")),
        result=end.get("result"),
    )


def _kept(timeline: Timeline, path: str, store: str, branch: str, plain: Plain | None) -> View:
    """A run that a framework keeps itself: it ended as its last turn did, and its result is the state that it left, as
    `show` prints it."""
    turn = timeline.turns[-1] if timeline.turns else None
    error = None
    if turn is not None and turn.end is not None and turn.end.what == Status.ERROR:
        body = timeline.reader.body(timeline.stream.id, turn.end_seq)
        form: dict[str, Any] = body if isinstance(body, dict) else {}
        # The framework's own code lies between: what tells one failure from another is the node, or the call, that it
        # came from.
        if checkpoints.are_commanded(timeline.reader):
            form = calls.causes(body)[-1] if form else {}
            failed = [one.name for one in timeline.steps[turn.last].effects if one.status is Status.ERROR]
        else:
            failed = [task.node for task in checkpointed.pending(timeline) if task.error]
        name = f"{form.get('module') or 'builtins'}.{form.get('name') or 'Exception'}"
        error = Raised(name, calls.exception(form).partition(": ")[2], failed[-1] if failed else "")
    state = _STOPPED.get(error.type, timeline.state.value) if error is not None else timeline.state.value
    return View(
        address=str(Address(path, branch)),
        store=store,
        state=state,
        exit=None,
        error=error,
        result=_result(timeline, plain),
        plain=plain,
    )


def _result(timeline: Timeline, plain: Plain | None) -> Any:
    """The state that the last step left; where steps leave none that is known whole (a workflow, a browser), where they
    say what was said in a team, and where they are those of strands (a crew), what the last turn returned."""
    if not (checkpoints.are_commanded(timeline.reader) or cuts.are_strands(timeline)):
        last = [step for step in timeline.steps if step.kind != END and "/" not in step.lane]
        if not last or not spoken.is_said(timeline, last[-1]):
            channels = checkpointed.state(timeline, last[-1]).channels if last else None
            if channels:
                return channels
    end = timeline.turns[-1].end if timeline.turns else None
    if end is None or end.what != Status.OK:
        return None
    stored = timeline.reader.body(timeline.stream.id, timeline.turns[-1].end_seq)
    return outcomes.to_json(stored if plain is None else plain(stored))


def ended_by_itself(seen: View) -> bool:
    """Whether the program came to an end of its own: no error of ours and no signal ended it."""
    return seen.state in (RunState.COMPLETE, RunState.FAILED) and (seen.exit is None or seen.exit >= 0)


def _raised(error: Any) -> Raised | None:
    if not isinstance(error, dict):
        return None
    return Raised(*(str(error.get(name) or "") for name in ("type", "message", "function")))
