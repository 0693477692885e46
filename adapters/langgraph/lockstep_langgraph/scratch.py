"""State for a replay: a thread as it was before a turn, and what the turn puts, compared with what it put then.

Nothing of it reaches a store. A checkpoint that is put takes the place of the recorded one that it is equal to, so that
the next turn finds what it found.
"""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

import msgspec

from lockstep.errors import Code
from lockstep.log.model import Event, Kind, Value
from lockstep.session.native.record import Record, RecordedTurn
from lockstep_langgraph import compare, lanes
from lockstep_langgraph.entries import Entry, entry_of
from lockstep_langgraph.shelves import MAIN, Branch, MemoryShelf

type Told = Callable[..., None]  # code, reason, and more of a difference


class Made(msgspec.Struct, frozen=True):
    """A recorded checkpoint. `number`: its step's."""

    number: int
    seq: int
    event: Event


class Past(msgspec.Struct, frozen=True):
    """What one recorded turn left: its checkpoints in order, and the writes of its tasks."""

    turn: RecordedTurn
    steps: tuple[Made, ...]
    writes: tuple[tuple[int, Event], ...]

    @property
    def status(self) -> str:
        """How it ended, "" where that was not recorded."""
        return self.turn.end.what if self.turn.end is not None else ""


def past(record: Record, turn: RecordedTurn) -> Past:
    """A branch that left its parent in the middle of a turn has no end of that: its FORK is where it was cut.

    A graph that a tool runs is part of the tool's answer: where that is served, the graph does not run, so what it put
    is not waited for."""
    stop = turn.end.pos if turn.end is not None else turn.stop
    steps: list[Made] = []
    writes: list[tuple[int, Event]] = []
    open_calls: dict[int, str] = {}
    number = record.last_step(turn.pos)
    heads = record.heads
    for seq, event in islice(heads, bisect_right(heads, turn.pos, key=_position), None):
        if event.pos >= stop or event.kind is Kind.FORK:
            break
        if event.kind is Kind.STEP:
            number += 1
        if event.kind is Kind.BEGIN:
            open_calls[event.pos] = event.lane
        elif event.kind is Kind.END:
            open_calls.pop(event.of, None)
        elif event.kind is Kind.STEP and not any(lanes.runs(call, event.lane) for call in open_calls.values()):
            steps.append(Made(number, seq, event))
        elif event.kind is Kind.WRITES and not any(
            lanes.runs(call, lanes.checkpoints_of(event.lane)) for call in open_calls.values()
        ):
            writes.append((seq, event))
    return Past(turn, tuple(steps), tuple(writes))


def _position(head: tuple[int, Event]) -> int:
    return head[1].pos


class ReplayBook:
    """The log of the replayed thread, as its saver sees it."""

    start = 0
    faults: Sequence[str] = ()

    def __init__(self, record: Record, reveal: Callable[[Value], Value], opened: compare.Opened) -> None:
        self._record = record
        self._opened = opened
        self._reveal = reveal
        self._given = 0  # position up to which the saver has all
        self._bound = 0
        self._entries: dict[int, Entry] = {}
        self._spaces: dict[int, str] = {}
        self._turned: Turned | None = None

    def begin(self, turned: Turned) -> None:
        """A turn is about to run: the saver is given what had been stored before it."""
        self._turned = turned
        self._bound = turned.past.turn.pos

    def ended(self) -> None:
        """It has put all that it put then: the saver has that."""
        if self._turned is not None:
            steps = self._turned.past
            last = steps.turn.end.pos if steps.turn.end is not None else self._bound
            self._given, self._turned = last, None

    # What a saver asks (`lockstep_langgraph.shelves.Book`).

    def news(self) -> tuple[list[Branch], Iterator[tuple[str, Event]]] | None:
        since, until = self._given, self._bound
        if since >= until:
            return None
        self._given = until
        return [Branch(MAIN)], self._stored(since, until)

    def step(self, branch: str, lane: str, name: str, source: str, body: Any, key: bytes, of: int) -> int:
        turned = self._turned
        if turned is None:
            return self._bound
        made = turned.put(lane)
        if made is None:
            turned.beyond(lane, source)
            return sys.maxsize - turned.extra
        recorded = made.event
        if (recorded.what, recorded.key) != (source, key):
            found = self._difference(made, body, source)
            if found is not None:
                path, before, now = found
                turned.differs(
                    Code.STATE, "this checkpoint holds something else than when it was recorded", step=made.number,
                    lane=lane, kind="checkpoint", name=recorded.name, path=path, expected=before, actual=now,
                )  # fmt: skip
        turned.stored(made)
        return recorded.pos

    def writes(self, branch: str, lane: str, node: str, task: str, of: int, body: Any) -> int:
        if self._turned is not None:
            self._turned.wrote(lane, node, of, body["writes"])
        return of  # as much in the line as the checkpoint that it belongs to

    def fork(self, name: str, parent: str, pos: int, *, latest: bool = True) -> Branch:
        return Branch(name, parent, pos, latest)

    def journal(self, branch: str) -> Any:
        return None

    def busy(self, branch: str) -> bool:
        return False

    def reserve(self, branch: str) -> bool:
        return True

    def give_up(self, branch: str) -> None:
        """Nothing was kept."""

    def close(self) -> None:
        self._given = 0

    def _stored(self, since: int, until: int) -> Iterator[tuple[str, Event]]:
        heads = self._record.heads
        for seq, event in islice(heads, bisect_right(heads, since, key=_position), None):
            if event.pos >= until:
                return
            if event.kind in (Kind.STEP, Kind.WRITES):
                yield MAIN, msgspec.structs.replace(event, body=self._reveal(self._record.body(seq)))

    def _difference(self, made: Made, body: Any, source: str) -> compare.Found | None:
        if made.event.what != source:
            return "source", made.event.what, source
        parent = self._entry(made.event.of)
        now = entry_of(str(body.get("ns", "")), body, parent if "parent" not in body else None)
        return compare.states(self._entry_at(made), now, self._opened)

    def _entry(self, pos: int) -> Entry | None:
        """The recorded checkpoint at a position."""
        if pos in self._entries or not pos:
            return self._entries.get(pos)
        # A chain of parents may be longer than Python likes to recurse.
        found = {event.pos: Made(number, seq, event) for number, (seq, event) in enumerate(self._record.steps)}
        missing: list[Made] = []
        while pos and pos not in self._entries and pos in found:
            missing.append(found[pos])
            pos = found[pos].event.of
        for made in reversed(missing):
            self._entry_at(made)
        return self._entries.get(missing[0].event.pos) if missing else None

    def _entry_at(self, made: Made) -> Entry:
        pos = made.event.pos
        if pos not in self._entries:
            body: Any = self._reveal(self._record.body(made.seq))
            parent = self._entries.get(made.event.of) or self._entry(made.event.of)
            self._entries[pos] = entry_of(str(body.get("ns", "")), body, parent)
        return self._entries[pos]


