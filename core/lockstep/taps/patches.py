"""Attributes that a tap has replaced, and how they come back.

Undoing compares before it restores: where another tool (freezegun, a mock, gevent) has patched on
top of ours, its patch stays, since restoring under it would break it.
"""

from __future__ import annotations

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


def disguise(ours: Any, theirs: Any, module: str, name: str = "") -> None:
    """Gives a function the names and the documentation of what it stands for: it pickles by them."""
    ours.__name__ = name or theirs.__name__
    ours.__qualname__ = ours.__name__
    ours.__module__ = module
    ours.__doc__ = theirs.__doc__
