"""The check of one stream of a run: its chain, counts, order, references, end and seal.

Everything is recomputed from what is stored and compared with every stored total, so that a change is found wherever
it was made, and named with its place.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from lockstep.errors import StoreError
from lockstep.log import chain, roll, seal
from lockstep.log.model import Event, Kind, RunState, StreamInfo
from lockstep.log.pack import encode_plain
from lockstep.log.steps import TURN, StepCount, rest
from lockstep.log.store import UNSTORABLE, Row, RunReader, StreamEnd, Unreadable
from lockstep.log.unpack import Coder


class Problem(msgspec.Struct, frozen=True):
    """One thing that is not as it was recorded.

    process  the stream's process, "" where the run or file as a whole is meant
    first    number (seq) of the first event concerned, last that of the last; -1 where none is
    step     the step in which the first of them belongs; -1 where that is not known
    """

    run: str
    process: str
    first: int
    last: int
    what: str
    step: int = -1

    def __str__(self) -> str:
        place = f"{self.run}:{self.step}" if self.step >= 0 else self.run
        if not self.process:
            return f"{place}: {self.what}"
        if self.first < 0:
            return f"{place}, process {self.process}: {self.what}"
        events = f"event {self.first}" if self.first >= self.last else f"events {self.first} to {self.last}"
        return f"{place}, process {self.process}, {events}: {self.what}"


# How the body of an event begins whose own could not be stored: a map with one key.
_UNSTORABLE = encode_plain({UNSTORABLE: ""})[:-1]


# What a native stream may be marked as, by how its last turn ended: a turn that was refused ended in an error.
_RESTS = {
    RunState.COMPLETE: (RunState.COMPLETE,),
    RunState.FAILED: (RunState.FAILED, RunState.REFUSED),
}


class StreamCheck:
    """The check of one stream.

    run      what its branch is called
    base     the head that its chain should begin with
    flying   of a branch's main stream: the calls that were in flight where it begins, see `StepCount`
    shares   whether it is of a branch that left another
    after    the position that its events come after, 0 for any
    roll     the streams that its last event may list
    native   whether it is of a native run: it may be at rest after any event, and be gone on with
    stop     of a stream that a branch shares: the number of the first event that it does not. What is behind the row
             with the last one is not looked at, nor is the end
    """

    def __init__(
        self, reader: RunReader, stream: StreamInfo, key: seal.Key | None, run: str, base: bytes,
        roll: Sequence[StreamInfo], flying: Iterable[int] = (), after: int = 0, *, shares: bool = False,
        native: bool = False, stop: int | None = None,
    ) -> None:  # fmt: skip
        self._reader = reader
        self._stream = stream
        self._key = key
        self._run = run
        self._base = base
        self._roll = roll
        self._after = after
        self._shares = shares
        self._stop = stop
        self._early = 0
        self._gaps = 0  # events of a native run that do not stand where their number says
        self._coder = Coder(_Blobs(reader, stream.id))
        self._count = StepCount(flying, native=native)
        self._native = native
        self._turns: set[int] = set()
        self._rest = RunState.COMPLETE  # as which the last turn that ended left it
        self._top = 0
        self._late = 0
        self._blobs = 0
        self._size = 0  # of the stream's rows so far
        self._unstorable = 0
        self._last: Event | None = None
        self.process = stream.process
        self.end: StreamEnd = reader.end(stream.id)
        self.head = self.end.base
        self.events = 0
        self._unknown = False  # a row could not be read: what depends on it cannot be judged
        self._sealed_head = self.head if self.end.seal is not None and not self.end.seal.events else b""

    @property
    def checked(self) -> int:
        """How many of its events count."""
        return self.events if self._stop is None else min(self.events, self._stop)

    def problems(self) -> Iterator[Problem]:
        if self._base != self.end.base:
            yield self._problem(-1, -1, self._changed())
        try:
            for row in self._reader.rows(self._stream.id):
                if self._stop is not None and row.first >= self._stop:
                    break
                if isinstance(row, Unreadable):
                    yield from self._unreadable(row)
                else:
                    yield from self._row(row)
        except StoreError as error:
            yield self._problem(self.events, self.events, f"this and the rest cannot be read: {error.message}")
        if self._stop is None:
            yield from self._ending()
            yield from self._seal()
        elif self.events < self._stop:
            yield self._problem(self.events, self._stop - 1, "missing: the stream was cut short")

    def _changed(self) -> str:
        if not self._shares:
            return "the run's header (start, meta or process name) was changed"
        return "what it shares, or the header (start, meta, process or branch name), is not what it was made from"

    def _unreadable(self, row: Unreadable) -> Iterator[Problem]:
        last = row.first + max(row.count, 1) - 1
        yield self._problem(row.first, last, f"cannot be read: {row.error.message}")
        if row.count and row.first == self.events:
            self.events = last + 1
        self._unknown = True

    def _row(self, row: Row) -> Iterator[Problem]:
        first, last = row.first, row.first + row.count - 1
        if first != self.events and not self._unknown:
            missing = "stored twice" if first < self.events else "missing"
            yield self._problem(min(first, self.events), max(first, self.events) - 1, missing)
        self.events = last + 1
        if len(row.events) != row.count or len(row.bodies) != row.count:
            yield self._problem(first, last, f"{len(row.events)} events and {len(row.bodies)} bodies are stored")
            self._resume(row)
            return
        if row.blob != self._blobs and not self._unknown:
            yield self._problem(first, last, f"shared values are numbered from {row.blob} and not {self._blobs}")
        self._blobs = row.blob + len(row.blobs)
        self._size += row.stored
        if row.size < self._size:
            yield self._problem(first, last, "the stored size is less than that of the rows")
        try:
            self._link(row)
        except StoreError as error:
            yield self._problem(first, last, error.message)
            self._resume(row)
            return
        if self.head != row.head and not self._unknown:
            yield self._problem(first, last, "content was changed, moved, added or dropped here or just before")
        elif self._early:
            yield self._problem(first, last, f"{self._early} of them stand before the place where the branch begins")
        elif self._gaps:
            yield self._problem(first, last, f"{self._gaps} of them have another position than their number says")
        elif (row.steps, row.late) != (self._count.steps, self._late) and not self._unknown:
            yield self._problem(first, last, "stored totals (steps, order) are not those of the events")
        self._resume(row)

    def _link(self, row: Row) -> None:
        head = self.head
        sealed = self.end.seal.events if self.end.seal is not None else -1
        for seq, (event, body) in enumerate(zip(row.events, row.bodies, strict=True), row.first):
            head = chain.link(head, seq, event, self._coder.code(body) if body else b"")
            if seq + 1 == sealed:
                self._sealed_head = head
            self._count.feed(event)
            if self._native:
                self._turn(event)
            self._unstorable += body.startswith(_UNSTORABLE)
            self._early += event.pos <= self._after
            self._gaps += self._native and event.pos != self._after + seq + 1
            if event.pos < self._top:
                self._late += 1
            self._top = max(self._top, event.pos)
        self.head = head

    def _turn(self, event: Event) -> None:
        if event.kind is Kind.BEGIN and event.what == TURN:
            self._turns.add(event.pos)
        elif event.kind is Kind.END and event.of in self._turns:
            self._turns.discard(event.of)
            self._rest = rest(str(event.what))

    def _resume(self, row: Row) -> None:
        """Goes on from what the row claims, so that one change is reported once and the next one is found too."""
        self.head = row.head
        self._last = row.events[-1] if row.events else None
        self._early = 0
        self._count.steps, self._late = row.steps, row.late
        self._unknown = False

    def _ending(self) -> Iterator[Problem]:
        finished = self._last is not None and self._last.kind is Kind.FINISH
        end = self.end
        if end.state is RunState.GROWING:
            if end.number:
                yield self._problem(-1, -1, f"the stored state {end.number} does not exist")
            return
        if end.events > self.events:
            yield self._problem(self.events, end.events - 1, "missing: the stream was cut short")
        elif (end.events, end.steps, end.head) != (self.events, self._count.steps, self.head):
            yield self._problem(-1, -1, "the stored end (events, steps, head) is not that of the events")
        elif self._native and end.state not in _RESTS[self._rest]:
            yield self._problem(-1, -1, f"the run is marked {end.state}, but its last turn ended otherwise")
        elif not self._native and (not finished or self._said() is not end.state):
            yield self._problem(-1, -1, f"the run is marked {end.state}, but its last event does not say so")
        else:
            yield from self._last_words()

    def _said(self) -> RunState | None:
        return RunState(str(self._last.what)) if self._last is not None else None

    def _last_words(self) -> Iterator[Problem]:
        """What the last event says of the whole, against what is stored."""
        try:
            body = self._reader.body(self._stream.id, self.events - 1)
            leaves = self._reader.leaves(self._stream.id)
        except StoreError as error:
            yield self._problem(self.events - 1, self.events - 1, error.message)
            return
        told = body if isinstance(body, dict) else {}
        if self.process == roll.LAUNCH and roll.STREAMS in told:
            for process, what in roll.missing(told[roll.STREAMS], self._reader, self._roll):
                yield Problem(self._run, process, -1, -1, what)
        faults = told.get("faults")
        if isinstance(faults, list) and self.end.faults != max(self._unstorable, len(faults)):
            yield self._problem(-1, -1, "the stored end (faults) is not that of the events")
        if self.end.size != self._size + leaves:
            yield self._problem(-1, -1, "the stored end (size) is not that of the rows")

    def _seal(self) -> Iterator[Problem]:
        made = self.end.seal
        if made is None:
            return
        if made.events > self.events:
            yield self._problem(self.events, made.events - 1, "missing: they were sealed")
        elif made.events < self.events:
            yield self._problem(made.events, self.events - 1, "not sealed: they were added later")
        elif self._key is not None and made.key == self._key.id and not self._holds(made, self._key):
            what = "is not what the owner of the key sealed: something was changed, and the chain made anew"
            yield self._problem(-1, -1, what)

    def _holds(self, made: seal.Seal, key: seal.Key) -> bool:
        return seal.holds(made, key, self.end.base, self.end.number, self.end.faults, self._sealed_head)

    def _problem(self, first: int, last: int, what: str) -> Problem:
        step = self._count.steps + (not self._native) if first >= 0 else -1
        return Problem(self._run, self._stream.process, first, last, what, step)


class _Blobs:
    """The blobs and leaves of one stream of a run."""

    def __init__(self, reader: RunReader, stream: int) -> None:
        self._reader = reader
        self._stream = stream

    def blob(self, number: int) -> bytes:
        return self._reader.blob(self._stream, number)

    def big(self, number: int) -> bytes:
        return self._reader.big(self._stream, number)
