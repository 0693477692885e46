"""The journal of a crew's, agent's or flow's own run, under a name that nobody has yet."""

from __future__ import annotations

import itertools
import os
import platform
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version

from lockstep.log.address import quote
from lockstep.log.model import Value
from lockstep.log.store import open_store
from lockstep.session.native import Journal
from lockstep_crewai.adapter import adapter

_LONGEST = 150  # characters of a run's name


def versions() -> dict[str, Value]:
    """What is recorded with."""
    found: dict[str, Value] = {"python": platform.python_version()}
    for name in ("crewai", "crewai-core", "openai", "litellm"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def run_name(name: str, number: int = 1) -> str:
    """What a run is called; from 2 on where earlier ones have the name."""
    return f"{adapter.name}/{quote(name)[:_LONGEST]}{f'-{number}' if number > 1 else ''}"


def journal(store: str | os.PathLike[str] | None, run: str, about: Mapping[str, Value]) -> Journal:
    """A new run `crewai/<run>` or, if that exists, `crewai/<run>-2`, … Raises StoreError.

    about  what is recorded, see `wrapping.Root.about`
    """
    with open_store(os.fspath(store) if store is not None else None, create=True) as opened:
        path, taken = opened.path, frozenset(opened.names())
    for number in itertools.count(1):
        if run_name(run, number) in taken:
            continue
        name = run_name(run, number)
        native: dict[str, Value] = {"run": name.removeprefix(f"{adapter.name}/"), **about}
        made = Journal.open(path, name, {"adapter": adapter.name, "native": native, "versions": versions()})
        if made.is_new:
            return made
        made.close()  # another process has taken the name just now
    raise AssertionError("unreachable")
