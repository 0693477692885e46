"""Checkpoints of native runs: states stored as what changed since the parent, and read from inert data alone.

The body of a STEP of a native run is a *record*, a map. These entries are for this module, others are the adapter's:

    "channels": {name: change, …}   what is another than in the parent's state
    "gone": [name, …]               what the parent had and this one has not; left out if there is none
    "whole": true                   `channels` is all of the state, and the parent need not be read

and a change is one of

    {"value": value}                                 the channel's value
    {"keep": n, "items": [item, …]}                  a list: the first n items of the parent's value, then these

Of a workflow, whose state is nothing but what it was answered, a record says instead

    "channels": {}, "whole": true
    "jobs": [text, …]               what came, in a few words each
    "commands": [text, …]           what the code asked for then
    "clock": n                      its own clock, in ns since the epoch; left out where that is not known
    "failed": [{"failure": encoded exception, "times": n}, …]     how it failed before it got there, if it did
    "rejected": [text, …]           what it would not take

Of an action, as on the page of a browser, a record says

    "channels": {}, "whole": true
    "action": {"api": text, "arguments": {name: value}, "result": value}  or "error": {"name", "message"} in its place;
                                    "source": the line of the user's code, "frame": where on the page; if there are any
    "url", "dom", "storage": [before, after]      addresses, and digests of the page's state, "" where there are none
    "settled": false                the page was not at rest when the digest behind it was taken
    "seconds": n                    that it took

Of what somebody in a team of agents said, the state has it in the channel "messages", beside "selected" and "stop" (who
was chosen to speak, and why the team stopped), and the record says

    "was": [{"id", "created_at"}, …]     of each message, and of what its speaker did on the way: as they really were
    "consistent": false                  the state is not one that the team could be given again

What people look at beside its state (a picture, a text) are WRITES events of the STEP: what="attachment", name: which,
body: {"content": text or bytes}. They are no part of any digest.

The parent is the STEP at position `of`; of one without a parent (0) the record is whole. A whole record now and then
bounds how far a reader walks: what it repeats is mostly shared with what the stream has already. Values are plain data
(`{"$": …}` says what was something else), so nothing here needs the framework or its adapter.

    record = {"channels": delta(before, after), **others}
    states = States(reader)
    states.at(pos)                  # {name: value} of the STEP at a position
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from lockstep.errors import Code, StoreError
from lockstep.log.model import Event, Kind, Value
from lockstep.log.store import RunReader

CHANNELS, GONE, WHOLE = "channels", "gone", "whole"
VALUE, KEEP, ITEMS = "value", "keep", "items"
JOBS, COMMANDS, CLOCK, FAILED, REJECTED = "jobs", "commands", "clock", "failed", "rejected"
ACTION, CONTENT = "action", "content"
WAS = "was"

type State = dict[str, Value]

_ABSENT: Any = object()
_REMEMBERED = 8  # states that a reader keeps: neighbours are asked for together


class Change(msgspec.Struct, frozen=True):
    """What became of a channel from one state to the next.

    before, after  None where `was` or `there` says that it had no value
    kept           of lists: how many items at the beginning are the same; -1 of anything else
    """

    name: str
    was: bool
    there: bool
    before: Value
    after: Value
    kept: int = -1


def record(before: Mapping[str, Value] | None, after: Mapping[str, Value]) -> dict[str, Value]:
    """The entries of a record that say a state, against the parent's; whole where that is None."""
    if before is None:
        return {CHANNELS: {name: {VALUE: value} for name, value in after.items()}, WHOLE: True}
    changed: dict[str, Value] = {}
    for name, value in after.items():
        old = before.get(name, _ABSENT)
        if old is _ABSENT or not _same(old, value):
            changed[name] = change(old, value)
    made: dict[str, Value] = {CHANNELS: changed}
    gone: list[Value] = [name for name in before if name not in after]
    if gone:
        made[GONE] = gone
    return made


def change(before: Value, after: Value) -> dict[str, Value]:
    """How one channel's new value is said, by the old one."""
    if type(before) is list and type(after) is list and (keep := kept(before, after)):
        return {KEEP: keep, ITEMS: after[keep:]}
    return {VALUE: after}


def kept(before: Sequence[Value], after: Sequence[Value]) -> int:
    """How many items at the beginning are the same in both."""
    count = 0
    for old, new in zip(before, after, strict=False):
        if not _same(old, new):
            break
        count += 1
    return count


def is_whole(body: Value) -> bool:
    """Whether a record says all of its state by itself."""
    return isinstance(body, dict) and body.get(WHOLE) is True


