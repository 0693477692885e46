"""Writing a stream that one process has for itself. How events become rows is in `staging`."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Sequence
from operator import attrgetter

from lockstep.errors import Code, StoreError
from lockstep.log import seal
from lockstep.log.model import Event, RunState
from lockstep.log.sqlite import liveness, schema
from lockstep.log.sqlite.connection import Statement, as_store_error, write
from lockstep.log.sqlite.staging import Staging
from lockstep.log.steps import StepCount
from lockstep.log.store import Fault

CHECKPOINT_BYTES = 4 << 20
PATIENCE = 2.0  # seconds; the caller tries again

# Connections that a forked child inherited: SQLite forbids using them, and closing them, there.
_abandoned: list[sqlite3.Connection] = []

_by_pos = attrgetter("pos")


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
        *,
        native: bool = False,
    ) -> None:
        """`flying` and `native`: what its steps are counted with, see `StepCount`."""
        self.stream = stream
        self._base = base
        self._key = key
        self._connection = connection
        self._path = path
        self._lock = lock
        self._fault = fault
        self._inode = os.stat(path).st_ino
        self._staging = Staging(stream, base, StepCount(flying, native=native), fault)
        self._faults_stored = 0

    def append(self, events: Sequence[Event]) -> int:
        staging = self._staging
        for event in sorted(events, key=_by_pos):
            staging.stage(event)
            if staging.is_full:
                self._commit(fold=True, squash=True)  # a reader refuses rows without bound
        fold = staging.folds
        self._commit(fold=fold, squash=staging.squashes)
        if fold:
            self._look_after_file()
        return staging.next

    def close(self, state: RunState | None, faults: int = 0) -> None:
        staging = self._staging
        try:
            self._commit(fold=True, squash=True)
            number = schema.STATES[state.value] if state is not None else 0
            faults = max(staging.faults, faults)
            end = (number, staging.next, staging.steps, staging.size, faults, staging.head, self.stream)
            ended = "UPDATE stream SET state=?, events=?, steps=?, size=?, faults=?, head=? WHERE id=?", end
            write(self._connection, self._path, [ended, *self._seal(number, faults)], PATIENCE)
            checkpoint(self._connection, self._path, self._fault)
        finally:
            self._connection.close()
            if self._lock is not None:
                self._lock.release(remove=True)

    def abandon(self) -> None:
        _abandoned.append(self._connection)
        if self._lock is not None:
            self._lock.drop()

    def _commit(self, *, fold: bool, squash: bool) -> None:
        staging = self._staging
        statements = staging.statements(fold=fold, squash=squash)
        if not statements:
            return
        if staging.faults != self._faults_stored:
            statements.append(("UPDATE stream SET faults=? WHERE id=?", (staging.faults, self.stream)))
        write(self._connection, self._path, [*statements, *self._seal(0, staging.faults)], PATIENCE)
        self._faults_stored = staging.faults
        staging.stored()

    def _seal(self, state: int, faults: int) -> list[Statement]:
        if self._key is None:
            return []
        made = seal.make(self._key, self._base, state, self._staging.next, faults, self._staging.head)
        return [sealed(self.stream, made)]

    def _look_after_file(self) -> None:
        still_there(self._path, self._inode)
        if wal_size(self._path) > CHECKPOINT_BYTES:
            checkpoint(self._connection, self._path, self._fault)


def still_there(path: str, inode: int) -> None:
    """Raises StoreError LS201 where the file was removed or replaced: SQLite goes on writing to an unlinked one without
    any error."""
    try:
        if os.stat(path).st_ino != inode:
            raise FileNotFoundError(path)
    except OSError as error:
        raise StoreError(Code.NOT_A_STORE, f"the store was removed or replaced while in use: {path}") from error


def wal_size(path: str) -> int:
    """Bytes of the write-ahead log."""
    try:
        return os.stat(path + "-wal").st_size
    except OSError:
        return 0


def checkpoint(connection: sqlite3.Connection, path: str, fault: Fault | None) -> None:
    """Moves the write-ahead log into the file, if nobody else is about it. Never needed for safety."""

    def report(where: str, error: BaseException) -> None:
        if fault is not None:
            fault(where, error)

    try:
        guard = liveness.hold(path, liveness.CHECKPOINT)
    except OSError as error:
        report("taking the checkpoint's lock", error)
        return
    if guard is None:
        return
    try:
        # With no timeout at all a held lock would turn this into a passive checkpoint, the risky kind.
        connection.execute("PRAGMA busy_timeout=200")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        connection.execute("PRAGMA busy_timeout=0")
    except sqlite3.Error as error:
        report("checkpointing", as_store_error(error, path))
    finally:
        guard.release(remove=False)


def sealed(stream: int, made: seal.Seal) -> Statement:
    """What puts the seal of a stream in the place of the one before."""
    sql = (
        "INSERT INTO seal (stream, key, events, mac) VALUES (?,?,?,?)"
        " ON CONFLICT (stream) DO UPDATE SET key=excluded.key, events=excluded.events, mac=excluded.mac"
    )
    return sql, (stream, made.key, made.events, made.mac)
