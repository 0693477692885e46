"""Putting a wrapper on a client's class, once, and noticing when another tool took it off.

Mocking libraries put back what they found when they began: one that was started before us and is
stopped after takes our wrapper away without a word (respx does). So every session puts the seams on
anew where they are missing, and looks at its end whether they are still there.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from lockstep.session import current

_MARK = "__lockstep_seam__"

type Make = Callable[[Callable[..., Any]], Callable[..., Any]]


class Seam:
    """One attribute of one class: `make(original)` gives the wrapper to put there."""

    __slots__ = ("_make", "name", "owner")

    def __init__(self, owner: type, name: str, make: Make) -> None:
        self.owner = owner
        self.name = name
        self._make = make

    def put(self) -> None:
        """Puts the wrapper on, if it is not on already (also beneath somebody else's)."""
        if self.missing() is None:
            return
        original = vars(self.owner)[self.name]
        wrapper = functools.wraps(original)(self._make(original))
        setattr(wrapper, _MARK, True)
        setattr(self.owner, self.name, wrapper)

    def missing(self) -> str | None:
        """None while our wrapper is on; else the name of what stands in its place."""
        found: Any = vars(self.owner).get(self.name)
        layer = found
        for _ in range(20):
            if layer is None:
                break
            if vars(layer).get(_MARK) if hasattr(layer, "__dict__") else False:
                return None
            layer = getattr(layer, "__wrapped__", None)
        return f"{getattr(found, '__module__', '')}.{getattr(found, '__qualname__', repr(found))}"

    def __str__(self) -> str:
        return f"{self.owner.__module__}.{self.owner.__qualname__}.{self.name}"


class Seams:
    """Those of one client.

    unsupported  package -> why its version cannot be covered
    """

    def __init__(self) -> None:
        self.all: list[Seam] = []
        self.unsupported: dict[str, str] = {}

    def add(self, *new: Seam) -> None:
        """Puts seams on that are not on yet."""
        for seam in new:
            if seam.missing() is not None:
                seam.put()
                self.all.append(seam)

    def refuse(self, name: str, problem: str) -> None:
        """Names a package that cannot be covered, also to a session that is under way."""
        self.unsupported[name] = problem
        if current.session is not None:
            current.session.note(name, problem)

    def start(self, session: Any) -> None:
        """Puts on what another tool took off meanwhile, and names what cannot be covered."""
        for seam in self.all:
            seam.put()
        for name, problem in self.unsupported.items():
            session.note(name, problem)

    def check(self, session: Any) -> None:
        """Names the seams that were taken off during the session: calls since then were not seen."""
        for seam in self.all:
            instead = seam.missing()
            if instead is not None:
                session.note(str(seam), f"was replaced by {instead} during the run")


def parameters(function: Any) -> tuple[str, ...]:
    """The names of a Python function's parameters; () where it is none. What probes ask."""
    code = getattr(function, "__code__", None)
    return () if code is None else tuple(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])
