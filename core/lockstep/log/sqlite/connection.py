"""Connections to a store's file, transactions, and SQLite's errors as ours.

Two traps decide how the file is used here (tried: 100 of 101 acknowledged rows lost). POSIX locks die
when any descriptor of the file is closed in the process, so the file is never opened but by SQLite, and
no connection checkpoints when it closes, since it may wrongly believe to be the last. And SQLite before
3.51.3 may lose commits when a passive checkpoint meets a writer, so checkpoints are by hand, in the mode
that holds the write lock, one process at a time.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from lockstep.errors import Code, LockstepError, NoRoom, StoreError
from lockstep.log import untapped

# Seconds to wait for another process's transaction. They take well under a millisecond each.
PATIENCE = 5.0

_PRAGMAS = (
    "synchronous=NORMAL",
    "wal_autocheckpoint=0",
    "cache_size=-8000",
    "temp_store=MEMORY",
    "mmap_size=0",
    "trusted_schema=OFF",
    "cell_size_check=ON",
)

_BUSY = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})


type Statement = tuple[str, Sequence[Any]]


def connect(path: str, mode: str) -> sqlite3.Connection:
    """A connection: mode `ro`, `rw` or `rwc`. Raises StoreError."""
    try:
        connection = sqlite3.connect(
            uri(path, mode), uri=True, timeout=0, isolation_level=None, check_same_thread=False
        )
        connection.setconfig(sqlite3.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, True)
        connection.setconfig(sqlite3.SQLITE_DBCONFIG_DEFENSIVE, True)
        connection.setconfig(sqlite3.SQLITE_DBCONFIG_ENABLE_TRIGGER, False)
        connection.setconfig(sqlite3.SQLITE_DBCONFIG_ENABLE_VIEW, False)
    except sqlite3.Error as error:
        raise as_store_error(error, path) from error
    try:
        for pragma in _PRAGMAS:
            # The first of them opens the file, and finds it locked while another process is about the same.
            query(connection, path, f"PRAGMA {pragma}")
    except BaseException:
        connection.close()
        raise
    return connection


def uri(path: str, mode: str) -> str:
    """SQLite's name for a file, opened in that mode (a query string after `mode=`)."""
    where = os.path.abspath(path).replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    if os.sep == "\\":
        where = "/" + where.replace("\\", "/")
    return f"file:{where}?mode={mode}"


def query(
    connection: sqlite3.Connection, path: str, sql: str, values: Sequence[Any] = (), shape: str = ""
) -> list[Any]:
    """All rows of one question, which is one short read transaction. Raises StoreError.

    shape  what the columns must be, a letter each: i a number from 0 on, t text, b bytes. A forged file may hold
           anything anywhere, also in tables that call themselves STRICT
    """
    deadline = untapped.monotonic() + PATIENCE
    while True:
        try:
            rows = connection.execute(sql, values).fetchall()
            if shape and not _fit(rows, shape):
                raise StoreError(
                    Code.DAMAGED, f"the store is damaged (a value of another type than its column's): {path}"
                )
            return rows
        except sqlite3.Error as error:
            # A reader only waits while another process recovers the file after a crash.
            if not _is_busy(error) or untapped.monotonic() > deadline:
                raise as_store_error(error, path) from error
        except UnicodeDecodeError as error:  # SQLite's own message, where it names what it cannot read
            raise StoreError(Code.DAMAGED, f"the store is damaged (its schema is no text): {path}") from error
        _pause()


_TYPES = {"i": int, "t": str, "b": bytes}


def _fit(rows: Sequence[Sequence[Any]], shape: str) -> bool:
    # Column by column: a run with many branches is asked for with every one of them.
    for kind, column in zip(shape, zip(*rows, strict=True), strict=True) if rows else ():
        if set(map(type, column)) != {_TYPES[kind]} or (kind == "i" and min(column) < 0):
            return False
    return True


