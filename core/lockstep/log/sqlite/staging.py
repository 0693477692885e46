"""Events on their way into a stream's rows: packed, linked into the chain, and made into rows.

Each batch is a small row at once. Every 48 rows or 32 kB the next batch squashes them into one compressed row, which
goes on growing that way until it holds about 96 kB or 512 events. The pages of the rows that it replaces are the next
ones' pages, so the file does not grow by it.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from lockstep.errors import Code, LockstepError, StoreError
from lockstep.log import chain, columns
from lockstep.log.model import Event
from lockstep.log.pack import Packer
from lockstep.log.sqlite import schema
from lockstep.log.sqlite.connection import Statement
from lockstep.log.sqlite.rows import Squeezer, make
from lockstep.log.steps import StepCount
from lockstep.log.store import UNSTORABLE, Fault
from lockstep.log.unpack import fits

FOLD_BYTES = 96 << 10
FOLD_EVENTS = 512
SQUASH_BYTES = 32 << 10
SQUASH_ROWS = 48

# Of one row, and of the new pieces of one event: what makes a reader refuse it is not written.
_MOST_EVENTS = 16_384
_MOST_BYTES = 32 << 20
_MOST_OF_AN_EVENT = 64 << 20

_SPENT = (b"", b"")


class Stored(msgspec.Struct, frozen=True):
    """A row as it is stored: what `Staging.resume` goes on from. `number` is that of its first event."""

    number: int
    steps: int
    size: int
    late: int
    blob: int
    head: bytes
    stored: int  # bytes of the row itself
    events: list[Event]
    bodies: list[bytes]
    blobs: list[bytes]

    @property
    def end(self) -> int:
        return self.number + len(self.events)


class _Made(msgspec.Struct, frozen=True):
    """A row that was made: number of its first event, bytes of its leaves, its own with those of the small rows before
    it, and whether it ends them."""

    number: int
    leaves: int
    size: int
    fold: bool
    whole: bool


class Staging:
    """The rows of one stream to come, and what the stream is up to there.

    next      number of the next event; top: greatest position so far
    last_row  number of the first event of the last row
    head      of the chain; faults: bodies that could not be stored
    """

    def __init__(self, stream: int, head: bytes, count: StepCount, fault: Fault | None) -> None:
        self.stream = stream
        self.head = head
        self.next = 0
        self.last_row = 0
        self.top = 0
        self.faults = 0
        self._fault = fault
        self._packer = Packer()
        self._squeeze = Squeezer()
        self._count = count
        self._late = 0
        # Since the last fold: events and what they packed to, and how much of it small rows hold already.
        self._events: list[Event] = []
        self._bodies: list[bytes] = []
        self._blobs: list[bytes] = []
        self._bigs: list[tuple[int, bytes]] = []
        self._bytes = 0
        self._loose_bytes = 0  # of them since the last squash
        self._loose_rows = 0
        self._first = 0
        self._first_blob = 0
        self._rows_events = 0
        self._rows_blobs = 0
        self._folded_size = 0  # of the stream up to the last fold
        self._rows_size = 0  # of the small rows since then
        self._made: _Made | None = None  # by the last `statements`

    @property
    def steps(self) -> int:
        return self._count.steps

    @property
    def size(self) -> int:
        """Bytes of the stream's rows and leaves, as they are stored."""
        return self._folded_size + self._rows_size

    @property
    def size_to_come(self) -> int:
        """The same, when the last `statements` are executed."""
        made = self._made
        return self.size if made is None else self._folded_size + made.leaves + made.size

    @property
    def is_full(self) -> bool:
        """Whether a reader would refuse a row that holds more."""
        return len(self._events) >= _MOST_EVENTS or self._bytes >= _MOST_BYTES

    @property
    def folds(self) -> bool:
        """Whether it is time for the large row."""
        return self._bytes >= FOLD_BYTES or len(self._events) >= FOLD_EVENTS

    @property
    def loose_rows(self) -> int:
        """How many small rows have not been gathered."""
        return self._loose_rows

    @property
    def squashes(self) -> bool:
        """Whether it is time to gather the small rows."""
        return self._loose_bytes >= SQUASH_BYTES or self._loose_rows >= SQUASH_ROWS

    def stage(self, event: Event, *, strict: bool = False) -> Event:
        """Adds an event, and returns it as it will be stored. A body that cannot be is replaced, and counts as a fault;
        with `strict` it raises StoreError LS207, and nothing is added."""
        packed, code = _SPENT
        if event.body is not None:
            before = self._packer.next_blob, self._packer.next_big
            try:
                packed, code = self._packer.pack(event.body)
                pieces = (packed, *self._packer.blobs)
                if sum(map(len, pieces)) > _MOST_OF_AN_EVENT or not all(map(fits, pieces)):
                    raise StoreError(Code.UNSTORABLE, "a value is too large to store, apart from its long texts")
            except (LockstepError, RecursionError) as error:
                self._packer.forget(*before)
                why = error.message if isinstance(error, LockstepError) else "it nests too deep"
                if strict:
                    raise StoreError(Code.UNSTORABLE, why) from error
                self.faults += 1
                if self._fault is not None:
                    self._fault("packing an event", error)
                packed, code = self._packer.pack({UNSTORABLE: why})
        if not columns.sound(event):
            event = columns.legible(event)
        try:
            head = chain.link(self.head, self.next, event, code)
        except UnicodeEncodeError:
            event = columns.legible(event)
            head = chain.link(self.head, self.next, event, code)
        self.head = head
        self.next += 1
        if event.pos < self.top:
            self._late += 1
        else:
            self.top = event.pos
        self._count.feed(event)
        blobs, bigs = self._packer.take()
        self._blobs += blobs
        self._bigs += bigs
        size = _weight(packed, blobs)
        self._bytes += size
        self._loose_bytes += size
        self._events.append(event if event.body is None else _bodiless(event))
        self._bodies.append(packed)
        return event

    def statements(self, *, fold: bool, squash: bool) -> list[Statement]:
        """What stores all that was staged; nothing where there is nothing to do. After them, `stored`."""
        if self._rows_events == len(self._events) and not (fold and self._events):
            self._made = None
            return []
        whole = fold or squash
        start, blob = (0, 0) if whole else (self._rows_events, self._rows_blobs)
        squeeze = self._squeeze if fold else self._squeeze.passing
        cols, body = make(self._events[start:], self._bodies[start:], self._blobs[blob:], squeeze)
        leaves = [(schema.first_key(self.stream) | n, self._squeeze.leaf(data)) for n, data in self._bigs]
        leaves_size = sum(len(data) for _, data in leaves)
        row_size = len(cols) + len(body) + (0 if whole else self._rows_size)
        row = (
            schema.first_key(self.stream) | (self._first + start),
            len(self._events) - start,
            self._count.steps,
            self._folded_size + leaves_size + row_size,
            self._late,
            self._first_blob + blob,
            self.head,
            cols,
            body,
        )
        statements: list[Statement] = [("INSERT INTO segment VALUES (?,?,?,?,?,?,?,?,?)", row)]
        if whole and self._rows_events:
            keys = (schema.first_key(self.stream) | self._first, schema.last_key(self.stream))
            statements.insert(0, ("DELETE FROM segment WHERE id BETWEEN ? AND ?", keys))
        statements += [("INSERT INTO big VALUES (?,?)", leaf) for leaf in leaves]
        self._made = _Made(self._first + start, leaves_size, row_size, fold, whole)
        return statements

    def stored(self) -> None:
        """The statements were executed."""
        made, self._made = self._made, None
        if made is None:
            return
        whole = made.whole
        self.last_row = made.number
        self._bigs.clear()
        self._folded_size += made.leaves
        self._rows_size = made.size
        self._rows_events = len(self._events)
        self._rows_blobs = len(self._blobs)
        self._loose_rows = 0 if whole else self._loose_rows + 1
        if whole:
            self._loose_bytes = 0
        if made.fold:
            self._folded_size += made.size
            self._first += len(self._events)
            self._first_blob += len(self._blobs)
            self._events, self._bodies, self._blobs = [], [], []
            self._bytes = self._rows_events = self._rows_blobs = self._rows_size = 0

    def resume(self, rows: Sequence[Stored], next_big: int, count: StepCount, *, forget: bool) -> None:
        """Goes on behind rows that are stored, in the place of whatever was staged: the last ones of the stream, of
        which those are gathered that may still grow. `forget`: what this writer believed to be stored may not be."""
        self._bigs = []
        self._events, self._bodies, self._blobs = [], [], []
        self._bytes = self._loose_bytes = self._loose_rows = self._rows_size = 0
        last = rows[-1] if rows else None
        self._made = None
        self.next = last.end if last is not None else 0
        self.last_row = last.number if last is not None else 0
        next_blob = last.blob + len(last.blobs) if last is not None else 0
        self._count = count
        self._first, self._first_blob = self.next, next_blob
        self._folded_size = self._late = self.top = 0
        self.faults = 0
        if last is not None:
            self.head = last.head
            self.top = last.events[-1].pos if last.events else 0
            self._late = last.late
            self._folded_size = last.size
            growing = _growing(rows)
            for row in growing:
                self._events += row.events
                self._bodies += row.bodies
                self._blobs += row.blobs
                self._rows_size += row.stored
                self._bytes += sum(map(len, row.bodies)) + sum(map(len, row.blobs)) + 24 * len(row.events)
            if growing:
                self._first, self._first_blob = growing[0].number, growing[0].blob
                self._loose_bytes = self._bytes
                self._loose_rows = len(growing)
            self._folded_size -= self._rows_size
        self._rows_events, self._rows_blobs = len(self._events), len(self._blobs)
        if forget:
            self._packer.forget(next_blob, next_big)
        else:
            self._packer.go_on(next_blob, next_big)


def _growing(rows: Sequence[Stored]) -> Sequence[Stored]:
    """The last rows, as many as one large row may hold. A large one is left as it is."""
    start = len(rows)
    events = size = 0
    while start:
        row = rows[start - 1]
        events += len(row.events)
        size += sum(map(len, row.bodies)) + sum(map(len, row.blobs)) + 24 * len(row.events)
        if events >= FOLD_EVENTS or size >= FOLD_BYTES:
            break
        start -= 1
    return rows[start:]


def _weight(packed: bytes, blobs: Sequence[bytes]) -> int:
    return len(packed) + sum(map(len, blobs)) + 24


def _bodiless(event: Event) -> Event:
    return Event(event.kind, event.pos, event.at, event.lane, event.what, event.name, event.of, event.tick, event.key)
