"""Tapes: one run as a clean file of its own, made from a store and taken into another.

A tape is a SQLite file with the rows of the run as they are stored, so chain and seals hold. It has no write-ahead
log and nothing beside it, may be copied by any means, and is read where nobody may write. One may hold less than a
whole run: a branch with those that it comes from, or what the branch wrote itself, for a store that has the rest.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence

from lockstep.errors import Code, StoreError
from lockstep.log.address import MAIN
from lockstep.log.model import BranchInfo, RunInfo
from lockstep.log.sqlite import branches, schema, stranger
from lockstep.log.sqlite.connection import connect, query, transaction, uri
from lockstep.log.sqlite.store import SqliteStore, check_name, free_name

# Pages of a small run's tape: half of a page is empty in each table, on average.
_SMALL_PAGE, _PAGE = 512, 1024
_SMALL = 200_000

_BRANCH = "pos, seq, steps, head, flying"
_STREAM = "process, base, state, events, steps, size, faults, head"

_COPIED_RUN = "INSERT INTO run SELECT id, name, started, origin, meta FROM source.run WHERE id=?"
_COPIED_BRANCH = (
    "INSERT INTO branch SELECT id, run, name, parent, pos, seq, steps, head, flying FROM source.branch WHERE id=?"
)
_COPIED_OF_A_STREAM = (
    "INSERT INTO stream SELECT id, branch, process, base, state, events, steps, size, faults, head"
    " FROM source.stream WHERE id=:stream",
    "INSERT INTO segment SELECT id, count, steps, size, late, blob, head, cols, body"
    " FROM source.segment WHERE id BETWEEN :first AND :last ORDER BY id",
    "INSERT INTO big SELECT id, data FROM source.big WHERE id BETWEEN :first AND :last ORDER BY id",
    "INSERT INTO seal SELECT stream, key, events, mac FROM source.seal WHERE stream=:stream",
)


def write(store: str, run: str, file: str, branch: str = "", *, alone: bool = False) -> None:
    """Writes a run of a store, as it is now, to a new file. Others may go on writing to the store.

    branch  only this one with those that it comes from; "": all
    alone   only what the branch wrote itself: where it left the others is told, and what they hold is not

    Raises StoreError: LS203 where the file exists or cannot be written, LS205; AddressError LS206.
    """
    with SqliteStore.open(store, create=False) as opened:
        info = opened.run(run, branch or MAIN).info
    path = lineage(info, branch) if branch else []
    connection = _new(file)
    try:
        page = _SMALL_PAGE if sum(branch.size for branch in info.branches) < _SMALL else _PAGE
        for pragma in (f"page_size={page}", "journal_mode=OFF", "synchronous=OFF"):
            query(connection, file, f"PRAGMA {pragma}")
        for table in schema.TAPE:
            query(connection, file, table)
        query(connection, file, f"PRAGMA application_id={schema.APPLICATION_ID}")
        query(connection, file, f"PRAGMA user_version={schema.FORMAT}")
        _copy(connection, store, info, file, path, path[-1:] if alone else path)
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


def lineage(info: RunInfo, branch: str) -> list[int]:
    """The numbers of a branch and those that it comes from, main first."""
    by_name = {one.name: one for one in info.branches}
    path = [by_name[branch]]
    while path[-1].parent:
        path.append(by_name[path[-1].parent])
    return [one.id for one in path[::-1]]


def _copy(
    connection: sqlite3.Connection, store: str, info: RunInfo, file: str, only: Sequence[int], whole: Sequence[int]
) -> None:
    """`only`: the numbers of branches, none for all; `whole`: of those whose streams are copied too."""
    attached = uri(store, "ro&immutable=1" if stranger.is_tape(store) else "ro")
    query(connection, store, "ATTACH ? AS source", (attached,))
    try:
        with transaction(connection, file):
            # One transaction sees one state of the store, whoever writes to it meanwhile.
            connection.execute(_COPIED_RUN, (info.id,))
            asked = "SELECT id FROM source.branch WHERE run=? ORDER BY id"
            every = [number for (number,) in connection.execute(asked, (info.id,))]
            for number in only or every:
                connection.execute(_COPIED_BRANCH, (number,))
            asked = "SELECT id FROM source.stream WHERE branch=? ORDER BY id"
            streams = [one for number in whole or every for (one,) in connection.execute(asked, (number,)).fetchall()]
            for stream in sorted(streams):
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
            numbers: dict[int, int] = {0: 0}
            # A parent was made before its branches, so it has been given its new number when they come.
            for old, title, parent, *rest in tape.ask(
                f"SELECT id, name, parent, {_BRANCH} FROM branch WHERE run=? ORDER BY id", (run.id,), "itiiiibb"
            ):
                if parent not in numbers:
                    raise StoreError(Code.DAMAGED, f"branch {title} is older than the one that it comes from")
                numbers[old] = _insert(
                    connection, f"branch (run, name, parent, {_BRANCH})", new, title, numbers[parent], *rest
                )
            for branch in run.branches:
                for info in branch.streams:
                    _take_stream(connection, tape, info.id, numbers)
        return name
    finally:
        connection.close()


def read_branch(store: SqliteStore, tape: SqliteStore, run: RunInfo, branch: BranchInfo) -> None:
    """Takes a branch of a tape into the run of that name, which has what the branch shares. The caller has checked it.

    Raises StoreError: LS203 where the run has a branch of that name, LS205; AddressError LS206 where it does not have
    the one that this comes from."""
    connection = connect(store.path, "rw")
    try:
        with transaction(connection, store.path):
            parent, _, _ = branches.to_write(connection, run.name, branch.parent)
            [row] = tape.ask(f"SELECT name, {_BRANCH} FROM branch WHERE id=?", (branch.id,), "tiiibb")
            [(of,)] = connection.execute("SELECT run FROM branch WHERE id=?", (parent.id,)).fetchall()
            branches.must_have_room(connection, of)
            number = connection.execute(
                f"INSERT OR IGNORE INTO branch (run, name, parent, {_BRANCH})"
                " SELECT run, ?, id, ?, ?, ?, ?, ? FROM branch WHERE id=? RETURNING id",
                (*row, parent.id),
            ).fetchone()
            if number is None:
                raise StoreError(Code.UNWRITABLE, f"run {run.name} has a branch {branch.name} already")
            for stream in branch.streams:
                _take_stream(connection, tape, stream.id, {branch.id: number[0]})
    finally:
        connection.close()


def _take_stream(connection: sqlite3.Connection, tape: SqliteStore, old: int, numbers: Mapping[int, int]) -> None:
    [(branch, *rest)] = tape.ask(f"SELECT branch, {_STREAM} FROM stream WHERE id=?", (old,), "itbiiiiib")
    new = _insert(connection, f"stream (branch, {_STREAM})", numbers[branch], *rest)
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
