"""The store: which runs there are, and making and deleting them."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Self

from lockstep.errors import AddressError, Code, StoreError
from lockstep.log import seal, untapped, vault
from lockstep.log.address import MAIN
from lockstep.log.forked import ForkedRun
from lockstep.log.model import BranchInfo, Event, RunInfo, RunState, Value
from lockstep.log.pack import encode_plain
from lockstep.log.sqlite import branches, liveness, native, opening, rows, schema, stranger
from lockstep.log.sqlite.append import SqliteAppender, sealed
from lockstep.log.sqlite.connection import connect, query, transaction
from lockstep.log.sqlite.read import Nothing, SqliteRun
from lockstep.log.sqlite.shared import SharedStream, Writer
from lockstep.log.steps import is_native
from lockstep.log.store import ROOT, Fault
from lockstep.log.unpack import Expander

_MAX_NAME = 200

# Connections that a forked child inherited: closing them there is forbidden as much as using them.
_abandoned: list[sqlite3.Connection] = []

# Device and inode of the stores that this process has opened: those it must not read by itself.
_opened: set[tuple[int, int]] = set()


class SqliteStore:
    """A store in one SQLite file. See `lockstep.log.store.Store`."""

    def __init__(self, path: str, reader: sqlite3.Connection | None, *, tape: bool = False) -> None:
        self.path = path
        self._reader = reader
        self.tape = tape
        self._process = os.getpid()
        self._lock = untapped.allocate_lock()
        self._writer: Writer | None = None  # of the streams that others write too

    @classmethod
    def open(cls, path: str, *, create: bool) -> SqliteStore:
        """Opens the file, checks what it is, and makes the tables of a new one. Raises StoreError."""
        if not create and not os.path.exists(path):
            raise StoreError(Code.NOT_A_STORE, f"no such store: {path}")
        if create and (not opening.is_filled(path) or opening.is_begun(path)):
            opening.make(path)
        tape = not create and opening.identity(path) not in _opened and stranger.is_tape(path)
        reader = opening.reading(path, tape=tape)
        try:
            opening.check(reader, path, stranger_=tape)
        except BaseException:
            reader.close()
            raise
        if not tape:
            _opened.add(opening.identity(path))
        if create:
            # A recording asks nothing of its store; a connection left open would warn when it is collected.
            reader.close()
            return cls(path, None)
        return cls(path, reader, tape=tape)

    def create_run(self, name: str, meta: Value, *, started: int | None = None) -> RunInfo:
        check_name(name)
        self._must_be_ours()
        seal.given()  # before anything is made: a key of no use is refused
        started = untapped.time_ns() if started is None else started
        connection = connect(self.path, "rw")
        try:
            with transaction(connection, self.path):
                name = free_name(connection, name)
                # In what the chain covers: a run that is renamed, or imported under another name, says so.
                packed = encode_plain({**meta, "run": name} if isinstance(meta, dict) else meta)
                run = connection.execute(
                    "INSERT INTO run (name, started, origin, meta) VALUES (?,?,'',?) RETURNING id",
                    (name, started, packed),
                ).fetchone()[0]
                connection.execute("INSERT INTO branch VALUES (NULL,?,?,0,0,0,0,x'',x'')", (run, MAIN))
                live = connection.execute("SELECT id FROM stream WHERE state=0").fetchall()
                liveness.sweep(self.path, {str(stream) for (stream,) in live if self._is_live(stream)})
        finally:
            connection.close()
        return RunInfo(run, name, RunState.GROWING, started, 0, len(packed), 0, (), "")

    def create_branch(self, run: str, name: str, parent: str, pos: int) -> BranchInfo:
        branches.check_name(name)
        self._must_be_ours()
        stored, found = self._stored(run)
        connection = connect(self.path, "rw")
        try:
            if not is_native(stored.meta):
                left, made = branches.place(found, lambda branch: self.run(run, branch), run, parent, pos)
                main = left.main
                head = stored.head(main.info.id, made.seq - left.seq) if main is not None else b""
            with transaction(connection, self.path):
                if is_native(stored.meta):
                    stored, found = self._stored(run)
                    left, made, head = native.place(stored, found, parent, pos)
                number, name = branches.insert(connection, stored.info.id, name, left, made, head)
        finally:
            connection.close()
        return next(one for one in self.run(run, name).info.branches if one.id == number)

    def stream(
        self, run: RunInfo | str, process: str, fault: Fault | None = None, branch: str = MAIN
    ) -> SqliteAppender:
        name = run if isinstance(run, str) else run.name
        self._must_be_ours()
        key = seal.given()
        connection = connect(self.path, "rw")
        lock = None
        try:
            with transaction(connection, self.path):
                line, started, meta = branches.to_write(connection, name, branch)
                base = branches.base(line, started, meta, process)
                stream = connection.execute(
                    "INSERT INTO stream (branch, process, base, state, events, steps, size, faults, head)"
                    " VALUES (?,?,?,0,0,0,0,0,?) RETURNING id",
                    (line.id, process, base, base),
                ).fetchone()[0]
                if key is not None:
                    connection.execute(*sealed(stream, seal.make(key, base, 0, 0, 0, base)))
                # Before the commit: nobody may see the stream while its lock is free.
                lock = self._take_lock(stream)
            flying = branches.flying_at(line) if process == ROOT else ()
            counted = is_native(Expander(Nothing()).expand(meta))
            return SqliteAppender(connection, self.path, stream, base, lock, fault, key, flying, native=counted)
        except BaseException:
            connection.close()
            if lock is not None:
                lock.release(remove=True)
            raise

    def open_shared(
        self, run: str, meta: Mapping[str, Value], branch: str = MAIN, *, fault: Fault | None = None
    ) -> SharedStream:
        check_name(run)
        self._must_be_ours()
        key = seal.given()
        writer = self._shared_writer()
        with writer.writing() as connection:
            number = native.find(connection, run)
            if number is None:
                if branch != MAIN:
                    raise StoreError(Code.NO_RUN, f"no run named {run} in {self.path}. See: lockstep runs")
                number = native.create(connection, run, meta, untapped.time_ns())
            opened = native.open_stream(connection, number, run, branch)
            stream = SharedStream(writer, opened, key, fault)
            if opened.is_new:
                stream.begin(connection, native.opening(opened, os.getpid()) if branch == MAIN else ())
        return stream

    def fork_shared(
        self, run: str, name: str, parent: str, pos: int, fork: Event, *, fault: Fault | None = None
    ) -> SharedStream:
        branches.check_name(name)
        self._must_be_ours()
        key = seal.given()
        writer = self._shared_writer()
        with writer.writing() as connection:
            # Nobody adds or folds rows meanwhile, so the parent may be growing.
            stored, found = self._stored(run)
            left, made, head = native.place(stored, found, parent, pos)
            _, name = branches.insert(connection, stored.info.id, name, left, made, head)
            opened = native.open_stream(connection, stored.info.id, run, name)
            stream = SharedStream(writer, opened, key, fault)
            stream.begin(connection, [fork])
        return stream

    def _shared_writer(self) -> Writer:
        with self._lock:
            if self._writer is None:
                self._writer = Writer(self.path)
            return self._writer

    def hurry(self, seconds: float) -> None:
        writer = self._shared_writer()
        writer.patience = writer.opening = seconds

    def replace_run(self, old: str, new: str) -> None:
        self._must_be_ours()
        stored, found = self._stored(old)
        if any(line.state is RunState.GROWING for line in found):
            raise StoreError(Code.UNWRITABLE, f"run {old} is being written and cannot be replaced")
        connection = connect(self.path, "rw")
        try:
            with transaction(connection, self.path):
                if connection.execute("SELECT 1 FROM run WHERE name=?", (new,)).fetchone() is None:
                    raise StoreError(Code.NO_RUN, f"no run named {new} in {self.path}. See: lockstep runs")
                branches.delete(connection, native.branches_of(connection, stored.info.id))
                connection.execute("DELETE FROM run WHERE id=?", (stored.info.id,))
                connection.execute("UPDATE run SET name=? WHERE name=?", (old, new))
        finally:
            connection.close()
        self._forget(stored.meta)

    def names(self) -> list[str]:
        return [name for (name,) in self.ask("SELECT name FROM run ORDER BY started DESC, id DESC", (), "t")]

    def runs(self) -> list[RunInfo]:
        found = self.ask("SELECT id, name, started, origin FROM run ORDER BY started DESC, id DESC", (), "itit")
        return [self._info(self._lines(row[0]), *row) for row in found]

    def run(self, name: str, branch: str = MAIN) -> SqliteRun | ForkedRun:
        stored, lines = self._stored(name)
        return stored if branch == MAIN else branches.reader(stored, lines, branch)

    def _stored(self, name: str) -> tuple[SqliteRun, list[branches.Line]]:
        """The reader of a run's main branch, and all its branches."""
        found = self.ask("SELECT id, name, started, origin, meta FROM run WHERE name=?", (name,), "ititb")
        if not found:
            raise StoreError(Code.NO_RUN, f"no run named {name} in {self.path}. See: lockstep runs")
        *row, meta = found[0]
        lines = self._lines(row[0])
        info = self._info(lines, *row)
        leaf = rows.TAPE_LEAF if self.tape else rows.MOST_LEAF
        return SqliteRun(self.ask, info, info.started, meta, lambda branch: self.run(name, branch), leaf), lines

    def _lines(self, run: int) -> list[branches.Line]:
        return branches.lines(self.ask, run, self._so_far)

    def has_run(self, name: str) -> bool:
        return bool(self.ask("SELECT 1 FROM run WHERE name=?", (name,)))

    def delete_run(self, name: str) -> None:
        self._must_be_ours()
        stored, found = self._stored(name)
        info, meta = stored.info, stored.meta
        if any(line.state is RunState.GROWING for line in found):
            raise StoreError(Code.UNWRITABLE, f"run {name} is being written and cannot be deleted")
        connection = connect(self.path, "rw")
        try:
            with transaction(connection, self.path):
                branches.delete(connection, [line.id for line in found])
                connection.execute("DELETE FROM run WHERE id=?", (info.id,))
        finally:
            connection.close()
        self._forget(meta)

    def delete_branch(self, run: str, name: str, *, below: bool = False) -> None:
        self._must_be_ours()
        _, found = self._stored(run)
        line = branches.pick(found, run, name)
        if name == MAIN:
            raise AddressError(Code.NO_ADDRESS, f"{run}@{MAIN} is the run itself: lockstep rm {run}")
        others = branches.below(found, line)
        if others and not below:
            names = ", ".join(other.name for other in others[:5]) + (", …" if len(others) > 5 else "")
            raise StoreError(Code.UNWRITABLE, f"{run}@{name} has branches that come from it: {names}")
        gone = [*others, line]
        growing = next((one.name for one in gone if one.state is RunState.GROWING), None)
        if growing is not None:
            raise StoreError(Code.UNWRITABLE, f"{run}@{growing} is being written and cannot be deleted")
        connection = connect(self.path, "rw")
        try:
            with transaction(connection, self.path):
                branches.delete(connection, [one.id for one in gone])
        finally:
            connection.close()

    def _forget(self, meta: Value) -> None:
        """With a run go its secrets, unless another run here is a copy of it."""
        named = meta.get("vault") if isinstance(meta, dict) else None
        if not vault.is_id(named):
            return
        # As it stands in a meta: looking into each would take long in a store of many threads.
        if self.ask("SELECT 1 FROM run WHERE instr(meta, ?) LIMIT 1", (str(named).encode(),)):
            return
        try:
            vault.delete(self.path, str(named))
        except OSError as error:
            raise StoreError(Code.UNWRITABLE, f"the run is deleted, its vault is not: {error}") from error

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
        with self._lock:
            if self._reader is not None and self._process == os.getpid():
                self._reader.close()
            self._reader = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _must_be_ours(self) -> None:
        if self.tape:
            raise StoreError(
                Code.UNWRITABLE,
                f"a tape is not written to: {self.path}. Take it over with: lockstep import {self.path}",
            )

    def _info(self, found: list[branches.Line], run: int, name: str, started: int, origin: str) -> RunInfo:
        main = next((line for line in found if line.name == MAIN), None)
        if main is None:
            raise StoreError(Code.DAMAGED, f"run {name} has no branch {MAIN}: {self.path}")
        return RunInfo(
            run, name, main.state, started,
            steps=sum(one.steps for one in main.streams), size=sum(one.size for one in main.streams),
            incomplete=sum(one.faults for one in main.streams), streams=tuple(one.info for one in main.streams),
            origin=origin or self.path if self.tape else origin, branches=branches.infos(found),
        )  # fmt: skip

    def _so_far(self, stream: int) -> tuple[int, int, int, bool]:
        """How far an open stream has come (events, steps, size), and whether its writer lives."""
        live = self._is_live(stream)
        found = self.ask(
            "SELECT id, count, steps, size FROM segment WHERE id BETWEEN ? AND ? ORDER BY id DESC LIMIT 1",
            (schema.first_key(stream), schema.last_key(stream)),
            "iiii",
        )
        if not found:
            return 0, 0, 0, live
        key, count, steps, size = found[0]
        return schema.number(key) + count, steps, size, live

    def _is_live(self, stream: int) -> bool:
        return not self.tape and liveness.is_held(self.path, str(stream))

    def _take_lock(self, stream: int) -> liveness.Lock | None:
        try:
            return liveness.hold(self.path, str(stream))
        except OSError as error:
            raise StoreError(Code.UNWRITABLE, f"cannot lock a stream of {self.path}: {error}") from error

    def ask(self, sql: str, values: Sequence[Any] = (), shape: str = "") -> list[Any]:
        """All rows of one question, see `connection.query`. Usable from any thread."""
        with self._lock:
            if self._process != os.getpid():
                if self._reader is not None:
                    _abandoned.append(self._reader)
                self._reader, self._process = None, os.getpid()
            if self._reader is None:
                self._reader = opening.reading(self.path, tape=self.tape)
            return query(self._reader, self.path, sql, values, shape)

    @contextmanager
    def steady(self) -> Iterator[None]:
        if self.tape:  # nobody writes to it
            yield
            return
        self.ask("BEGIN")
        try:
            yield
        finally:
            self.ask("COMMIT")


def check_name(name: str) -> None:
    """Raises StoreError LS205 for what cannot be a run's name."""
    if not name or len(name) > _MAX_NAME or not name.isprintable() or set(name) & set("@:"):
        raise StoreError(
            Code.NO_RUN,
            f"not a name for a run: {name[:_MAX_NAME]!r}. It may be up to {_MAX_NAME} printable "
            "characters without @ and :",
        )


def free_name(connection: sqlite3.Connection, name: str) -> str:
    """The name, with a number where it is taken."""
    if not connection.execute("SELECT 1 FROM run WHERE name=?", (name,)).fetchone():
        return name
    # "." follows "-" in the order of texts, so this range is the names that begin with "name-".
    taken = connection.execute("SELECT name FROM run WHERE name > ? AND name < ?", (name + "-", name + "."))
    numbers = [taken_name[len(name) + 1 :] for (taken_name,) in taken]
    return f"{name}-{max((int(n) for n in numbers if n.isdecimal() and n.isascii()), default=1) + 1}"
