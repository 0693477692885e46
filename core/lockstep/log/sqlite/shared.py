"""Writing a stream that many processes and threads have open at once: what one native thread leaves behind.

Each append is one transaction, in which nobody else can write: if the last row is not the one that this writer knows,
it first learns what others have added, and goes on behind that. So positions and the chain are in the order of commits,
whoever made them, and a process that is killed takes nothing with it but what it had not handed over.
"""

from __future__ import annotations

import os
import sqlite3
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import msgspec

from lockstep.errors import Code, StoreError
from lockstep.log import seal, untapped
from lockstep.log.model import Event, Kind, RunState
from lockstep.log.sqlite import liveness, rows, schema
from lockstep.log.sqlite.append import CHECKPOINT_BYTES, PATIENCE, checkpoint, sealed, still_there, wal_size
from lockstep.log.sqlite.connection import PATIENCE as OPENING
from lockstep.log.sqlite.connection import Statement, connect, query, transaction
from lockstep.log.sqlite.native import Opened
from lockstep.log.sqlite.staging import FOLD_EVENTS, SQUASH_ROWS, Staging, Stored
from lockstep.log.steps import TURN, StepCount, rest
from lockstep.log.store import Fault

# Connections that a forked child inherited: closing them there is forbidden as much as using them.
_abandoned: list[sqlite3.Connection] = []

# What a framework relies on: it is stored as it is, or the caller is told. A call that cannot be stored is a fault.
_RELIED_ON = frozenset({Kind.STEP, Kind.WRITES, Kind.FORK})

_WORTH_GATHERING = 6  # small rows
_LOOKED_AFTER = 128  # commits

_LAST_ROW = "SELECT id, count, size, head FROM segment WHERE id BETWEEN ? AND ? ORDER BY id DESC LIMIT 1"
_ROWS = (
    "SELECT id, count, steps, size, late, blob, head, cols, body FROM segment"
    " WHERE id BETWEEN ? AND ? ORDER BY id DESC LIMIT ?"
)


