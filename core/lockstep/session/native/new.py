"""A new run that a framework keeps itself: under a name that nobody has yet, with what it is recorded with."""

from __future__ import annotations

import functools
import itertools
import os
import platform
from collections.abc import Iterable, Mapping
from importlib.metadata import PackageNotFoundError, version

from lockstep.log.address import quote
from lockstep.log.model import Value
from lockstep.log.store import open_store
from lockstep.session.native.journal import Journal

_LONGEST = 150  # characters of a run's name


@functools.cache
def versions(*distributions: str) -> Mapping[str, Value]:
    """Those of these that are installed. Reading them takes milliseconds, and every new run says them."""
    found: dict[str, Value] = {}
    for name in distributions:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def run_name(adapter: str, name: str, number: int = 1) -> str:
    """What a run is called; from 2 on where earlier ones have the name."""
    return f"{adapter}/{quote(name)[:_LONGEST]}{f'-{number}' if number > 1 else ''}"


def journal(
    store: str | os.PathLike[str] | None, adapter: str, run: str, about: Mapping[str, Value],
    distributions: Iterable[str] = (),
) -> Journal:  # fmt: skip
    """The journal of a new run `<adapter>/<run>` or, if that exists, `<adapter>/<run>-2`, …

    about          what is recorded, for the run's meta
    distributions  whose versions that says

    Raises StoreError.
    """
    with open_store(os.fspath(store) if store is not None else None, create=True) as opened:
        path, taken = opened.path, frozenset(opened.names())
    told: dict[str, Value] = {"python": platform.python_version(), **versions(*distributions)}
    for number in itertools.count(1):
        name = run_name(adapter, run, number)
        if name in taken:
            continue
        native: dict[str, Value] = {"run": name.removeprefix(f"{adapter}/"), **about}
        made = Journal.open(path, name, {"adapter": adapter, "native": native, "versions": told})
        if made.is_new:
            return made
        made.close()  # another process has taken the name just now
    raise AssertionError("unreachable")
