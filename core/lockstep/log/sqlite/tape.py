"""Tapes: one run as a clean file of its own, made from a store and taken into another.

A tape is a SQLite file with the rows of the run as they are stored, so chain and seals hold. It has no write-ahead
log and nothing beside it, may be copied by any means, and is read where nobody may write.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator

from lockstep.errors import Code, StoreError
from lockstep.log.model import RunInfo
from lockstep.log.sqlite import schema, stranger
from lockstep.log.sqlite.connection import connect, query, transaction, uri
from lockstep.log.sqlite.store import SqliteStore, check_name, free_name

# Pages of a small run's tape: half of a page is empty in each table, on average.
_SMALL_PAGE, _PAGE = 512, 1024
_SMALL = 200_000

_BRANCH = "pos, seq, steps, head, flying"
_STREAM = "process, base, state, events, steps, size, faults, head"

_COPIED = (
    "INSERT INTO run SELECT id, name, started, origin, meta FROM source.run WHERE id=:run",
    "INSERT INTO branch SELECT id, run, name, parent, pos, seq, steps, head, flying FROM source.branch WHERE run=:run",
)
_COPIED_OF_A_STREAM = (
    "INSERT INTO stream SELECT id, branch, process, base, state, events, steps, size, faults, head"
    " FROM source.stream WHERE id=:stream",
    "INSERT INTO segment SELECT id, count, steps, size, late, blob, head, cols, body"
    " FROM source.segment WHERE id BETWEEN :first AND :last ORDER BY id",
    "INSERT INTO big SELECT id, data FROM source.big WHERE id BETWEEN :first AND :last ORDER BY id",
    "INSERT INTO seal SELECT stream, key, events, mac FROM source.seal WHERE stream=:stream",
)


def write(store: str, run: str, file: str) -> None:
    """Writes a run of a store, as it is now, to a new file. Others may go on writing to the store.

    Raises StoreError: LS203 where the file exists or cannot be written, LS205.
    """
    with SqliteStore.open(store, create=False) as opened:
        info = opened.run(run).info
    connection = _new(file)
    try:
        page = _SMALL_PAGE if sum(branch.size for branch in info.branches) < _SMALL else _PAGE
        for pragma in (f"page_size={page}", "journal_mode=OFF", "synchronous=OFF"):
            query(connection, file, f"PRAGMA {pragma}")
        for table in schema.TAPE:
            query(connection, file, table)
        query(connection, file, f"PRAGMA application_id={schema.APPLICATION_ID}")
        query(connection, file, f"PRAGMA user_version={schema.FORMAT}")
        _copy(connection, store, info, file)
    except BaseException:
        connection.close()
        os.unlink(file)
        raise
    connection.close()


def _new(file: str) -> sqlite3.Connection:
    try:
        os.close(os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666))
    except FileExistsError:
        raise StoreError(Code.UNWRITABLE, f"the file exists: {file}") from None
    except OSError as error:
        raise StoreError(Code.UNWRITABLE, f"cannot write {file}: {error.strerror}") from error
    connection = sqlite3.connect(uri(file, "rw"), uri=True, isolation_level=None)
    connection.setconfig(sqlite3.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, True)  # of the store that will be attached
    return connection


def _copy(connection: sqlite3.Connection, store: str, info: RunInfo, file: str) -> None:
    attached = uri(store, "ro&immutable=1" if stranger.is_tape(store) else "ro")
    query(connection, store, "ATTACH ? AS source", (attached,))
    try:
        with transaction(connection, file):
            # One transaction sees one state of the store, whoever writes to it meanwhile.
            for sql in _COPIED:
                connection.execute(sql, {"run": info.id})
            streams = connection.execute(
                "SELECT stream.id FROM source.stream JOIN branch ON branch.id=stream.branch ORDER BY stream.id"
            ).fetchall()
            for (stream,) in streams:
                keys = {"stream": stream, "first": schema.first_key(stream), "last": schema.last_key(stream)}
                for sql in _COPIED_OF_A_STREAM:
                    connection.execute(sql, {name: keys[name] for name in keys if f":{name}" in sql})
    finally:
        with contextlib.suppress(sqlite3.Error):
            connection.execute("DETACH source")


def read(store: SqliteStore, tape: SqliteStore, run: RunInfo, origin: str) -> str:
    """Takes a run of a tape into a store and returns its name there. The caller has checked the run.

    Raises StoreError.
    """
    check_name(run.name)
    connection = connect(store.path, "rw")
    try:
        with transaction(connection, store.path):
            name = free_name(connection, run.name)
            [(started, meta)] = tape.ask("SELECT started, meta FROM run WHERE id=?", (run.id,), "ib")
            new = _insert(connection, "run (name, started, origin, meta)", name, started, origin, meta)
            branches: dict[int, int] = {0: 0}
            # A parent was made before its branches, so it has been given its new number when they come.
            for old, title, parent, *rest in tape.ask(
                f"SELECT id, name, parent, {_BRANCH} FROM branch WHERE run=? ORDER BY id", (run.id,), "itiiiibb"
            ):
                if parent not in branches:
                    raise StoreError(Code.DAMAGED, f"branch {title} is older than the one that it comes from")
                branches[old] = _insert(
                    connection, f"branch (run, name, parent, {_BRANCH})", new, title, branches[parent], *rest
                )
            for branch in run.branches:
                for info in branch.streams:
                    _take_stream(connection, tape, info.id, branches)
        return name
    finally:
        connection.close()


def _take_stream(connection: sqlite3.Connection, tape: SqliteStore, old: int, branches: dict[int, int]) -> None:
    [(branch, *rest)] = tape.ask(f"SELECT branch, {_STREAM} FROM stream WHERE id=?", (old,), "itbiiiiib")
    new = _insert(connection, f"stream (branch, {_STREAM})", branches[branch], *rest)
    for number, *columns in _rows(
        tape, old, "SELECT id, count, steps, size, late, blob, head, cols, body FROM segment", "iiiiiibbb"
    ):
        connection.execute("INSERT INTO segment VALUES (?,?,?,?,?,?,?,?,?)", (schema.first_key(new) | number, *columns))
    for number, data in _rows(tape, old, "SELECT id, data FROM big", "ib"):
        connection.execute("INSERT INTO big VALUES (?,?)", (schema.first_key(new) | number, data))
    for key, events, mac in tape.ask("SELECT key, events, mac FROM seal WHERE stream=?", (old,), "tib"):
        connection.execute("INSERT INTO seal VALUES (?,?,?,?)", (new, key, events, mac))


def _rows(tape: SqliteStore, stream: int, select: str, shape: str) -> Iterator[tuple[int, ...]]:
    """The rows of a stream, one in memory at a time, with their numbers in it in the place of their keys."""
    after, last = schema.first_key(stream) - 1, schema.last_key(stream)
    while found := tape.ask(f"{select} WHERE id > ? AND id <= ? ORDER BY id LIMIT 1", (after, last), shape):
        after, *columns = found[0]
        yield schema.number(after), *columns


def _insert(connection: sqlite3.Connection, into: str, *values: object) -> int:
    """Adds a row and returns its number."""
    number: int = connection.execute(
        f"INSERT INTO {into} VALUES ({','.join('?' * len(values))}) RETURNING id", values
    ).fetchone()[0]
    return number
