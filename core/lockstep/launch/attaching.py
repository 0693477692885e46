"""Zero-code attach: in a program under `lockstep record` or `replay`, an adapter instruments its framework once that is
imported. In a session that is begun in code those do that say so.

So a session sees of a framework what its recording saw, whatever else of the adapter the program uses or has used.

Looking at each installed distribution, as `importlib.metadata` does, costs a program tens of milliseconds at its start.
So only distributions with `lockstep` in their name are looked at: one listing of each directory on `sys.path`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from operator import attrgetter
from types import ModuleType
from typing import TYPE_CHECKING

from lockstep.session import current, lanes

if TYPE_CHECKING:
    from lockstep.adapter import Adapter

_GROUP = "[lockstep.adapters]"
_MARK = "lockstep"
_PLAIN = "python"  # has nothing to attach
_STANDARD = os.path.dirname(os.__file__)


def watch(in_code: bool = False) -> None:
    """Prepares each adapter to instrument its framework for the session that is on, or, with `in_code`, each that does
    that for sessions begun in code. A fault of one is the session's, and stops nobody."""
    from lockstep.taps.imports import report_fault

    if current.session is not None:
        current.session.in_code = in_code
    try:
        entries = lanes.ours(_entries)()
    except Exception as error:
        report_fault("adapters", error)
        return
    for name, reference in entries:
        try:
            _prepare(reference, in_code)
        except Exception as error:
            report_fault(f"adapter {name}", error)


def _prepare(reference: str, in_code: bool) -> None:
    from importlib import import_module

    from lockstep.taps.imports import when_imported

    module, _, attribute = reference.partition(":")
    adapter: Adapter = attrgetter(attribute)(lanes.ours(import_module)(module))
    if adapter.instrument is None or (in_code and not adapter.in_code):
        return
    for package in adapter.modules:
        hook = _hooks.get((reference, package))
        if hook is None:
            hook = _hooks[reference, package] = _Hook(adapter.instrument)
            when_imported(package, hook)
        elif not hook.done and (loaded := sys.modules.get(package)) is not None:
            hook(loaded)  # was imported while no session was on
    if in_code and adapter.begins is not None and adapter.modules[0] in sys.modules:
        lanes.ours(adapter.begins)()


class _Hook:
    """Has an adapter instrument a package of its framework, if a session is on."""

    def __init__(self, function: Callable[[ModuleType], None]) -> None:
        self._function = function
        self.done = False

    def __call__(self, module: ModuleType) -> None:
        if current.session is not None:  # the hook stays when the session is over
            lanes.ours(self._function)(module)
            self.done = True


_hooks: dict[tuple[str, str], _Hook] = {}


def _entries() -> list[tuple[str, str]]:
    """(name, reference) of each entry point; a name that is on the path twice counts where Python finds it first."""
    found: dict[str, str] = {}
    for place in sys.path:
        if place.startswith(_STANDARD) and "-packages" not in place:
            continue
        for text in _texts(place or "."):
            for name, reference in _parsed(text):
                found.setdefault(name, reference)
    found.pop(_PLAIN, None)
    return [*found.items()]


def _texts(place: str) -> Iterator[str]:
    try:
        names = os.listdir(place)
    except OSError:
        return  # a zip archive, or nothing
    for name in names:
        if name.endswith((".dist-info", ".egg-info")) and _MARK in name:
            try:
                with open(os.path.join(place, name, "entry_points.txt"), encoding="utf-8") as file:
                    yield file.read()
            except OSError:
                continue  # it has none


def _parsed(text: str) -> Iterator[tuple[str, str]]:
    section = ""
    for line in text.splitlines():
        line = line.partition("#")[0].strip()
        if line.startswith("["):
            section = line
        elif section == _GROUP and "=" in line:
            name, _, reference = line.partition("=")
            yield name.strip(), reference.partition("[")[0].strip()
