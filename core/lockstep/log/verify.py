"""Shows that a stored run is what was recorded: chain, counts, order, references and end of each stream.

Everything is recomputed from what is stored and compared with every stored total, so that a change is
found wherever it was made, and named with its place. An unkeyed chain shows consistency: who can write the
file and knows the format can make a new consistent one.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from lockstep.errors import StoreError
from lockstep.log import chain
from lockstep.log.model import Event, Kind, RunState, StreamInfo
from lockstep.log.steps import StepCount
from lockstep.log.store import Row, RunReader, StreamEnd
from lockstep.log.unpack import Coder


class Problem(msgspec.Struct, frozen=True):
    """One thing that is not as it was recorded.

    process  the stream's process, "" where the run or file as a whole is meant
    first    number (seq) of the first event concerned, last that of the last; -1 where none is
    """

    run: str
    process: str
    first: int
    last: int
    what: str

    def __str__(self) -> str:
        if not self.process:
            return f"{self.run}: {self.what}"
        if self.first < 0:
            return f"{self.run}, process {self.process}: {self.what}"
        events = f"event {self.first}" if self.first == self.last else f"events {self.first} to {self.last}"
        return f"{self.run}, process {self.process}, {events}: {self.what}"


class Verified(msgspec.Struct, frozen=True):
    """`consistent`: no problem. `open_end`: some stream has no end (interrupted or growing), so a missing tail
    would not show. `head`: of the first stream, hex; `events`: checked in all streams."""

    run: str
    consistent: bool
    open_end: bool
    events: int
    head: str
    problems: tuple[Problem, ...]


def verify(reader: RunReader) -> Verified:
    """Checks a run. Reads all of it once; damage is reported, not raised."""
    name = reader.info.name
    problems = [Problem(name, "", -1, -1, f"the store's file: {line}") for line in _file(reader)]
    checked = [_Check(reader, stream) for stream in reader.streams]
    for check in checked:
        problems += check.problems()
    return Verified(
        run=name,
        consistent=not problems,
        open_end=not checked or any(check.end.state is RunState.GROWING for check in checked),
        events=sum(check.events for check in checked),
        head=checked[0].head.hex() if checked else "",
        problems=tuple(problems),
    )


def _file(reader: RunReader) -> list[str]:
    try:
        return reader.check_file()
    except StoreError as error:
        return [error.message]


class _Check:
    """The check of one stream."""

    def __init__(self, reader: RunReader, stream: StreamInfo) -> None:
        self._reader = reader
        self._stream = stream
        self._coder = Coder(_Blobs(reader, stream.id))
        self._count = StepCount()
        self._top = 0
        self._late = 0
        self._blobs = 0
        self._last: Event | None = None
        self.end: StreamEnd = reader.end(stream.id)
        self.head = self.end.base
        self.events = 0

    def problems(self) -> Iterator[Problem]:
        started, meta = self._reader.header()
        if chain.base(started, meta, self._stream.process) != self.end.base:
            yield self._problem(-1, -1, "the run's header (start, meta or process name) was changed")
        try:
            for row in self._reader.rows(self._stream.id):
                if isinstance(row, StoreError):
                    yield self._problem(-1, -1, row.message)
                else:
                    yield from self._row(row)
        except StoreError as error:
            yield self._problem(self.events, self.events, f"the rest cannot be read: {error.message}")
        yield from self._ending()

    def _row(self, row: Row) -> Iterator[Problem]:
        first, last = row.first, row.first + row.count - 1
        if first != self.events:
            missing = "stored twice" if first < self.events else "missing"
            yield self._problem(min(first, self.events), max(first, self.events) - 1, missing)
        self.events = last + 1
        if len(row.events) != row.count or len(row.bodies) != row.count:
            yield self._problem(first, last, f"{len(row.events)} events and {len(row.bodies)} bodies are stored")
            self._resume(row)
            return
        if row.blob != self._blobs:
            yield self._problem(first, last, f"shared values are numbered from {row.blob} and not {self._blobs}")
        self._blobs = row.blob + len(row.blobs)
        try:
            self._link(row)
        except StoreError as error:
            yield self._problem(first, last, error.message)
            self._resume(row)
            return
        if self.head != row.head:
            yield self._problem(first, last, "content was changed, moved, added or dropped here or just before")
        elif (row.steps, row.late) != (self._count.steps, self._late):
            yield self._problem(first, last, "stored totals (steps, order) are not those of the events")
        self._resume(row)

    def _link(self, row: Row) -> None:
        head = self.head
        for seq, (event, body) in enumerate(zip(row.events, row.bodies, strict=True), row.first):
            head = chain.link(head, seq, event, self._coder.code(body) if body else b"")
            self._count.feed(event)
            if event.pos < self._top:
                self._late += 1
            self._top = max(self._top, event.pos)
        self.head = head

    def _resume(self, row: Row) -> None:
        """Goes on from what the row claims, so that one change is reported once and the next one is found too."""
        self.head = row.head
        self._last = row.events[-1] if row.events else None
        self._count.steps, self._late = row.steps, row.late

    def _ending(self) -> Iterator[Problem]:
        finished = self._last is not None and self._last.kind is Kind.FINISH
        end = self.end
        if end.state is RunState.GROWING:
            return
        if end.events > self.events:
            yield self._problem(self.events, end.events - 1, "missing: the stream was cut short")
        elif (end.events, end.steps, end.head) != (self.events, self._count.steps, self.head):
            yield self._problem(-1, -1, "the stored end (events, steps, head) is not that of the events")
        elif not finished or (self._last is not None and self._last.what != end.state.value):
            yield self._problem(-1, -1, f"the run is marked {end.state}, but its last event does not say so")

    def _problem(self, first: int, last: int, what: str) -> Problem:
        return Problem(self._reader.info.name, self._stream.process, first, last, what)


class _Blobs:
    """The blobs and leaves of one stream of a run."""

    def __init__(self, reader: RunReader, stream: int) -> None:
        self._reader = reader
        self._stream = stream

    def blob(self, number: int) -> bytes:
        return self._reader.blob(self._stream, number)

    def big(self, number: int) -> bytes:
        return self._reader.big(self._stream, number)
