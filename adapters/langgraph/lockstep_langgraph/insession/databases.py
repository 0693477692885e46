"""SQLite databases behind savers: which they are, and that a replay does not care what is in them."""

from __future__ import annotations

import os
import sqlite3
from typing import Any


def path_of(connection: Any) -> str:
    """The file of a connection, of `sqlite3` or `aiosqlite`; "" for one in memory, or of something else."""
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
        found = os.fsdecode(held["database"].cell_contents)
    except (KeyError, TypeError, ValueError):
        return ""
    return "" if found.startswith(":memory:") or not found else found
