"""Reading a branch: the events that it shares with its parent, then its own, as if they were one stream.

Nothing was copied: an event below the branch's base is read where its parent has it, or the parent's parent. Numbers
of events (seq) are the parent's up to there, and go on from the base; some of them may be left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property

import msgspec

from lockstep.log.cut import Hidden, unpack
from lockstep.log.model import BranchInfo, Event, Kind, RunInfo, StreamInfo, Value
from lockstep.log.store import Row, RunReader, StreamEnd, Unreadable

META = "meta"  # of a FORK event's body: what of the run's meta is another for the branch


class Part(msgspec.Struct, frozen=True):
    """What a branch has of one stream: of its own, or of the main stream of a branch that it comes from.

    stream        0 where nothing was written
    start, stop   numbers in the branch of its first event and of the one after its last; None: to its end
    before        steps closed before it
    cut           the last position that counts, None for all
    flying        the calls in flight there, packed
    """

    stream: int
    start: int
    before: int = 0
    stop: int | None = None
    cut: int | None = None
    flying: bytes = b""


class ForkedRun:
    """A branch that left another one. See `lockstep.log.store.RunReader`.

    stored  reads every stream of the run by its number, as it is stored
    parts   of its main stream, the oldest first
    main    the number under which that stands in `info.streams`
    """

    def __init__(self, stored: RunReader, info: RunInfo, main: int, parts: Sequence[Part]) -> None:
        self.stored = stored
        self.main = main
        self.on = stored.on
        self.info = info
        self.streams: tuple[StreamInfo, ...] = info.streams
        self._parts = tuple(parts)

    @property
    def branch(self) -> str:
        return self.info.branch

    @property
    def branches(self) -> tuple[BranchInfo, ...]:
        return self.info.branches

    @property
    def own(self) -> tuple[StreamInfo, ...]:
        return next(one.streams for one in self.info.branches if one.name == self.info.branch)

    @cached_property
    def fork(self) -> Event | None:
        return self._first(self._parts[-1])

    @property
    def meta(self) -> Value:
        told = self.stored.meta
        for part in self._parts[1:]:
            event = self._first(part)
            other = event.body.get(META) if event is not None and isinstance(event.body, dict) else None
            if isinstance(told, dict) and isinstance(other, dict):
                told = {**told, **other}
        return told

    def heads(self, stream: int, start: int = 0, stop: int | None = None) -> Iterator[tuple[int, Event]]:
        if stream != self.main:
            yield from self.stored.heads(stream, start, stop)
            return
        for seq, event in self._shared(start, stop):
            if event not in self._hidden:
                yield seq, event

    def events(self, stream: int, start: int = 0, stop: int | None = None) -> Iterator[Event]:
        for seq, head in self.heads(stream, start, stop):
            value = self.body(stream, seq)
            yield head if value is None else msgspec.structs.replace(head, body=value)

    def body(self, stream: int, seq: int) -> Value:
        return self._where(stream, seq, self.stored.body)

    def field(self, stream: int, seq: int, name: str) -> Value:
        return self._where(stream, seq, lambda stream, seq: self.stored.field(stream, seq, name))

    def rows(self, stream: int) -> Iterator[Row | Unreadable]:
        return self.stored.rows(stream)

    def end(self, stream: int) -> StreamEnd:
        return self.stored.end(stream)

    def blob(self, stream: int, number: int) -> bytes:
        return self.stored.blob(stream, number)

    def big(self, stream: int, number: int) -> bytes:
        return self.stored.big(stream, number)

    def leaves(self, stream: int) -> int:
        return self.stored.leaves(stream)

    def head(self, stream: int, count: int) -> bytes:
        return self.stored.head(stream, count)

    def find_step(self, stream: int, step: int) -> tuple[int, int] | None:
        if stream != self.main:
            return self.stored.find_step(stream, step)
        found = None
        for part in self._parts:
            if part.stream and self.stored.find_step(part.stream, 0) is None:
                return None
            if part.start and step <= part.before:
                continue  # closed before
            if part.stream:
                seq, closed = self.stored.find_step(part.stream, step - part.before) or (0, 0)
                found = part.start + seq, part.before + closed
        return found

    def header(self) -> tuple[int, bytes]:
        return self.stored.header()

    def check_file(self) -> list[str]:
        return self.stored.check_file()

    def _first(self, part: Part) -> Event | None:
        found = next(iter(self.stored.events(part.stream, 0, 1)), None) if part.stream else None
        return found if found is not None and found.kind is Kind.FORK else None

    def _where(self, stream: int, seq: int, read: Callable[[int, int], Value]) -> Value:
        if stream != self.main:
            return read(stream, seq)
        part = next(part for part in self._parts if part.stop is None or seq < part.stop)
        return read(part.stream or self.main, seq - part.start)

    def _shared(self, start: int, stop: int | None, count: int | None = None) -> Iterator[tuple[int, Event]]:
        """Events of the first `count` parts, with what is nested in calls in flight."""
        for part in self._parts[:count]:
            first = max(start, part.start)
            ends = [end for end in (stop, part.stop) if end is not None]
            last = min(ends) if ends else None
            if not part.stream or (last is not None and first >= last):
                continue
            cut = part.cut
            for seq, event in self.stored.heads(
                part.stream, first - part.start, last - part.start if last is not None else None
            ):
                if cut is None or event.pos <= cut:
                    yield seq + part.start, event

    @cached_property
    def _hidden(self) -> Hidden:
        hidden = Hidden()
        for count, part in enumerate(self._parts, 1):
            if part.flying:
                flying = unpack(part.flying)
                hidden.at(flying)
                for _, event in self._shared(min((one.seq for one in flying), default=0), part.stop, count):
                    hidden.learn(event)
        return hidden
