"""What is told of a native run's steps: the state at each, what changed, what its tasks wrote, and in which turn.

Everything is read from inert data, by the form that `lockstep.log.checkpoints` describes: the framework and its
adapter are not needed, and nothing of either is loaded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from lockstep.debugger import calls, outcomes
from lockstep.debugger.channels import ERROR, INTERRUPT, RESUME, SENDS, START, is_users
from lockstep.log import checkpoints, native, threads
from lockstep.log.checkpoints import Change
from lockstep.log.model import Event, Kind, Status, Value
from lockstep.log.timeline import CHECKPOINT, END, STEP, Step, Timeline

LEFT = "left"


class TurnRow(msgspec.Struct, frozen=True):
    """One turn in a list. `status`: ok, error, closed or cancelled; left, where the branch left another one in the
    middle of it; "" while it is open, or was cut off. Times in ns. `steps`: numbers of its first and last, empty where
    it made none. Of a workflow's execution also its id, what it was given, why it began, and what it returned."""

    number: int
    name: str
    status: str
    began: int
    duration: int | None
    steps: tuple[int, ...]
    error: str = ""
    execution: str | UnsetType = UNSET
    cause: str | UnsetType = UNSET
    arguments: Any = UNSET
    result: Any = UNSET


class Task(msgspec.Struct, frozen=True):
    """What one task wrote. `writes`: channel and value, in order; `waits`: for what it asked a human; `error`: what it
    failed with; `sends`: the nodes that it sent something to."""

    node: str
    lane: str
    writes: tuple[tuple[str, Any], ...]
    waits: tuple[Any, ...] = ()
    answered: tuple[Any, ...] = ()
    error: str = ""
    sends: tuple[str, ...] = ()


class ChangeRow(msgspec.Struct, frozen=True, omit_defaults=True):
    """What became of a channel since the parent. `how`: added, removed, changed, or grown, of a list that only got
    items: then `items` are these, and else `before` and `after` say what it was and is."""

    channel: str
    how: str
    before: Any = None
    after: Any = None
    items: tuple[Any, ...] = ()


class Kept(msgspec.Struct, frozen=True):
    """What was noted with a step beside its state, and nothing goes on from: a checkpoint of the framework's own, say.
    `name`: what it is; `content`: what is known of it."""

    name: str
    content: Any


class State(msgspec.Struct, frozen=True):
    """A step's state.

    parent    number of the step whose state it came from, -1 for none
    source    what the framework calls its kind
    channels  those that the user declared, by name
    given     what a graph was given, at its first checkpoint
    tasks     what was written on the way to it; of an end, what is written on the last step
    turn      number of the turn that made it, 0 for none
    """

    parent: int
    source: str
    channels: dict[str, Any]
    changes: tuple[ChangeRow, ...]
    tasks: tuple[Task, ...]
    turn: int
    given: Any = None


def turns(timeline: Timeline) -> tuple[TurnRow, ...]:
    """The turns of a branch, in order."""
    return tuple(_turn(timeline, one) for one in timeline.turns)


def _turn(timeline: Timeline, turn: native.Turn) -> TurnRow:
    end = turn.end
    error = ""
    if end is not None and end.what == Status.ERROR:
        error = calls.exception(timeline.reader.body(timeline.stream.id, turn.end_seq))
    row = TurnRow(
        number=turn.number, name=turn.name, status=str(end.what) if end is not None else LEFT * turn.left,
        began=turn.begin.at, duration=end.at - turn.begin.at if end is not None else None,
        steps=(turn.first, turn.last) if turn.first >= 0 else (), error=error,
    )  # fmt: skip
    request = timeline.reader.field(timeline.stream.id, turn.seq, "request")
    if not isinstance(request, dict) or "run_id" not in request:
        return row
    returned = end is not None and end.what == Status.OK
    if error:
        causes = calls.causes(timeline.reader.body(timeline.stream.id, turn.end_seq))
        row = msgspec.structs.replace(row, error=calls.exception(causes[-1]))
    return msgspec.structs.replace(
        row, execution=str(request["run_id"]), cause=str(request.get("cause") or ""),
        arguments=outcomes.to_json(request.get("arguments")),
        result=outcomes.to_json(timeline.reader.body(timeline.stream.id, turn.end_seq)) if returned else UNSET,
    )  # fmt: skip