@contextmanager
def transaction(connection: sqlite3.Connection, path: str, patience: float = PATIENCE) -> Iterator[sqlite3.Connection]:
    """A write transaction. Always immediate: a deferred one that reads first fails at once when another
    process wrote meanwhile, whatever the timeout. Raises StoreError."""
    try:
        _patiently(connection, "BEGIN IMMEDIATE", (), patience)
        try:
            yield connection
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
    except sqlite3.Error as error:
        raise as_store_error(error, path) from error


def write(connection: sqlite3.Connection, path: str, statements: Sequence[Statement], patience: float) -> None:
    """Executes all of these, or none. Raises StoreError."""
    if len(statements) == 1:  # is a transaction by itself: each word with SQLite gives the interpreter away
        try:
            _patiently(connection, *statements[0], patience)
        except sqlite3.Error as error:
            raise as_store_error(error, path) from error
        return
    with transaction(connection, path, patience):
        for sql, values in statements:
            connection.execute(sql, values)


def _patiently(connection: sqlite3.Connection, sql: str, values: Sequence[Any], patience: float) -> None:
    """Executes what has to wait for the lock."""
    deadline = untapped.monotonic() + patience
    while True:
        try:
            connection.execute(sql, values)
            return
        except sqlite3.OperationalError as error:
            if not _is_busy(error) or untapped.monotonic() > deadline:
                raise
        _pause()


def _pause() -> None:
    # Own retries with jitter: with 8 writers p99 is 3 ms, with SQLite's busy_timeout 19 ms. The jitter must
    # not come from `random`, whose global state belongs to the program.
    untapped.sleep(0.0002 + untapped.monotonic_ns() % 4800 / 1e6)


def _is_busy(error: sqlite3.Error) -> bool:
    return _code(error) in _BUSY


def _code(error: sqlite3.Error) -> int:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def as_store_error(error: sqlite3.Error, path: str) -> LockstepError:
    """What SQLite's error means to the user, and what to do."""
    whole = getattr(error, "sqlite_errorcode", None)
    code = _code(error)
    if code == sqlite3.SQLITE_NOTADB:
        return StoreError(Code.NOT_A_STORE, f"not a Lockstep store: {path}")
    strange = (whole is None and "decode" in str(error)) or (code == sqlite3.SQLITE_ERROR and "no such" in str(error))
    if code in _DAMAGE or strange or isinstance(error, sqlite3.DataError):
        return StoreError(Code.DAMAGED, f"the store is damaged ({error}): {path}")
    if code == sqlite3.SQLITE_CANTOPEN and not os.path.exists(path):
        return StoreError(Code.NOT_A_STORE, f"no such store: {path}")
    if code in _BUSY:
        return StoreError(
            Code.UNWRITABLE, f"another process has held the store's lock for too long (stopped in a debugger?): {path}"
        )
    if code == sqlite3.SQLITE_FULL or whole in _NO_ROOM:
        return NoRoom(
            Code.UNWRITABLE,
            f"no room to write ({error}): {path}. The disk is full, or files may not grow so large (ulimit -f). "
            "Free some, for instance with lockstep gc; what was committed is safe",
        )
    if code == sqlite3.SQLITE_READONLY or (code == sqlite3.SQLITE_CANTOPEN and not os.access(path, os.W_OK)):
        return StoreError(
            Code.UNWRITABLE,
            f"no permission to write ({error}): {path}. To read it, copy the file and the one that ends in -wal "
            "to a place of yours; to record, name another store with --store or LOCKSTEP_STORE",
        )
    return StoreError(Code.UNWRITABLE, f"cannot use the store ({error}): {path}")


_DAMAGE = frozenset({
    sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_FORMAT, sqlite3.SQLITE_MISMATCH, sqlite3.SQLITE_AUTH,
    sqlite3.SQLITE_TOOBIG, sqlite3.SQLITE_INTERRUPT,
})  # fmt: skip
_NO_ROOM = frozenset({
    sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_FSYNC, sqlite3.SQLITE_IOERR_TRUNCATE, sqlite3.SQLITE_IOERR_SHMSIZE,
})  # fmt: skip
