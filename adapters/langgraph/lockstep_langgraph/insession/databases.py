"""Databases behind savers: which they are, and that nothing of them is needed in a replay."""

from __future__ import annotations

import functools
import os
import sqlite3
from collections.abc import Callable
from types import ModuleType
from typing import Any

from lockstep.log.model import Status
from lockstep.session import current as sessions
from lockstep.session import lanes
from lockstep.session.lanes import leave
from lockstep.taps.files import databases
from lockstep_langgraph.insession import operations, waiting
from lockstep_langgraph.insession.kept import Session


class NoConnection:
    """In the place of a saver's connection in a replay: nobody asks it for anything."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __repr__(self) -> str:
        return f"<no connection to {self.path}: a replay>"


def path_of(connection: Any) -> str:
    """The file of a connection, of `sqlite3` or `aiosqlite`; "" for one in memory, or of something else."""
    if isinstance(connection, NoConnection):
        return _file(connection.path)
    if not isinstance(connection, sqlite3.Connection):
        return _named(getattr(connection, "_connector", None))
    try:
        rows = connection.execute("PRAGMA database_list").fetchall()
    except sqlite3.Error:
        return ""  # it is closed, or another thread's
    return next((str(file) for _, name, file in rows if name == "main" and file), "")


def _named(connector: Any) -> str:
    """What `aiosqlite.connect` was given: it keeps it in the function that connects."""
    code, cells = getattr(connector, "__code__", None), getattr(connector, "__closure__", None)
    if code is None or not cells:
        return ""
    held = dict(zip(code.co_freevars, cells, strict=False))
    try:
        return _file(os.fsdecode(held["database"].cell_contents))
    except (KeyError, TypeError, ValueError):
        return ""


def _file(text: str) -> str:
    return "" if text.startswith(":memory:") else text


def carry(module: ModuleType) -> None:
    """`aiosqlite` runs a connection's statements on a thread of its own: what a saver asks for is the saver's there,
    and the thread is the program's in what the program asks for."""
    connection: Any = module.Connection
    plain = connection._execute

    @functools.wraps(plain)
    async def _execute(self: Any, function: Any, *args: Any, **kwargs: Any) -> Any:
        savers = True if sessions.session is not None and lanes.inside() is not None else None

        def run(*args: Any, **kwargs: Any) -> Any:
            lanes.strand.inside = savers
            return function(*args, **kwargs)

        return await plain(self, run, *args, **kwargs)

    connection._execute = _execute


def served(session: Any, saver: Any) -> None:
    """A saver's threads are served, so what its database holds is no matter: it may be another one than recorded."""
    path = path_of(getattr(saver, "conn", None))
    if path:
        databases.overlooked(session, path)


class Opened:
    """`with Saver.from_conn_string(...)`: the connection is the saver's own, and a replay makes none."""

    def __init__(self, on: Session, cls: Any, plain: Callable[..., Any], args: tuple[Any, ...], kwargs: Any) -> None:
        self.on = on
        self._cls = cls
        self._make: Callable[[], Any] = functools.partial(plain, cls, *args, **kwargs)
        self._args = args
        self._options = {name: value for name, value in kwargs.items() if name == "serde"}
        self._manager: Any = None

    def stand_in(self) -> Any:
        """A saver that has no connection."""
        return self._cls(NoConnection(str(self._args[0]) if self._args else ""), **self._options)

    def _inside(self, function: Callable[..., Any], *args: Any) -> Any:
        token = lanes.INSIDE.set(lanes.INSIDE.get() or True)
        try:
            return function(*args)
        finally:
            leave(token)

    def __enter__(self) -> Any:
        if self.on.scratch:
            return self.stand_in()
        self._manager = self._make()
        return self._inside(self._manager.__enter__)

    def __exit__(self, *error: object) -> Any:
        return None if self._manager is None else self._inside(self._manager.__exit__, *error)

    async def __aenter__(self) -> Any:
        op = self._op("open")
        if self.on.scratch:
            call = op.recorded()
            if call is not None:
                op.outcome(await call.atake(), call)
            return self.stand_in()
        self._manager = self._make()
        saver, waited = await waiting.real(op, self._manager.__aenter__)
        if waited is not None:
            waited.end(Status.OK)
        return saver

    async def __aexit__(self, *error: object) -> Any:
        op = self._op("close")
        if self._manager is None:
            call = op.recorded()
            if call is not None:
                op.outcome(await call.atake(), call)
            return None
        passed, waited = await waiting.real(op, lambda: self._manager.__aexit__(*error))
        if waited is not None:
            waited.end(Status.OK)
        return passed

    def _op(self, name: str) -> operations.Op:
        return operations.Op(self.on, self._cls, self._make, name, self._cls.__name__)
