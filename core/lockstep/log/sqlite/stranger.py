"""Opening a file that may have been made to do harm: a tape from somebody else.

A SQLite file can hold more than data: views and triggers under the names of our tables, generated columns that
make gigabytes, a journal beside it that is replayed on opening. So a tape is opened as a file that nobody changes
(`immutable`: what lies beside it is ignored), with everything switched off that it could start, and is refused
unless its schema is ours, letter for letter, and SQLite finds its structure sound. It is never written to.
"""

from __future__ import annotations

import os
import sqlite3
import stat

from lockstep.errors import Code, StoreError
from lockstep.log import untapped
from lockstep.log.sqlite.connection import as_store_error, query, uri

_MAGIC = b"SQLite format 3\x00"
_HEADER = 100
_MODES = slice(18, 20)  # write and read version: 1 for a rollback journal, 2 for a write-ahead log
_ROLLBACK = b"\x01\x01"

_LIMITS = (
    (sqlite3.SQLITE_LIMIT_ATTACHED, 0),
    (sqlite3.SQLITE_LIMIT_SQL_LENGTH, 10_000),
    (sqlite3.SQLITE_LIMIT_EXPR_DEPTH, 20),
    (sqlite3.SQLITE_LIMIT_COMPOUND_SELECT, 3),
    (sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH, 0),
    (sqlite3.SQLITE_LIMIT_COLUMN, 40),
    (sqlite3.SQLITE_LIMIT_VDBE_OP, 25_000),
)
_SMALLEST_LENGTH = 1 << 20
_LARGEST_LENGTH = 1_000_000_000

_PRAGMAS = ("cell_size_check=ON", "mmap_size=0", "trusted_schema=OFF", "query_only=ON", "cache_size=-8000")
_FUNCTIONS = frozenset({"length", "coalesce", "max", "count", "sum"})
_PATIENCE = 60.0  # seconds for one question
_STEPS = 100_000  # of SQLite's machine, between looks at the clock


def is_tape(path: str) -> bool:
    """Whether the file is a SQLite database without a write-ahead log, as an export is. Not to be asked of a store
    that this process has open: closing any descriptor of it drops SQLite's locks (see `connection`)."""
    header = head(path)
    return header[:16] == _MAGIC and header[_MODES] == _ROLLBACK


def head(path: str) -> bytes:
    """The first bytes of a file. Raises StoreError LS201."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):  # of a pipe SQLite would wait for somebody to write
            raise StoreError(Code.NOT_A_STORE, f"not a file: {path}")
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
    except FileNotFoundError:
        raise StoreError(Code.NOT_A_STORE, f"no such file: {path}") from None
    except OSError as error:
        raise StoreError(Code.UNWRITABLE, f"cannot read {path}: {error.strerror}") from error
    try:
        return os.read(descriptor, _HEADER)
    except OSError as error:
        raise StoreError(Code.NOT_A_STORE, f"not a Lockstep store: {path} ({error.strerror})") from error
    finally:
        os.close(descriptor)


def connect(path: str) -> sqlite3.Connection:
    """A connection to a tape that can do nothing but read. Raises StoreError."""
    try:
        size = os.stat(path).st_size
        connection = sqlite3.connect(
            uri(path, "ro&immutable=1"), uri=True, timeout=0, isolation_level=None, check_same_thread=False
        )
    except FileNotFoundError:
        raise StoreError(Code.NOT_A_STORE, f"no such file: {path}") from None
    except sqlite3.Error as error:
        raise as_store_error(error, path) from error
    try:
        connection.setconfig(sqlite3.SQLITE_DBCONFIG_DEFENSIVE, True)
        connection.setconfig(sqlite3.SQLITE_DBCONFIG_ENABLE_TRIGGER, False)
        connection.setconfig(sqlite3.SQLITE_DBCONFIG_ENABLE_VIEW, False)
        connection.setconfig(sqlite3.SQLITE_DBCONFIG_TRUSTED_SCHEMA, False)
        for limit, value in _LIMITS:
            connection.setlimit(limit, value)
        # No value of an honest file is longer than the file.
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, min(max(size, _SMALLEST_LENGTH), _LARGEST_LENGTH))
        for pragma in _PRAGMAS:
            query(connection, path, f"PRAGMA {pragma}")
        connection.set_progress_handler(_Deadline(), _STEPS)
    except BaseException:
        connection.close()
        raise
    return connection


def shut(connection: sqlite3.Connection) -> None:
    """Allows questions about tables only from now on, after the file was found to be what it should be."""
    connection.set_authorizer(_authorize)


class _Deadline:
    """Stops a question that takes too long. A question begins where the clock was not looked at for a while."""

    def __init__(self) -> None:
        self._began = self._seen = 0.0

    def __call__(self) -> int:
        now = untapped.monotonic()
        if now - self._seen > 1.0:
            self._began = now
        self._seen = now
        return int(now - self._began > _PATIENCE)


def _authorize(action: int, first: str | None, second: str | None, *_: str | None) -> int:
    if action in (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ):
        return sqlite3.SQLITE_OK
    if action == sqlite3.SQLITE_FUNCTION and second in _FUNCTIONS:
        return sqlite3.SQLITE_OK
    if action == sqlite3.SQLITE_PRAGMA and first == "quick_check":
        return sqlite3.SQLITE_OK
    return sqlite3.SQLITE_DENY
