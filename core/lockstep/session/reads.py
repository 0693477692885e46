"""Reads: values that a lane got from a clock or the like, too many and too small for an event each.

    value = read(lane, "time.time", time.time_ns)

Recording takes the real value and keeps it in a buffer of the lane, one per source; the writer's next commit
turns it into a READS event, or the lane itself where the buffer is full. A replay hands
the recorded values out again in order. Sources are named as users know them (`time.time`,
`os.urandom`); what one source hands out never depends on another's.

Three kinds of source, all kept in `lane.taps` and counted there:

* read    stored and served; one more or one fewer than recorded is a divergence
* soft    stored and served, but free to differ in number (log lines, telemetry): never counted
* drawn   derived from the run's seed, not stored: only counted (`lockstep.taps.entropy`)

Values are integers of any size (a clock's are nanoseconds), so that they come back exactly.
"""

from __future__ import annotations

import _thread
import itertools
import operator
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from lockstep.log.model import Kind
from lockstep.session.lanes import Lane

SOFT = "soft "  # begins the name of a soft source; what follows is the exact source that it is close to

# Begins the name of a source whose values only say who comes first among several processes: past the end of an
# interrupted recording the program goes on without them, until it asks for something that came from outside.
ORDER = "multiprocessing."

FULL = 1024  # values in a buffer before its own strand makes an event of it: 3 KiB, 0.1 ms

# Little-endian two's complement, by width in bytes. Other widths are legal and slower.
_FORMATS = {1: "b", 2: "h", 4: "i", 8: "q"}
_FEW = 32  # values
_BIGGEST = 64  # bytes of one value: clocks take 8, a UUID 17


def pack(values: Sequence[int]) -> bytes:
    """Values as bytes: the first one, then the differences from each to the next.

    Byte 0 is the width of the first value, byte 1 that of a difference (the widest decides), both in
    bytes of little-endian two's complement. A tight loop's readings take 2 bytes each, others mostly
    4; compression comes later, in the store. Varints save a quarter of that and cost five times more.
    """
    if not values:
        return b"\0\0"
    first = values[0]
    head = _width(first, first)
    if head > _BIGGEST:
        raise ValueError(f"a read of more than {_BIGGEST} bytes")
    deltas = list(map(operator.sub, values[1:], values))
    width, rest = _pack_deltas(deltas) if deltas else (0, b"")
    return bytes((head, width)) + first.to_bytes(head, "little", signed=True) + rest


def _pack_deltas(deltas: list[int]) -> tuple[int, bytes]:
    # The narrowest that takes all: a value that is too big ends an attempt, so looking at many costs nothing.
    # A few are looked at, since each attempt that fails costs a microsecond, and the usual ones fail twice.
    narrow = 0 if len(deltas) > _FEW else _width(min(deltas), max(deltas))
    for width, form in _FORMATS.items():
        if width < narrow:
            continue
        try:
            return width, struct.pack(f"<{len(deltas)}{form}", *deltas)
        except struct.error:
            continue
    width = max(_width(min(deltas), max(deltas)), 9)
    if width > _BIGGEST:
        raise ValueError(f"reads that differ by more than {_BIGGEST} bytes")
    return width, b"".join(delta.to_bytes(width, "little", signed=True) for delta in deltas)


def unpack(packed: bytes) -> list[int]:
    """The values that `pack` was given. ValueError for bytes that it cannot have made."""
    if packed == b"\0\0":
        return []
    if len(packed) < 2:
        raise ValueError("packed reads end in their head")
    head, width = packed[0], packed[1]
    rest = packed[2 + head :]
    if not 0 < head <= _BIGGEST or width > _BIGGEST or len(packed) < 2 + head or (len(rest) % width if width else rest):
        raise ValueError("packed reads have an impossible width")
    first = int.from_bytes(packed[2 : 2 + head], "little", signed=True)
    form = _FORMATS.get(width)
    deltas: Sequence[int]
    if form is not None:
        deltas = struct.unpack(f"<{len(rest) // width}{form}", rest)
    else:
        deltas = [
            int.from_bytes(rest[at : at + width], "little", signed=True) for at in range(0, len(rest), width or 1)
        ]
    return list(itertools.accumulate(deltas, initial=first))


def _width(low: int, high: int) -> int:
    # x and ~x need the same room; one bit is the sign.
    bits = max((low if low >= 0 else ~low).bit_length(), (high if high >= 0 else ~high).bit_length()) + 1
    return (bits + 7) // 8


class Source(Protocol):
    """What `lane.taps` holds. `count`: how many values the lane was given, as far as it counts."""

    @property
    def count(self) -> int: ...


class Stream(Source, Protocol):
    """A source whose values are stored."""

    def next(self, real: Callable[[], int]) -> int: ...


# Recorded sources that may have values which are in no event yet. Keys only.
_dirty: dict[_Recorded, None] = {}

type Emit = Callable[..., None]  # as `Recording.emit`


# What the process was told once, and is in no event yet (`lockstep.session.firsts`).
waiting: dict[Any, None] = {}


