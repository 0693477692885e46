"""The journal of a team's own run, under a name that nobody has yet."""

from __future__ import annotations

import itertools
import os
import platform
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version

from lockstep.log.address import quote
from lockstep.log.model import Value
from lockstep.log.store import open_store
from lockstep.session.native import Journal
from lockstep_autogen.adapter import adapter

_LONGEST = 150  # characters of a run's name


def versions() -> dict[str, Value]:
    """What is recorded with."""
    found: dict[str, Value] = {"python": platform.python_version()}
    for name in ("autogen-agentchat", "autogen-core", "autogen-ext"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def run_name(name: str, number: int = 1) -> str:
    """What a run is called; from 2 on where earlier ones have the name."""
    return f"{adapter.name}/{quote(name)[:_LONGEST]}{f'-{number}' if number > 1 else ''}"


def journal(
    store: str | os.PathLike[str] | None, run: str, kind: str, unseen: Sequence[str], members: Sequence[str] = ()
) -> Journal:
    """A new run `autogen/<run>` or, if that exists, `autogen/<run>-2`, … Raises StoreError.

    kind     the class of what is recorded
    unseen   what of it is not, in words
    members  the names of a team and its agents, which a team that is to do it again has too
    """
    with open_store(os.fspath(store) if store is not None else None, create=True) as opened:
        path, taken = opened.path, frozenset(opened.names())
    for number in itertools.count(1):
        if run_name(run, number) in taken:
            continue
        name = run_name(run, number)
        native: dict[str, Value] = {"run": name.removeprefix(f"{adapter.name}/"), "class": kind, "unseen": [*unseen]}
        if members:
            native["members"] = [*members]
        told: dict[str, Value] = {"adapter": adapter.name, "native": native, "versions": versions()}
        made = Journal.open(path, name, told)
        if made.is_new:
            return made
        made.close()  # another process has taken the name just now
    raise AssertionError("unreachable")
