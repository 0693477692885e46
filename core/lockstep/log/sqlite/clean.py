"""Giving back the room that deleted runs and dead writers left: what `lockstep gc` does.

Free pages are used again by the next recordings, so this is for disks that are full and files that are handed on. It
takes the write lock for as long as the file takes to be written anew; living writers wait meanwhile and lose nothing.
"""

from __future__ import annotations

import os
import sqlite3

import msgspec

from lockstep.errors import Code, StoreError
from lockstep.log import untapped
from lockstep.log.sqlite import liveness, schema
from lockstep.log.sqlite.connection import connect, query, transaction
from lockstep.log.sqlite.store import SqliteStore

_PATIENCE = 30.0  # seconds: others may be about the same
_WORTH = 20  # of so many pages one must be free
_CHECKPOINT = 5000  # milliseconds that a checkpoint waits for readers


_ORPHANS = (
    "DELETE FROM branch WHERE run NOT IN (SELECT id FROM run)",
    "DELETE FROM stream WHERE branch NOT IN (SELECT id FROM branch)",
    f"DELETE FROM segment WHERE id >> {schema.SHIFT} NOT IN (SELECT id FROM stream)",
    f"DELETE FROM big WHERE id >> {schema.SHIFT} NOT IN (SELECT id FROM stream)",
    "DELETE FROM seal WHERE stream NOT IN (SELECT id FROM stream)",
)


class Cleaned(msgspec.Struct, frozen=True):
    """Bytes before and after, of the file and of its write-ahead log; rows that belonged to no run; lock files of
    writers that died. `busy`: somebody was reading or writing all the time, and the log could not be emptied."""

    store: str
    before: int
    after: int
    wal_before: int
    wal_after: int
    orphans: int
    locks: int
    busy: bool

    @property
    def freed(self) -> int:
        return self.before + self.wal_before - self.after - self.wal_after


def clean(path: str) -> Cleaned:
    """Cleans a store. Raises StoreError."""
    with SqliteStore.open(path, create=False) as store:
        if store.tape:
            raise StoreError(Code.UNWRITABLE, f"a tape is as small as it gets, and is not written to: {path}")
    before, wal_before = _size(path), _size(path + "-wal")
    connection = connect(path, "rw")
    try:
        with transaction(connection, path, _PATIENCE):
            orphans = 0
            for sql in _ORPHANS:
                orphans += connection.execute(sql).rowcount
            writing = {str(number) for (number,) in connection.execute("SELECT id FROM stream WHERE state=0")}
            locks = liveness.sweep(path, {name for name in writing if liveness.is_held(path, name)})
        _vacuum(connection, path)
        busy = not _checkpoint(connection, path)
    finally:
        connection.close()
    return Cleaned(path, before, _size(path), wal_before, _size(path + "-wal"), orphans, locks, busy)


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return 0


def _vacuum(connection: sqlite3.Connection, path: str) -> None:
    """Writes the file anew, if it has enough free pages to be worth that."""
    [(free,)] = query(connection, path, "PRAGMA freelist_count")
    [(pages,)] = query(connection, path, "PRAGMA page_count")
    if free * _WORTH < pages:
        return
    deadline = untapped.monotonic() + _PATIENCE
    while True:
        try:
            query(connection, path, "VACUUM")
            return
        except StoreError as error:
            if error.code is not Code.UNWRITABLE or "lock" not in error.message or untapped.monotonic() > deadline:
                raise


def _checkpoint(connection: sqlite3.Connection, path: str) -> bool:
    """Moves the write-ahead log into the file and empties it. False: somebody was in the way."""
    deadline = untapped.monotonic() + _PATIENCE
    while (guard := liveness.hold(path, liveness.CHECKPOINT)) is None:
        if untapped.monotonic() > deadline:
            return False
        untapped.sleep(0.01)
    try:
        query(connection, path, f"PRAGMA busy_timeout={_CHECKPOINT}")
        [(busy, _, _)] = query(connection, path, "PRAGMA wal_checkpoint(TRUNCATE)")
        return not busy
    finally:
        guard.release(remove=False)
