"""A store's file: making one, connecting to it, and checking that it is what it says."""

from __future__ import annotations

import os
import sqlite3
from typing import Any

from lockstep.errors import Code, StoreError
from lockstep.log.sqlite import schema, stranger
from lockstep.log.sqlite.connection import connect, query, transaction


def is_filled(path: str) -> bool:
    """Whether there is a file with something in it."""
    try:
        return os.stat(path).st_size > 0
    except OSError:
        return False


def is_begun(path: str) -> bool:
    """Whether somebody is making it just now: it is a database, and has no table yet."""
    try:
        connection = connect(path, "ro")
    except StoreError:
        return False
    try:
        return not query(connection, path, "SELECT 1 FROM sqlite_schema LIMIT 1")
    except StoreError:
        return False
    finally:
        connection.close()


def make(path: str) -> None:
    """Makes the tables of a store, unless somebody else has just done that. Raises StoreError."""
    connection = connect(path, "rwc")
    try:
        # Both only take effect before the first table. Pages of 1 kB: the empty tables of a small run weigh
        # 9 kB instead of 40.
        query(connection, path, "PRAGMA page_size=1024")
        query(connection, path, "PRAGMA journal_mode=WAL")
        with transaction(connection, path):
            if not connection.execute("SELECT 1 FROM sqlite_schema").fetchone():
                for table in schema.TABLES:
                    connection.execute(table)
                connection.execute("INSERT INTO store VALUES ('sqlite', ?)", (sqlite3.sqlite_version,))
                connection.execute(f"PRAGMA application_id={schema.APPLICATION_ID}")
                connection.execute(f"PRAGMA user_version={schema.FORMAT}")
    finally:
        connection.close()


def reading(path: str, *, tape: bool) -> sqlite3.Connection:
    """A connection that reads: of a tape, one that believes nothing. Raises StoreError."""
    if tape:
        return stranger.connect(path)
    try:
        return connect(path, "ro")
    except StoreError as error:
        if error.code is not Code.UNWRITABLE or not _is_at_rest(path):
            raise
    return connect(path, "ro&immutable=1")


def _is_at_rest(path: str) -> bool:
    """Whether all there is stands in the file itself, in a directory where we cannot make what SQLite needs to read a
    store that others write to."""
    if os.access(os.path.dirname(os.path.abspath(path)), os.W_OK):
        return False
    try:
        return os.stat(path + "-wal").st_size == 0
    except OSError:
        return True


def identity(path: str) -> tuple[int, int]:
    """Device and inode."""
    status = os.stat(path)
    return status.st_dev, status.st_ino


def check(connection: sqlite3.Connection, path: str, *, stranger_: bool = False) -> None:
    """Refuses what is no store of this format, or holds more than one does. Of a stranger's file the structure
    is checked too, and nothing else than reading is possible afterwards. Raises StoreError."""
    if query(connection, path, "PRAGMA application_id")[0][0] != schema.APPLICATION_ID:
        raise StoreError(Code.NOT_A_STORE, f"not a Lockstep store: {path}")
    version = query(connection, path, "PRAGMA user_version")[0][0]
    if version > schema.FORMAT:
        raise StoreError(
            Code.TOO_NEW,
            f"store is newer than this lockstep (format {version}, known up to {schema.FORMAT}): {path}. "
            "Upgrade with pip install -U lockstep-replay",
        )
    found = query(connection, path, "SELECT type, name, tbl_name, sql FROM sqlite_schema")
    if version < schema.FORMAT or frozenset(found) not in schema.KNOWN:
        raise StoreError(Code.DAMAGED, f"the tables are not those of a Lockstep store ({_odd(found)}): {path}")
    if stranger_:
        lines = [line for (line,) in query(connection, path, "PRAGMA quick_check(3)") if line != "ok"]
        if lines:
            raise StoreError(Code.DAMAGED, f"the file is damaged: {'; '.join(map(str, lines))}: {path}")
        stranger.shut(connection)


def _odd(found: list[tuple[Any, ...]]) -> str:
    expected = {(kind, name) for kind, name, _, _ in schema.KNOWN[0]}
    there = {(str(kind), str(name)) for kind, name, *_ in found}
    lacking = [f"no {kind} {name}" for kind, name in sorted(expected - there)]
    extra = [f"a {kind} {name[:40]}" for kind, name in sorted(there - expected)]
    known = ", ".join((lacking + extra)[:3])
    return known or "made in another way, perhaps by a Lockstep from before there were branches"