class Turned:
    """One turn of a replay: what it has still to put, and what it has put.

    differs is told of a difference; reaching the end of what is recorded is none
    cut    it has come to the end of what is recorded of it
    extra  checkpoints that it put beyond that
    last   the last step that it has put, None where none yet
    """

    def __init__(self, past: Past, differs: Told, until: int | None = None) -> None:
        self.past = past
        self.cut = False
        self.extra = 0
        self.last: Made | None = None
        self.compared = 0
        self.differs = differs
        self._until = until
        self._due: dict[str, list[Made]] = {}
        self._named: dict[str, list[Made]] = {}
        for made in past.steps:
            self._due.setdefault(made.event.lane, []).append(made)
        self._named = {lane: list(steps) for lane, steps in self._due.items()}
        self._wrote: dict[tuple[str, int], dict[int, tuple[str, Value]]] = {}

    def named(self, namespace: str, keep: bool) -> Made | None:
        """The recorded checkpoint that is about to be made in a namespace, whose id it gets."""
        steps = self._named.get(lanes.of_namespace(namespace))
        if not steps:
            return None
        made = steps[0] if keep else steps.pop(0)
        if self._until is not None and made.number >= self._until:
            self.cut = True  # it is put while the loop goes on to its next step
        return made

    def put(self, lane: str) -> Made | None:
        """The recorded checkpoint for one that is put."""
        steps = self._due.get(lane)
        return steps.pop(0) if steps else None

    def stored(self, made: Made) -> None:
        self.last = made
        self.compared += 1

    def beyond(self, lane: str, source: str) -> None:
        """A checkpoint was put that the recording does not have."""
        self.extra += 1
        if self.cut or not self.past.status:
            self.cut = True
            return
        self.differs(
            Code.EXTRA, "the recorded turn put no further checkpoint", lane=lane, kind="checkpoint", name=source,
            actual=source,
        )  # fmt: skip

    def wrote(self, lane: str, node: str, of: int, writes: Sequence[Any]) -> None:
        into = self._wrote.setdefault((lane, of), {})
        for index, channel, value in writes:
            if index < 0 or index not in into:
                into[index] = (channel, value)

    def missing(self) -> Made | None:
        """The first recorded checkpoint that was not put."""
        return min((steps[0] for steps in self._due.values() if steps), key=lambda made: made.number, default=None)

    def written(self) -> dict[tuple[str, int], dict[int, tuple[str, Value]]]:
        """What its tasks wrote: by task's lane and position of the step that it works on, and then by number."""
        return self._wrote


def recorded_writes(
    record: Record, past: Past, reveal: Callable[[Value], Value]
) -> dict[tuple[str, int], dict[int, tuple[str, Value]]]:
    """The same as it was recorded."""
    found: dict[tuple[str, int], dict[int, tuple[str, Value]]] = {}
    for seq, event in past.writes:
        body: Any = reveal(record.body(seq))
        into = found.setdefault((event.lane, event.of), {})
        for index, channel, value in body["writes"]:
            if index < 0 or index not in into:
                into[index] = (channel, value)
    return found


class ReplayShelf(MemoryShelf):
    """The replayed thread, and empty ones for all others: a graph that a node runs on a thread of its own has none of
    what that thread had."""

    def __init__(self, thread: str, book: ReplayBook) -> None:
        super().__init__()
        self._thread = thread
        self._book = book
        self.others: set[str] = set()

    def open(self, thread: str, *, create: bool) -> Any:
        if thread == self._thread:
            return self._book
        self.others.add(thread)
        return super().open(thread, create=create)
