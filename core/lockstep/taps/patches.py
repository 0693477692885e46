"""Attributes that a tap has replaced, and how they come back.

Undoing compares before it restores: where another tool (freezegun, a mock, gevent) has patched on
top of ours, its patch stays, since restoring under it would break it.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from types import MethodType
from typing import Any

_ABSENT: Any = object()


class Patches:
    """Replaced attributes of modules, classes and instances, undone in reverse order."""

    def __init__(self) -> None:
        self._done: list[tuple[Any, str, Any, Any]] = []

    def set(self, owner: Any, name: str, new: Any) -> None:
        """Sets `owner.name` and remembers what its own dict held, if anything."""
        before = vars(owner).get(name, _ABSENT)
        setattr(owner, name, new)
        self._done.append((owner, name, before, new))

    def undo(self) -> list[str]:
        """Puts everything back; returns the names that others have patched meanwhile and that stay."""
        kept: list[str] = []
        while self._done:
            owner, name, before, new = self._done.pop()
            if vars(owner).get(name, _ABSENT) is not new:
                kept.append(f"{getattr(owner, '__name__', type(owner).__name__)}.{name}")
            elif before is _ABSENT:
                delattr(owner, name)
            else:
                setattr(owner, name, before)
        return kept


class _Home:
    """What a stand-in is bound to: it pickles as what its module holds under its name, theirs or ours."""

    __slots__ = ("module",)

    def __init__(self, module: str) -> None:
        self.module = module

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return import_module, (self.module,)

    def __repr__(self) -> str:
        # No address: programs print functions, and a replay's are elsewhere.
        return f"<module {self.module!r}>"


def stand_in(function: Callable[..., Any], theirs: Any, module: str) -> Any:
    """Makes of `function(_, ...)` what stands for `theirs(...)`, a C function of a module.

    A C function in a class body binds no instance (`converter = time.localtime` in logging), a Python
    function does. A bound method binds no further, and calling one costs nothing more.
    """
    disguise(function, theirs, module)
    return MethodType(function, _Home(module))


def disguise(ours: Any, theirs: Any, module: str, name: str = "") -> None:
    """Gives a function the names and the documentation of what it stands for: it pickles by them."""
    ours.__name__ = name or theirs.__name__
    ours.__qualname__ = ours.__name__
    ours.__module__ = module
    ours.__doc__ = theirs.__doc__
