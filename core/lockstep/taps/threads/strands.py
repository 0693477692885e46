"""A lane for each thread: named by the parent when it starts it, taken up when it runs."""

from __future__ import annotations

import functools
import threading
from _thread import get_ident
from contextvars import Context
from typing import Any

from lockstep.session import current, lanes
from lockstep.session.lanes import Lane, strand

_start = threading.Thread.start
_init = threading.Thread.__init__
_inner = threading.Thread._bootstrap_inner  # type: ignore[attr-defined]


def _name(thread: threading.Thread) -> str:
    target = getattr(thread, "_target", None)
    return lanes.name_of(target) if target is not None else type(thread).__name__


def _is_whole(thread: threading.Thread) -> bool:
    """Whether all that a thread runs, it runs in a context that it was given: that is then of the thread, whatever
    lane it was copied in. A worker that is given one context after another has a lane for each."""
    target = getattr(thread, "_target", None)
    return isinstance(getattr(getattr(target, "func", target), "__self__", None), Context)


def start(self: threading.Thread) -> None:
    session = current.session
    if session is None:
        return _start(self)
    effect = lanes.inside()
    if effect is not None:
        self._lockstep_inside = effect  # type: ignore[attr-defined]
        return _start(self)
    lane = lanes.lane().child(_name(self), strand=True)
    self._lockstep_lane = lane  # type: ignore[attr-defined]
    session.strand_began(lane)
    try:
        return _start(self)
    except BaseException:
        session.strand_dropped(lane)
        raise


def bootstrap_inner(self: Any) -> None:
    state = self.__dict__
    lane: Lane | None = state.pop("_lockstep_lane", None)
    effect = state.pop("_lockstep_inside", None)
    if lane is None:
        strand.inside = effect
        return _inner(self)  # type: ignore[no-any-return]
    lane.thread = get_ident()
    strand.lane = lane
    if _is_whole(self):
        strand.item = lane
    try:
        _inner(self)
    finally:
        lane.session.strand_ended(lane)


def install() -> None:
    # A thread's own event and locks are the interpreter's business, not the program's.
    threading.Thread.__init__ = lanes.ours(_init)  # type: ignore[method-assign]
    for ours, theirs in ((start, _start), (bootstrap_inner, _inner)):
        functools.update_wrapper(ours, theirs)
    threading.Thread.start = start  # type: ignore[method-assign]
    threading.Thread._bootstrap_inner = bootstrap_inner  # type: ignore[attr-defined]