def turn_of(timeline: Timeline, step: Step) -> native.Turn | None:
    """The turn that made a step, or, of an end, the last one."""
    if step.kind == END:
        return timeline.turns[-1] if timeline.turns else None
    return next((turn for turn in timeline.turns if turn.first <= step.number <= turn.last), None)


def is_checkpoint(timeline: Timeline, step: Step) -> bool:
    """Whether a step is a framework's checkpoint, in a run of its own or in a session's, or the end behind these."""
    if timeline.is_native:
        return True
    if step.kind not in (CHECKPOINT, STEP) or not threads.native(_event(timeline, step)):
        return False
    return timeline.reader.field(step.stream, step.seq, checkpoints.CHANNELS) is not None


def source(timeline: Timeline, step: Step) -> str:
    """What the framework calls the sort of a checkpoint."""
    if timeline.is_native:
        return _event(timeline, step).what
    return str(timeline.reader.field(step.stream, step.seq, "source") or "")


def namespace(timeline: Timeline, step: Step) -> str:
    """Of what part of a thread a checkpoint is, as lanes have it; in a session's run with the thread."""
    lane = step.lane if step.kind != STEP else threads.native(_event(timeline, step))
    if timeline.is_native:
        return lane.partition("/")[2]
    return lane.removeprefix(timeline.native.lane).lstrip("/") if timeline.native is not None else lane


def _event(timeline: Timeline, step: Step) -> Event:
    """The event that closed a step."""
    return next(iter(timeline.reader.heads(step.stream, step.seq, step.seq + 1)))[1]


def asked(timeline: Timeline, turn: native.Turn) -> Value:
    """What a turn was given."""
    request = timeline.reader.field(timeline.stream.id, turn.seq, "request")
    return request.get("input") if isinstance(request, dict) else None


def said(timeline: Timeline, step: Step) -> list[tuple[str, bool, Value]]:
    """What a step's own record says of the user's channels: name, whether the value is what a list got, and value.
    Reads no other record."""
    record = timeline.reader.body(step.stream, step.seq)
    changed = record.get(checkpoints.CHANNELS) if isinstance(record, dict) else None
    found: list[tuple[str, bool, Value]] = []
    for name, change in changed.items() if isinstance(changed, dict) else ():
        if isinstance(change, dict) and (is_users(name) or name == START):
            grown = checkpoints.ITEMS in change
            found.append((name, grown, change.get(checkpoints.ITEMS if grown else checkpoints.VALUE)))
    # What a graph was given is what its first checkpoint holds.
    return [one for one in found if one[0] != START] or found


def state(timeline: Timeline, step: Step) -> State:
    """The state at a step. Raises StoreError LS202."""
    turn = turn_of(timeline, step)
    number = turn.number if turn is not None else 0
    if step.kind == END:
        # What is written on a subgraph's checkpoint is on the way to the graph's own next one.
        outer = [one.number for one in timeline.steps if one.kind != END and "/" not in one.lane]
        return State(outer[-1] if outer else -1, "", {}, (), tuple(pending(timeline)), number)
    states = checkpoints.States(timeline.reader, step.stream)
    event = _event(timeline, step)
    above = states.seq(event.of) if event.of else -1
    parent = next((one.number for one in timeline.steps if one.seq == above and above >= 0), -1)
    whole = states.at(event.pos)
    channels = {name: outcomes.to_json(value) for name, value in whole.items() if is_users(name)}
    changes = tuple(_change(one) for one in states.changes(event.pos) if is_users(one.name))
    tasks = tuple(_tasks(timeline, event.of)) if event.of and timeline.is_native else ()
    return State(parent, source(timeline, step), channels, changes, tasks, number, outcomes.to_json(whole.get(START)))


def ran(timeline: Timeline, step: Step) -> tuple[native.Written, ...]:
    """What the tasks wrote that led to a step, in the order in which it was stored."""
    heads = list(timeline.reader.heads(timeline.stream.id))
    of = next(event.of for seq, event in heads if seq == step.seq)
    return tuple(one for one in native.writes(heads, of) if of and one.event.name not in ("", START))


def kept(timeline: Timeline, step: Step) -> tuple[Kept, ...]:
    """What was noted with a step."""
    return tuple(
        Kept(event.name, outcomes.to_json(timeline.reader.field(step.stream, seq, checkpoints.CONTENT)))
        for _, seq, event in _noted(timeline, [step])
    )


