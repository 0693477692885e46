"""The clock: every way in which Python code asks what time it is.

Functions of module `time` are replaced as attributes, the constructors of `datetime` and `date` in
their types' dicts. Readings belong to lanes and come back exactly (`lockstep.session.reads`); what
waits in the standard library keeps the real clock.

Not seen: C code that asks the system itself (numpy's `datetime64("now")`, SQLite's `datetime('now')`,
drivers in C or Rust), and names bound before an in-process session that no module global holds.
"""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Callable
from types import ModuleType
from typing import Any

from lockstep.session.lanes import ours
from lockstep.taps.clock import private, readers, travel, zone
from lockstep.taps.held import Originals
from lockstep.taps.imports import when_imported
from lockstep.taps.patches import Patches

_taps = readers.taps()

_wall = Patches()  # attributes of module `time` that tell the date
_steady = Patches()  # and those that do not
_wall_on = False
_steady_on = False
_prepared = False  # what stays for good: the hooks for modules to come
_undo: list[Callable[[], None]] = []


def install() -> None:
    """Patches once; inert without a session (30 ns a call)."""
    global _prepared, _steady_on
    if not _steady_on:
        _steady_on = True
        for name in readers.STEADY & _taps.keys():
            _steady.set(time, name, _taps[name])
    _install_wall()
    if not _prepared:
        _prepared = True
        when_imported("datetime", _install_dates)
        private.install(_taps, time)
        travel.install(_uninstall_wall, _install_wall)


def uninstall() -> list[str]:
    """Takes the patches off; returns what others have patched on top, which stays."""
    global _steady_on
    kept = _uninstall_wall()
    if _steady_on:
        _steady_on = False
        kept += _steady.undo()
    return kept


def _install_wall() -> None:
    global _wall_on
    if _wall_on:
        return
    _wall_on = True
    for name in _taps.keys() - readers.STEADY:
        _wall.set(time, name, _taps[name])
    _install_dates(sys.modules.get("datetime"))


def _uninstall_wall() -> list[str]:
    global _wall_on
    if not _wall_on:
        return []
    _wall_on = False
    kept = _wall.undo()
    if "datetime" in sys.modules:
        from lockstep.taps.clock import dates

        kept += dates.uninstall()
    return kept


def _install_dates(module: ModuleType | None) -> None:
    if module is None or not _wall_on:
        return
    from lockstep.taps.clock import dates

    dates.install(_taps["time"])


def start(session: Any, facts: dict[str, Any] | None = None) -> dict[str, Any]:
    """Begins to record or to replay. `facts`: what the recording's `start` returned, None while recording."""
    install()
    # Loaded here, unrecorded, since it reads the clock while it is: whether we or the program need it first is
    # not the same in a replay. 3 ms after what a session has loaded.
    logging = ours(importlib.import_module)("logging")
    if facts is None:
        return {**zone.facts(), "logging": getattr(logging, "_startTime", None)}
    if zone.restore(facts) is not None:
        _undo.append(zone.undo)
    began, recorded = getattr(logging, "_startTime", None), facts.get("logging")
    if began is not None and type(recorded) is type(began):
        vars(logging)["_startTime"] = recorded
        _undo.append(lambda: vars(logging).update(_startTime=began))
    return facts


def stop(session: Any) -> None:
    """Ends it: zone and log epoch are what they were."""
    while _undo:
        _undo.pop()()


def held_names() -> list[str]:
    """`module.name` of each global outside the standard library that still holds an original clock.

    Empty in a session, which rewrites them; before one, it tells what a late start would miss without
    that. Default arguments, closures and class attributes are not seen.
    """
    return originals().names()


def originals() -> Originals:
    """What other modules may have taken before, with what stands for it."""
    found = Originals({readers.real[name]: tap for name, tap in _taps.items()})
    if "datetime" in sys.modules:
        from lockstep.taps.clock import dates

        for owner, name in dates.CAPTURABLE:
            found.add_bound(owner, name)
    return found
