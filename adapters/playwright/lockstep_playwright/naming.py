"""The journal of a new run, under a name that nobody has yet."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

from lockstep.log.model import Value
from lockstep.log.store import open_store
from lockstep.session import current
from lockstep.session.native import Journal, Memory
from lockstep_playwright import layout


def default() -> str:
    """The stem of the script's name."""
    return os.path.splitext(os.path.basename(sys.argv[0] or "python"))[0].strip("-") or "python"


def versions() -> dict[str, Value]:
    """What is recorded with."""
    return {"playwright": version("playwright"), "python": platform.python_version()}


def journal(store: str | os.PathLike[str] | None, run: str, meta: Mapping[str, Value]) -> Journal:
    """A new run of this name or, if that exists, `name-2`, … Raises StoreError. Where a session replays, nothing is
    stored: what was recorded once is there already."""
    session: Any = current.session
    if session is not None and not session.recording:
        return Memory(meta=meta)
    name = run or default()
    path = os.fspath(store) if store is not None else None
    with open_store(path, create=True) as opened:
        path = opened.path
    number = 1
    while True:
        told = layout.run_name(name, number)
        made = Journal.open(path, told, {**meta, "native": {"run": told}})
        if made.is_new:
            return made
        made.close()
        number += 1
