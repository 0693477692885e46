"""Lanes: the deterministic name of each strand of execution, and what it has read so far.

A lane belongs to the submitted work (a task, a work item, a thread), never to the pool's worker
that happens to run it. Its name is `parent/what.n`: the n-th of that name which the parent began,
counted in the parent's own order, so an added helper task does not renumber the others.

`current()` answers "whose code is running here?" with a lane, or None where the code runs inside
an effect (the client library's own tasks, reads and locks belong to the effect).
"""

from __future__ import annotations

import contextvars
import threading
import zlib
from collections.abc import Callable
from typing import Any

from lockstep.session import current as _current


class Lane:
    """One strand of one process. Used by its own strand only, so it needs no lock.

    strand  the lane of the OS thread or work item that runs this one (itself, except for tasks)
    reads   how many values of each source the lane has read, by source name
    """

    __slots__ = ("_children", "counts", "name", "number", "parent", "reads", "session", "state", "strand")

    def __init__(self, session: Any, name: str, parent: Lane | None, strand: Lane | None) -> None:
        self.session = session
        self.name = name
        self.parent = parent
        self.strand = self if strand is None else strand
        self.number = zlib.crc32(name.encode())
        self._children: dict[str, int] = {}
        self.counts: dict[str, int] = {}  # ordinals handed out in this lane: timers, sleeps, locks, …
        self.reads: dict[str, int] = {}
        self.state: Any = None  # the engine's own record of the lane (replay), or read buffers (record)

    def child(self, what: str, *, strand: bool) -> Lane:
        """Begins the next child lane of that name; `strand` says whether it has a thread of its own."""
        n = self._children.get(what, 0) + 1
        self._children[what] = n
        return self.session.new_lane(f"{self.name}/{what}.{n}", self, None if strand else self.strand)

    def ordinal(self, what: str) -> int:
        """The next number of its kind in this lane, from 1."""
        n = self.counts.get(what, 0) + 1
        self.counts[what] = n
        return n

    def __repr__(self) -> str:
        return f"<Lane {self.name}>"


class _Strand(threading.local):
    """What the hooks know of this OS thread. `item` (a work item's lane) outranks the context."""

    item: Lane | None = None
    lane: Lane | None = None
    inside: Any = None


strand = _Strand()
LANE: contextvars.ContextVar[Lane | None] = contextvars.ContextVar("lockstep_lane", default=None)
# The open effect that the running code belongs to; None in the program's own code.
INSIDE: contextvars.ContextVar[Any] = contextvars.ContextVar("lockstep_inside", default=None)


def inside() -> Any:
    """The open effect (`Call`) that the running code belongs to, or None in the program's own code."""
    effect = INSIDE.get()
    if effect is not None:
        return effect
    if LANE.get() is None and strand.item is None:
        return strand.inside
    return None


def lane() -> Lane:
    """The lane of the running strand, whether or not it is inside an effect. Needs a session."""
    found = strand.item or LANE.get() or strand.lane
    session = _current.session
    if found is None or found.session is not session:
        found = strand.lane = session.adopt()  # type: ignore[union-attr]
    return found


def current() -> Lane | None:
    """The lane whose own code is running, or None without a session or inside an effect."""
    if _current.session is None or inside() is not None:
        return None
    return lane()


def outside[**P, T](effect: Any, function: Callable[P, T]) -> Callable[P, T]:
    """Wraps a function so that what it does belongs to `effect` (True: to ourselves) and not to the program."""

    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        token = INSIDE.set(effect)
        try:
            return function(*args, **kwargs)
        finally:
            INSIDE.reset(token)

    return run