class _Recorded:
    """Takes real values and keeps them until they are flushed, mostly by the writer's thread.

    Only the lane's own strand lets go of values, so that its count of them is exact whenever it looks.
    """

    __slots__ = ("_counted", "_first", "_lock", "_taken", "_values", "clean", "lane", "name")

    def __init__(self, lane: Lane, name: str, counted: bool) -> None:
        self.lane = lane
        self.name = name
        self.clean = True  # nothing but events holds its values, and `_dirty` does not have it
        self._counted = counted
        self._first = 0
        self._values: list[int] = []
        self._taken = 0  # of them, in events already
        self._lock = _thread.allocate_lock()

    @property
    def count(self) -> int:
        return self._first + len(self._values) if self._counted else 0

    @property
    def fresh(self) -> bool:
        """Whether it has values that are in no event yet."""
        return len(self._values) != self._taken

    def next(self, real: Callable[[], int]) -> int:
        value = real()
        values = self._values
        values.append(value)
        # Only now: who takes values looks once more after saying that it is clean.
        if self.clean:
            self.clean = False
            _dirty[self] = None
        if len(values) >= FULL:
            self._let_go()
        return value

    def flush(self, patience: float, emit: Emit | None = None) -> bool:
        """Makes an event of what is in none yet; False if there was nothing.

        Never waits longer than `patience` seconds: the holder of the lock may be this very thread (a
        finalizer that reads a clock while its thread flushes) or one that waits for it.
        """
        if len(self._values) == self._taken:
            return False
        if not self._lock.acquire(timeout=patience):
            return True
        try:
            self._emit(emit or self.lane.session.emit)
        except Exception as error:
            self.lane.session.fault(f"reads of {self.name}", error)
        finally:
            self._lock.release()
        return True

    def _let_go(self) -> None:
        if not self._lock.acquire(timeout=0.0):
            return  # the writer is taking some: another value will be the last of this buffer
        try:
            self._emit(self.lane.session.emit)
            if self._taken == len(self._values):  # a signal's handler may have read too
                self._first += self._taken
                self._values = []
                self._taken = 0
        except Exception as error:
            self.lane.session.fault(f"reads of {self.name}", error)
        finally:
            self._lock.release()

    def _emit(self, emit: Emit) -> None:
        # The strand may append meanwhile: what is taken is what was seen, nothing is lost.
        session = self.lane.session
        while taken := self._values[self._taken : self._taken + FULL]:
            first = self._first + self._taken
            self._taken += len(taken)
            body = {"first": first, "values": pack(taken)}
            emit(Kind.READS, self.lane.name, session.position(), what=self.name, body=body, hidden=True)

    def forget(self) -> None:
        self._first += self._taken
        self._values = []
        self._taken = 0


class _Served:
    """Hands recorded values out in order."""

    __slots__ = ("_chunks", "_counted", "_ended", "_given", "_left", "lane", "last", "name")

    def __init__(self, lane: Lane, name: str, counted: bool, chunks: Iterator[list[int]]) -> None:
        self.lane = lane
        self.name = name
        self.last: int | None = None
        self._counted = counted
        self._chunks = chunks
        self._ended: int | None = None  # how far the real clock was ahead when the recorded values ended
        self._given = 0  # values of the chunks before the one in hand
        self._left: list[int] = []  # of the chunk in hand, last first

    @property
    def count(self) -> int:
        return self._given - len(self._left) if self._counted else 0

    def next(self, real: Callable[[], int]) -> int:
        left = self._left
        if left:
            self.last = value = left.pop()
            return value
        for values in self._chunks:
            if values:
                self._given += len(values)
                values.reverse()
                self._left = values
                return self.next(real)
        if self._counted:
            return _past_end(self, real)
        return self._stale(real)

    def _stale(self, real: Callable[[], int]) -> int:
        # One log line more than recorded. Its clock goes on from the newest reading that there is, as fast
        # as the real one: standing still, it would be waited on for ever.
        now = real()
        if self._ended is None:
            near = self.last
            if near is None:
                near = getattr(self.lane.taps.get(self.name.removeprefix(SOFT)), "last", None)
            self._ended = 0 if near is None else now - near
        return now - self._ended


class _Resumed(_Recorded):
    """Of a fork: first what its parent had read up to the cut; then, until it goes live, what the parent had read
    beyond, and at last the real thing. What lies beyond the cut is the branch's own."""

    __slots__ = ("_beyond", "_served")

    def __init__(self, lane: Lane, name: str, counted: bool, served: Iterator[int], beyond: Iterator[int]) -> None:
        super().__init__(lane, name, counted)
        self._served = served
        self._beyond = beyond

    def next(self, real: Callable[[], int]) -> int:
        value = next(self._served, None)
        if value is not None:
            self._first += 1
            return value
        session = self.lane.session
        # Reads are stored a little after they were made: of those up to the cut, some stand beyond it.
        if session.within(self.lane) and (value := next(self._beyond, None)) is not None:
            beyond = value
            return super().next(lambda: beyond)
        return super().next(lambda: real() + session.clock_ahead(self.name))