class Writer:
    """The connection that all shared streams of a store write through in this process, one at a time.

    commits  how many transactions were made here
    patience seconds that others who write are waited for; the caller tries again
    """

    patience = PATIENCE
    opening = OPENING  # likewise, to make a run or a branch

    def __init__(self, path: str) -> None:
        self.path = path
        self.lock = untapped.RLock()
        self.commits = 0
        self._connection: sqlite3.Connection | None = None
        self._inode = 0
        _writers.add(self)

    def connection(self) -> sqlite3.Connection:
        """Under the lock only."""
        if self._connection is None:
            self._connection = connect(self.path, "rw")
            self._inode = os.stat(self.path).st_ino
        self.rest()
        return self._connection

    def rest(self) -> None:
        """Ends a transaction that an interrupt has left open: all other processes would wait for it."""
        if self._connection is not None and self._connection.in_transaction:
            self._connection.execute("ROLLBACK")

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction. Raises StoreError."""
        with self.lock:
            try:
                with transaction(self.connection(), self.path, self.opening) as connection:
                    yield connection
            except BaseException:
                self.rest()
                raise

    def version(self) -> int:
        """A number that is another one when another connection has written to the store."""
        number: int = query(self.connection(), self.path, "PRAGMA data_version")[0][0]
        return number

    def look_after_file(self, fault: Fault | None) -> None:
        """Raises StoreError LS201 where the file is gone; empties a long write-ahead log."""
        still_there(self.path, self._inode)
        if wal_size(self.path) > CHECKPOINT_BYTES:
            checkpoint(self.connection(), self.path, fault)

    def close(self) -> None:
        with self.lock:
            connection, self._connection = self._connection, None
            if connection is not None:
                if self.commits and os.path.exists(self.path):
                    checkpoint(connection, self.path, None)
                connection.close()

    def forked(self) -> None:
        """In a forked child: what belongs to the parent is let go of."""
        if self._connection is not None:
            _abandoned.append(self._connection)
            self._connection = None
        self.lock = untapped.RLock()


_writers: weakref.WeakSet[Writer] = weakref.WeakSet()
_streams: weakref.WeakSet[SharedStream] = weakref.WeakSet()


def _forked() -> None:
    for writer in list(_writers):
        writer.forked()
    for stream in list(_streams):
        stream.forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


class _Made(msgspec.Struct, frozen=True):
    """What an append has made: its events, the turns that are open after it, the store's version before it, and what is
    stored of the stream after it."""

    events: tuple[Event, ...]
    turns: dict[int, None]
    version: int
    state: int
    faults: int
    fold: bool


class SharedStream:
    """Writes one stream of a store that others write too. See `lockstep.log.store.Shared`."""

    def __init__(self, writer: Writer, opened: Opened, key: seal.Key | None, fault: Fault | None) -> None:
        self.stream = opened.stream
        self.run = opened.run
        self.branch = opened.branch
        self.started = opened.started
        self._writer = writer
        self._base = opened.base
        self._after = opened.after
        self._key = key
        self._fault = fault
        self._staging = Staging(self.stream, opened.base, StepCount(native=True), fault)
        self._state = -1  # as it is stored
        self._faults = 0  # in the row when it was last read
        self._turns: dict[int, None] = {}  # those begun here that have not ended
        self._seen = (-1, -1)  # nothing was written by others since then
        self._asked = -1
        self._stale = True
        self._lock: weakref.ref[liveness.Lock] | None = None
        _streams.add(self)

    @property
    def events(self) -> int:
        return self._staging.next

    def append(self, events: Sequence[Event], faults: int = 0) -> tuple[Event, ...]:
        writer = self._writer
        with writer.lock:
            connection = writer.connection()
            try:
                with transaction(connection, writer.path, writer.patience):
                    made = self._write(connection, events, faults)
                self._written(made)
            except BaseException:  # an interrupt (Ctrl-C) may come anywhere in between
                self._stale = True
                writer.rest()
                raise
            # Of many short threads none may ever fill a row.
            if made.fold or not writer.commits % _LOOKED_AFTER:
                writer.look_after_file(self._fault)
        return made.events

    def begin(self, connection: sqlite3.Connection, events: Sequence[Event]) -> None:
        """The stream's first events, in the transaction that made it."""
        self._written(self._write(connection, events))

    def changed(self) -> bool:
        with self._writer.lock:
            version = self._writer.version()
            asked, self._asked = self._asked, version
            return version != asked

    def hold_turn(self) -> liveness.Lock | None:
        try:
            lock = liveness.take(self._writer.path, str(self.stream))
        except OSError as error:
            raise StoreError(Code.UNWRITABLE, f"cannot lock a stream of {self._writer.path}: {error}") from error
        if lock is not None:
            self._lock = weakref.ref(lock)
        return lock

    def is_turn_held(self) -> bool:
        return liveness.is_held(self._writer.path, str(self.stream))

    def set_state(self, state: RunState) -> None:
        writer = self._writer
        with writer.lock:
            connection = writer.connection()
            try:
                with transaction(connection, writer.path, writer.patience):
                    self._catch_up(connection)
                    for sql, values in self._resting(schema.STATES[state.value], self._faults):
                        connection.execute(sql, values)
            except BaseException:
                self._stale = True
                writer.rest()
                raise
            writer.commits += 1

    def rest_memory(self) -> None:
        with self._writer.lock:
            self._staging = Staging(self.stream, self._base, StepCount(native=True), self._fault)
            self._stale = True

    def close(self) -> None:
        """Lets go of the stream. What was appended is stored already."""
        self._turns = {}
        self._stale = True

    def forked(self) -> None:
        """In a forked child: a turn that is open is the parent's."""
        lock = self._lock() if self._lock is not None else None
        if lock is not None:
            lock.drop()
        self._lock = None
        self._turns = {}
        self._stale = True

    def _catch_up(self, connection: sqlite3.Connection) -> int:
        """In a transaction: learns what others have added. Returns the store's version. Raises StoreError LS205 where
        the run was deleted."""
        version: int = connection.execute("PRAGMA data_version").fetchone()[0]
        if not self._stale and self._seen == (version, self._writer.commits):
            return version
        found = connection.execute("SELECT base, state, faults FROM stream WHERE id=?", (self.stream,)).fetchone()
        # Numbers of streams are used again: it is ours by what its chain begins with.
        if found is None or found[0] != self._base:
            raise StoreError(Code.NO_RUN, f"the run was deleted or replaced while it was open: {self._writer.path}")
        _, self._state, self._faults = found
        staging = self._staging
        keys = schema.first_key(self.stream), schema.last_key(self.stream)
        last = connection.execute(_LAST_ROW, keys).fetchone()
        known = (keys[0] | staging.last_row, staging.next - staging.last_row, staging.size, staging.head)
        if not self._stale and (last == known if last is not None else staging.next == 0):
            return version
        self._resume(connection, keys)
        self._stale = False
        return version

    def _resume(self, connection: sqlite3.Connection, keys: tuple[int, int]) -> None:
        staging = self._staging
        ending: list[Stored] = []
        events = 0
        for key, count, steps, size, late, blob, head, cols, body in connection.execute(
            _ROWS, (*keys, SQUASH_ROWS + 1)
        ):
            bodies, blobs = rows.body(body)
            row = Stored(
                schema.number(key), steps, size, late, blob, head, len(cols) + len(body), rows.events(cols), bodies,
                blobs,
            )  # fmt: skip
            ending.append(row)
            events += count
            if events >= FOLD_EVENTS:
                break
        ending.reverse()
        found = connection.execute("SELECT max(id) FROM big WHERE id BETWEEN ? AND ?", keys).fetchone()[0]
        next_big = schema.number(found) + 1 if found is not None else 0
        count_of_steps = StepCount(native=True)
        count_of_steps.steps = ending[-1].steps if ending else 0
        # What this process staged and could not store is not there; what it stored is, since nothing is ever cut off.
        staging.resume(ending, next_big, count_of_steps, forget=self._stale)
        if not ending:
            staging.head, staging.top = self._base, self._after

    def _write(self, connection: sqlite3.Connection, events: Sequence[Event], faults: int = 0) -> _Made:
        version = self._catch_up(connection)
        staging = self._staging
        before = dict(self._turns)
        staging.faults = faults
        kept, turns, ended = self._stage(connection, events, before)
        fold = staging.folds
        # A thread may rest for ever after any turn: small rows of many threads would be most of a store.
        rests = bool(ended) and staging.loose_rows >= _WORTH_GATHERING
        statements = staging.statements(fold=fold, squash=rests or staging.squashes)
        faults = self._faults + staging.faults
        state = self._state
        if ended and not turns:
            state = schema.STATES[rest(ended).value]
        elif not turns.keys() <= self._turns.keys():
            state = 0
        if state:
            statements += self._resting(state, faults)
        else:
            if self._state or staging.faults:
                statements.append(("UPDATE stream SET state=0, faults=? WHERE id=?", (faults, self.stream)))
            statements += self._seal(0, faults)
        for sql, values in statements:
            connection.execute(sql, values)
        return _Made(kept, turns, version, state, faults, fold)

    def _written(self, made: _Made) -> None:
        self._staging.stored()
        self._writer.commits += 1
        self._seen = (made.version, self._writer.commits)
        self._turns, self._state, self._faults = made.turns, made.state, made.faults

    def _stage(
        self, connection: sqlite3.Connection, events: Sequence[Event], turns: dict[int, None]
    ) -> tuple[tuple[Event, ...], dict[int, None], str]:
        """Stages events at the next positions; with the turns that are open after them, and how the last one ended."""
        staging = self._staging
        places: dict[int, int] = {}  # where the provisional positions are now
        kept: list[Event] = []
        ended = ""
        for event in events:
            of = event.of
            if of < 0:
                if of not in places:
                    raise ValueError(f"no event of this call has the provisional position {of}")
                of = places[of]
            pos = staging.top + 1
            places[event.pos] = pos
            placed = Event(
                event.kind, pos, event.at, event.lane, event.what, event.name, of, event.tick, event.key, event.body
            )
            kept.append(staging.stage(placed, strict=event.kind in _RELIED_ON))
            if event.kind is Kind.BEGIN and event.what == TURN:
                turns[pos] = None
            elif event.kind is Kind.END and of in turns:
                del turns[of]
                ended = str(event.what)
            if staging.is_full:  # a reader refuses rows without bound
                for sql, values in staging.statements(fold=True, squash=True):
                    connection.execute(sql, values)
                staging.stored()
        return tuple(kept), turns, ended

    def _resting(self, state: int, faults: int) -> list[Statement]:
        """What says that no turn is open."""
        staging = self._staging
        totals = (state, staging.next, staging.steps, staging.size_to_come, faults, staging.head, self.stream)
        ended = "UPDATE stream SET state=?, events=?, steps=?, size=?, faults=?, head=? WHERE id=?", totals
        return [ended, *self._seal(state, faults)]

    def _seal(self, state: int, faults: int) -> list[Statement]:
        if self._key is None:
            return []
        made = seal.make(self._key, self._base, state, self._staging.next, faults, self._staging.head)
        return [sealed(self.stream, made)]
