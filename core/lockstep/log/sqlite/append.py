"""Writing a stream: each batch is a small row at once, and rows are folded into a large one later.

The small row makes the batch durable in one cheap commit. Every 48 rows or 32 kB the next commit squashes
them into one compressed row, which goes on growing that way until it holds about 96 kB or 512 events. The
pages of the rows it replaces are the next ones' pages, so the file does not grow by it.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Sequence
from operator import attrgetter

from lockstep.errors import Code, LockstepError, StoreError
from lockstep.log import chain, columns, seal
from lockstep.log.model import Event, RunState
from lockstep.log.pack import Packer
from lockstep.log.sqlite import liveness, schema
from lockstep.log.sqlite.connection import Statement, as_store_error, write
from lockstep.log.sqlite.rows import Squeezer, make
from lockstep.log.steps import StepCount
from lockstep.log.store import UNSTORABLE, Fault
from lockstep.log.unpack import fits

FOLD_BYTES = 96 << 10
FOLD_EVENTS = 512
SQUASH_BYTES = 32 << 10
SQUASH_ROWS = 48
CHECKPOINT_BYTES = 4 << 20
PATIENCE = 2.0  # seconds; the caller tries again

# Connections that a forked child inherited: SQLite forbids using them, and closing them, there.
_abandoned: list[sqlite3.Connection] = []

# Of one row, and of the new pieces of one event: what makes a reader refuse it is not written.
_MOST_EVENTS = 16_384
_MOST_BYTES = 32 << 20
_MOST_OF_AN_EVENT = 64 << 20

_by_pos = attrgetter("pos")
_SPENT = (b"", b"")


class SqliteAppender:
    """Writes one stream of a store. See `lockstep.log.store.Appender`."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        path: str,
        stream: int,
        base: bytes,
        lock: liveness.Lock | None,
        fault: Fault | None,
        key: seal.Key | None = None,
        flying: Iterable[int] = (),
    ) -> None:
        """`flying`: what a branch's steps are counted with, see `StepCount`."""
        self.stream = stream
        self._base = base
        self._key = key
        self._connection = connection
        self._path = path
        self._lock = lock
        self._fault = fault
        self._inode = os.stat(path).st_ino
        self._packer = Packer()
        self._squeeze = Squeezer()
        self._count = StepCount(flying)
        self._head = base
        self._next = 0  # number of the next event
        self._top = 0  # greatest position so far
        self._late = 0
        self._faults = 0  # bodies that could not be stored
        self._faults_stored = 0
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

    def append(self, events: Sequence[Event]) -> int:
        for event in sorted(events, key=_by_pos):
            self._stage(event)
            if len(self._events) >= _MOST_EVENTS or self._bytes >= _MOST_BYTES:
                self._commit(fold=True, squash=True)  # a reader refuses rows without bound
        fold = self._bytes >= FOLD_BYTES or len(self._events) >= FOLD_EVENTS
        self._commit(fold=fold, squash=self._loose_bytes >= SQUASH_BYTES or self._loose_rows >= SQUASH_ROWS)
        if fold:
            self._look_after_file()
        return self._next

    def close(self, state: RunState | None, faults: int = 0) -> None:
        try:
            self._commit(fold=True, squash=True)
            number = schema.STATES[state.value] if state is not None else 0
            faults = max(self._faults, faults)
            end = (number, self._next, self._count.steps, self._folded_size, faults, self._head, self.stream)
            ended = "UPDATE stream SET state=?, events=?, steps=?, size=?, faults=?, head=? WHERE id=?", end
            write(self._connection, self._path, [ended, *self._seal(number, faults)], PATIENCE)
            self._checkpoint()
        finally:
            self._connection.close()
            if self._lock is not None:
                self._lock.release(remove=True)

    def abandon(self) -> None:
        _abandoned.append(self._connection)
        if self._lock is not None:
            self._lock.drop()

    def _stage(self, event: Event) -> None:
        packed, code = _SPENT
        if event.body is not None:
            before = self._packer.next_blob, self._packer.next_big
            try:
                packed, code = self._packer.pack(event.body)
                pieces = (packed, *self._packer.blobs)
                if sum(map(len, pieces)) > _MOST_OF_AN_EVENT or not all(map(fits, pieces)):
                    raise StoreError(Code.UNSTORABLE, "a value is too large to store, apart from its long texts")
            except (LockstepError, RecursionError) as error:
                self._faults += 1
                self._report("packing an event", error)
                why = error.message if isinstance(error, LockstepError) else "it nests too deep"
                self._packer.forget(*before)
                packed, code = self._packer.pack({UNSTORABLE: why})
        if not columns.sound(event):
            event = columns.legible(event)
        try:
            head = chain.link(self._head, self._next, event, code)
        except UnicodeEncodeError:
            event = columns.legible(event)
            head = chain.link(self._head, self._next, event, code)
        self._head = head
        self._next += 1
        if event.pos < self._top:
            self._late += 1
        else:
            self._top = event.pos
        self._count.feed(event)
        blobs, bigs = self._packer.take()
        self._blobs += blobs
        self._bigs += bigs
        size = len(packed) + sum(map(len, blobs)) + 24
        self._bytes += size
        self._loose_bytes += size
        self._events.append(event if event.body is None else _bodiless(event))
        self._bodies.append(packed)

    def _commit(self, *, fold: bool, squash: bool) -> None:
        if self._rows_events == len(self._events) and not (fold and self._events):
            return
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
            self._head,
            cols,
            body,
        )
        statements: list[Statement] = [("INSERT INTO segment VALUES (?,?,?,?,?,?,?,?,?)", row)]
        if whole and self._rows_events:
            keys = (schema.first_key(self.stream) | self._first, schema.last_key(self.stream))
            statements.insert(0, ("DELETE FROM segment WHERE id BETWEEN ? AND ?", keys))
        statements += [("INSERT INTO big VALUES (?,?)", leaf) for leaf in leaves]
        if self._faults != self._faults_stored:
            statements.append(("UPDATE stream SET faults=? WHERE id=?", (self._faults, self.stream)))
        write(self._connection, self._path, [*statements, *self._seal(0, self._faults)], PATIENCE)
        self._faults_stored = self._faults
        self._bigs.clear()
        self._folded_size += leaves_size
        self._rows_size = row_size
        self._rows_events = len(self._events)
        self._rows_blobs = len(self._blobs)
        self._loose_rows = 0 if whole else self._loose_rows + 1
        if whole:
            self._loose_bytes = 0
        if fold:
            self._folded_size += row_size
            self._first += len(self._events)
            self._first_blob += len(self._blobs)
            self._events, self._bodies, self._blobs = [], [], []
            self._bytes = self._rows_events = self._rows_blobs = self._rows_size = 0

    def _seal(self, state: int, faults: int) -> list[Statement]:
        if self._key is None:
            return []
        made = seal.make(self._key, self._base, state, self._next, faults, self._head)
        return [sealed(self.stream, made)]

    def _look_after_file(self) -> None:
        try:
            if os.stat(self._path).st_ino != self._inode:
                raise FileNotFoundError(self._path)
        except OSError as error:
            # SQLite goes on writing to an unlinked file without any error.
            raise StoreError(
                Code.NOT_A_STORE, f"the store was removed or replaced while in use: {self._path}"
            ) from error
        try:
            size = os.stat(self._path + "-wal").st_size
        except OSError:
            return
        if size > CHECKPOINT_BYTES:
            self._checkpoint()

    def _checkpoint(self) -> None:
        """Moves the write-ahead log into the file, if nobody else is about it. Never needed for safety."""
        try:
            guard = liveness.hold(self._path, liveness.CHECKPOINT)
        except OSError as error:
            self._report("taking the checkpoint's lock", error)
            return
        if guard is None:
            return
        try:
            # With no timeout at all a held lock would turn this into a passive checkpoint, the risky kind.
            self._connection.execute("PRAGMA busy_timeout=200")
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            self._connection.execute("PRAGMA busy_timeout=0")
        except sqlite3.Error as error:
            self._report("checkpointing", as_store_error(error, self._path))
        finally:
            guard.release(remove=False)

    def _report(self, where: str, error: BaseException) -> None:
        if self._fault is not None:
            self._fault(where, error)


def sealed(stream: int, made: seal.Seal) -> Statement:
    """What puts the seal of a stream in the place of the one before."""
    sql = (
        "INSERT INTO seal (stream, key, events, mac) VALUES (?,?,?,?)"
        " ON CONFLICT (stream) DO UPDATE SET key=excluded.key, events=excluded.events, mac=excluded.mac"
    )
    return sql, (stream, made.key, made.events, made.mac)


def _bodiless(event: Event) -> Event:
    return Event(event.kind, event.pos, event.at, event.lane, event.what, event.name, event.of, event.tick, event.key)