def kept_names(timeline: Timeline, steps: Sequence[Step]) -> dict[int, tuple[str, ...]]:
    """The names of what was noted with each of these steps, by their numbers. Reads none of it."""
    found: dict[int, tuple[str, ...]] = {}
    for number, _, event in _noted(timeline, steps):
        found[number] = (*found.get(number, ()), event.name)
    return found


def _noted(timeline: Timeline, steps: Sequence[Step]) -> Iterator[tuple[int, int, Event]]:
    """Of each note its step's number, its own place in the stream of that, and its event."""
    numbers = {(step.stream, step.seq): step.number for step in steps if step.seq >= 0}
    first: dict[int, int] = {}
    for stream, seq in numbers:
        first[stream] = min(first.get(stream, seq), seq)
    for stream, begin in first.items():
        at: dict[int, int] = {}
        for seq, event in timeline.reader.heads(stream, begin):
            if (stream, seq) in numbers:
                at[event.pos] = numbers[stream, seq]
            elif event.kind is Kind.WRITES and event.what == native.ATTACHMENT and event.of in at:
                yield at[event.of], seq, event


def _change(change: Change) -> ChangeRow:
    if not change.was:
        return ChangeRow(change.name, "added", after=outcomes.to_json(change.after))
    if not change.there:
        return ChangeRow(change.name, "removed", before=outcomes.to_json(change.before))
    before, after = change.before, change.after
    if isinstance(before, list) and isinstance(after, list) and change.kept == len(before):
        return ChangeRow(change.name, "grown", items=tuple(map(outcomes.to_json, after[change.kept :])))
    return ChangeRow(change.name, "changed", before=outcomes.to_json(before), after=outcomes.to_json(after))


def pending(timeline: Timeline) -> Iterator[Task]:
    """What tasks have written that no checkpoint holds yet, in all namespaces."""
    heads = list(timeline.reader.heads(timeline.stream.id))
    parents = {event.of for _, event in heads if event.kind is Kind.STEP}
    last = {event.lane: event.pos for _, event in heads if event.kind is Kind.STEP}
    newest = set(last.values()) - parents
    written = [(seq, one) for seq, one in heads if one.kind is Kind.WRITES and one.what != native.ATTACHMENT]
    yield from _read(timeline, [(seq, one) for seq, one in written if one.of in newest])


def _tasks(timeline: Timeline, pos: int) -> Iterator[Task]:
    """What the tasks on a checkpoint wrote, in the order of their paths."""
    heads = timeline.reader.heads(timeline.stream.id, pos)
    return _read(timeline, [(one.seq, one.event) for one in native.writes(heads, pos)])


def _read(timeline: Timeline, found: Sequence[tuple[int, Event]]) -> Iterator[Task]:
    by_task: dict[str, tuple[Event, str, dict[int, tuple[str, Value]]]] = {}
    for seq, event in found:
        body = timeline.reader.body(timeline.stream.id, seq)
        written = body.get("writes") if isinstance(body, dict) else None
        path = str(body.get("path") or "") if isinstance(body, dict) else ""
        _, _, writes = by_task.setdefault(event.what, (event, path, {}))
        for entry in written if isinstance(written, list) else ():
            match entry:
                case [int(index), str(channel), value]:
                    if index < 0 or index not in writes:  # special ones are replaced, others stay
                        writes[index] = channel, value
    for event, _, writes in sorted(by_task.values(), key=lambda one: (one[1], one[0].what)):
        yield _task(event, [writes[index] for index in sorted(writes)])


def _task(event: Event, writes: Sequence[tuple[str, Value]]) -> Task:
    def of(channel: str) -> list[Value]:
        return [value for name, value in writes if name == channel]

    errors = of(ERROR)
    return Task(
        node=event.name, lane=event.lane,
        writes=tuple((name, outcomes.to_json(value)) for name, value in writes if is_users(name)),
        waits=tuple(outcomes.to_json(value) for value in of(INTERRUPT)),
        answered=tuple(outcomes.to_json(value) for value in of(RESUME)),
        error=_error(errors[0]) if errors else "",
        sends=tuple(str(value.get("node")) for value in of(SENDS) if isinstance(value, dict)),
    )  # fmt: skip


def _error(value: Value) -> str:
    if isinstance(value, dict):
        inner = value.get("$value")
        return calls.exception(inner if isinstance(inner, dict) else value)
    return str(value)