def are_commanded(reader: RunReader) -> bool:
    """Whether a native run is a workflow's, whose records say what was commanded, and no state: by its first one."""
    for seq, event in reader.heads(reader.main):
        if event.kind is Kind.STEP:
            return isinstance(reader.field(reader.main, seq, COMMANDS), list)
    return False


def apply(state: State, body: Value) -> None:
    """Makes the parent's state this record's. Lists in it are replaced and not changed. Raises StoreError LS202."""
    if not isinstance(body, dict) or not isinstance(changes := body.get(CHANNELS, {}), dict):
        raise _odd("it is no map of channels")
    if body.get(WHOLE) is True:
        state.clear()
    for name, said in changes.items():
        state[name] = changed(state.get(name), said)
    gone = body.get(GONE)
    for absent in gone if isinstance(gone, list) else ():
        state.pop(str(absent), None)


def changed(before: Value, said: Value) -> Value:
    """A channel's value, by its value in the parent and what the record says. Raises StoreError LS202."""
    match said:
        case {"value": value}:
            return value
        case {"keep": int(keep), "items": list(items)}:
            if not isinstance(before, list) or not 0 <= keep <= len(before):
                raise _odd(f"it keeps {keep} items of what has fewer")
            return before[:keep] + items
    raise _odd("it says a change in no known way")


class States:
    """The states at checkpoints, read when they are asked for. For one thread."""

    def __init__(self, reader: RunReader, stream: int = 0) -> None:
        """Those of a branch of a native run; with `stream`, those that a session has in the stream of that number."""
        self._reader = reader
        self._stream = stream or reader.main
        self._known: OrderedDict[int, State] = OrderedDict()
        self._steps: dict[int, tuple[int, Event]] = {}  # by position, as far as read

    def step(self, pos: int) -> Event:
        """The STEP at a position, without its body. Raises StoreError LS202 where there is none."""
        return self._find(pos)[1]

    def seq(self, pos: int) -> int:
        """The number of the STEP at a position. Raises as `step`."""
        return self._find(pos)[0]

    def _find(self, pos: int) -> tuple[int, Event]:
        if pos not in self._steps:
            # All at once: a walk over parents asks for one after the other, and a row of the store holds hundreds.
            heads = self._reader.heads(self._stream)
            self._steps = {event.pos: (seq, event) for seq, event in heads if event.kind is Kind.STEP}
        found = self._steps.get(pos)
        if found is None:
            raise _odd(f"there is no checkpoint at position {pos}")
        return found

    def body(self, pos: int) -> Value:
        """The record at a position: a fresh value."""
        return self._reader.body(self._stream, self.seq(pos))

    def at(self, pos: int) -> State:
        """All channels of the state at a position; {} for 0, which is before the first. The map is the caller's, what
        is in it is shared. Raises StoreError LS202."""
        walked: list[Value] = []
        state: State = {}
        at = pos
        while at:
            if at in self._known:
                state = dict(self._known[at])
                break
            event = self.step(at)
            body = self.body(at)
            walked.append(body)
            if is_whole(body):
                break
            if not 0 <= event.of < at:
                raise _odd(f"the parent of the checkpoint at position {at} comes after it")
            at = event.of
        for body in reversed(walked):
            apply(state, body)
        if pos:
            self._known[pos] = dict(state)
            while len(self._known) > _REMEMBERED:
                self._known.popitem(last=False)
        return state

    def changes(self, pos: int) -> tuple[Change, ...]:
        """What a checkpoint changed, by name. Raises StoreError LS202."""
        event = self.step(pos)
        before, after = self.at(event.of), self.at(pos)
        found = []
        for name in sorted(before.keys() | after.keys()):
            old, new = before.get(name, _ABSENT), after.get(name, _ABSENT)
            if old is not _ABSENT and new is not _ABSENT and _same(old, new):
                continue
            lists = type(old) is list and type(new) is list
            found.append(
                Change(
                    name, old is not _ABSENT, new is not _ABSENT, None if old is _ABSENT else old,
                    None if new is _ABSENT else new, kept(old, new) if lists else -1,
                )
            )  # fmt: skip
        return tuple(found)


def _same(one: Any, other: Any) -> bool:
    """Whether two values are the same, where 1, 1.0 and true are not, and nan is itself."""
    if one is other:
        return True
    kind = type(one)
    if kind is not type(other):
        return False
    if kind is dict:
        return list(one) == list(other) and all(_same(value, other[name]) for name, value in one.items())
    if kind is list:
        return len(one) == len(other) and all(map(_same, one, other))
    if kind is float:
        return repr(one) == repr(other)  # -0.0 is not 0.0
    equal: bool = one == other
    return equal


def _odd(what: str) -> StoreError:
    return StoreError(Code.DAMAGED, f"a stored checkpoint makes no sense: {what}")
