"""Runs a tap's install for a module as soon as that module is loaded: now, or right after its import.

    when_imported("httpcore", patch_pools)

A finder at the head of `sys.meta_path` looks at watched names only (73 ns for any other import). For
a watched one it asks the other finders, and swaps the loader of what they found for one that runs the
module, and then the installs. The real loader is back in place before the module's own code runs, so
the program never sees ours on a loaded module. The finder stays, so that `importlib.reload` (which
makes new, unpatched classes) is followed too.

In a session in code a library that is loaded meanwhile is loaded as nobody's: see `_beside`.

No wrapt here: importing it costs 100 ms and 161 modules, at the start of every recorded program.
"""

from __future__ import annotations

import _thread
import sys
from collections.abc import Callable, Sequence
from functools import partial
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, Any

from lockstep.session import current, sites
from lockstep.session.effects import Within

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

type Install = Callable[[ModuleType], None]
type Surround = Callable[[], AbstractContextManager[object]]

_installs: dict[str, list[Install]] = {}
_surrounds: dict[str, Surround] = {}
# (name, thread) of the searches under way: another finder may itself ask the import system.
_searching: set[tuple[str, int]] = set()

faults: list[tuple[str, BaseException]] = []
"""What installs raised before there was a session to tell; the session takes these at its start."""


def when_imported(name: str, install: Install) -> None:
    """Calls `install(module)` now if module `name` is loaded, else once it is; again after each reload.

    An exception of `install` is reported as a fault and never reaches the program's import. The same
    install given twice for one name runs once.
    """
    installs = _installs.setdefault(name, [])
    if install in installs:
        return
    installs.append(install)
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)
    module = sys.modules.get(name)
    if module is None:
        return
    if getattr(getattr(module, "__spec__", None), "_initializing", False):
        __import__(name)  # another thread is at it: waits for its import lock
    _run(install, name, sys.modules.get(name, module))


def during_import(name: str, surround: Surround) -> None:
    """Loads module `name` in a `with surround():` block, for one that must not see our patches while it
    is loaded. Nothing happens where it is loaded already."""
    _surrounds[name] = surround
    _installs.setdefault(name, [])
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)


def report_fault(where: str, error: BaseException) -> None:
    """Hands a fault of an install to the session, or keeps it until there is one."""
    session = current.session
    if session is None:
        faults.append((where, error))
    else:
        session.fault(where, error)


def _run(install: Install, name: str, module: ModuleType) -> None:
    try:
        install(module)
    except Exception as error:
        report_fault(f"tap of {name}", error)


class _Loader:
    """Stands for the real loader until the module's code is about to run."""

    def __init__(self, name: str, spec: ModuleSpec, real: Any) -> None:
        self._name = name
        self._spec = spec
        self._real = real

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        made: ModuleType | None = self._real.create_module(spec)
        return made

    def _execute(self, module: ModuleType) -> None:
        surround = _surrounds.get(self._name) or _beside(self._spec)
        if surround is None:
            self._real.exec_module(module)
        else:
            with surround():
                self._real.exec_module(module)

    def exec_module(self, module: ModuleType) -> None:
        self._spec.loader = self._real
        if module.__spec__ is not None:
            module.__spec__.loader = self._real
        module.__loader__ = self._real
        self._execute(module)
        loaded = sys.modules.get(self._name, module)  # a module may put another object in its place
        for install in tuple(_installs.get(self._name, ())):
            _run(install, self._name, loaded)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)  # get_code, get_source, …: `runpy` and `importlib.util.find_spec`


class _Finder:
    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        session = current.session
        if name not in _installs and (session is None or not session.in_code):
            return None
        search = (name, _thread.get_ident())
        if search in _searching:
            return None
        _searching.add(search)
        try:
            spec = _ask_the_others(name, path, target)
        finally:
            _searching.discard(search)
        if name not in _installs and (spec is None or _beside(spec) is None):
            return spec
        if spec is not None and hasattr(spec.loader, "exec_module"):
            spec.loader = _Loader(name, spec, spec.loader)  # type: ignore[assignment]
        return spec


def _beside(spec: ModuleSpec) -> Surround | None:
    """How a library is loaded that a program in a session in code comes to need: what that looks at and makes, it does
    once in a process, so a replay in the same one could not be seen to do it again. None for anything else."""
    session = current.session
    if session is None or not session.in_code or not spec.origin or spec.origin in ("built-in", "frozen"):
        return None
    return None if sites.users(spec.origin) else partial(Within, True)


def _ask_the_others(name: str, path: Sequence[str] | None, target: ModuleType | None) -> ModuleSpec | None:
    for finder in tuple(sys.meta_path):
        find = None if finder is _finder else getattr(finder, "find_spec", None)
        spec = None if find is None else find(name, path, target)
        if spec is not None:
            return spec  # type: ignore[no-any-return]
    return None


_finder: Any = _Finder()