class _Drawn:
    """Counts draws that are derived from the seed."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0


def read(lane: Lane, source: str, real: Callable[[], int]) -> int:
    """The next value of a source in this lane: `real()` while recording, the recorded one in a replay.

    Replay: Divergence LS105 where the lane was given no further value, Cut where the recording ends.
    """
    stream: Stream = lane.taps.get(source) or open_stream(lane, source)
    return stream.next(real)


def soft(lane: Lane, source: str, real: Callable[[], int]) -> int:
    """As `read`, for what may be read more or less often in a replay without being another run."""
    stream: Stream = lane.taps.get(source) or open_stream(lane, source, counted=False)
    return stream.next(real)


def count(lane: Lane, source: str, n: int = 1) -> None:
    """Counts `n` draws of a source whose values are derived and not stored."""
    drawn = lane.taps.get(source)
    if drawn is None:
        drawn = lane.taps[source] = _Drawn()
    drawn.count += n


def open_stream(lane: Lane, source: str, counted: bool = True) -> Stream:
    """Begins a stored source of the lane."""
    session = lane.session
    stream: Stream
    if session.resumes:
        served = itertools.chain.from_iterable(_chunks(session.tape, lane.name, source))
        stream = _Resumed(lane, source, counted, served, _beyond(session, lane.name, source))
    elif session.recording:
        stream = _Recorded(lane, source, counted)
    else:
        stream = _Served(lane, source, counted, _chunks(session.tape, lane.name, source))
    lane.taps[source] = stream
    return stream


def _chunks(tape: Any, lane: str, source: str) -> Iterator[list[int]]:
    # Fetched and unpacked one by one, as they are needed: a busy loop reads a clock millions of times.
    found = tape.lanes.get(lane)
    for seq in found.reads.get(source, ()) if found is not None else ():
        body = tape.body(seq)
        packed = body.get("values") if isinstance(body, dict) else None
        try:
            yield unpack(packed if isinstance(packed, bytes) else b"")
        except ValueError as error:
            from lockstep.errors import Code, StoreError

            raise StoreError(Code.DAMAGED, f"the recorded reads of {source} in lane {lane}: {error}") from None


def _beyond(session: Any, lane: str, source: str) -> Iterator[int]:
    for values in _chunks(session.later, lane, source):
        yield from values


def _past_end(stream: _Served, real: Callable[[], int]) -> int:
    from lockstep.errors import Code

    lane = stream.lane
    session = lane.session
    if stream.name.startswith(ORDER) and session.interrupted and not session.stopped:
        return real()
    if session.past_end(lane):
        return real()
    times = stream.count
    session.latch(
        Code.READS, f"{stream.name} is read more often than recorded", lane=lane, kind="read", name=stream.name,
        path=stream.name, expected=f"{times} reads in this lane", actual=f"{times + 1} reads or more",
    )  # fmt: skip
    raise session.latched()


def flush(lane: Lane) -> dict[str, int]:
    """Makes events of what the lane has read so far; returns its counts by source."""
    for told in tuple(waiting):
        told.flush()
    for source in tuple(lane.taps.values()):
        if isinstance(source, _Recorded):
            source.flush(1.0)
    return lane.reads


def flush_all(session: Any, emit: Emit | None = None) -> None:
    """Makes events of what all lanes of a session have read. From any thread; never waits for a lane."""
    for told in tuple(waiting):
        if told.session is session:
            told.flush(emit)
    for source in tuple(_dirty):
        if source.lane.session is session and not source.flush(0.0, emit):
            # A value that comes right now finds it clean, or is found by the second look.
            _dirty.pop(source, None)
            source.clean = True
            if source.flush(0.0, emit):
                source.clean = False
                _dirty[source] = None


def order_left(session: Any) -> bool:
    """Replay: whether some lane has not yet taken its place among other processes as often as it had."""
    for name, recorded in session.tape.lanes.items():
        for source, events in recorded.reads.items():
            if source.startswith(ORDER):
                lane = session.lanes.get(name)
                served = lane.taps.get(source) if lane is not None else None
                total = sum(len(values) for values in _chunks(session.tape, name, source)) if events else 0
                if (served.count if served is not None else 0) < total:
                    return True
    return False


def pending(lane: Lane) -> bool:
    """Whether the lane has read what is in no event yet, but for who comes first."""
    return any(source.lane is lane and source.fresh and not source.name.startswith(ORDER) for source in tuple(_dirty))


def forget() -> None:
    """In a forked child: drops what the parent has read and will write itself."""
    for source in tuple(_dirty):
        source.forget()
        source.clean = True
    _dirty.clear()
    waiting.clear()


def compare(expected: Mapping[str, int], actual: Mapping[str, int]) -> tuple[str, int, int] | None:
    """The first source, by name, that was read another number of times: (source, expected, actual)."""
    if expected == actual:
        return None
    for source in sorted(expected.keys() | actual.keys()):
        wanted, made = expected.get(source, 0), actual.get(source, 0)
        if wanted != made:
            return source, wanted, made
    return None
