"""`select.select` and the classes of `selectors`: which of several pipes are ready, or none in time.

Only where a pipe of a recorded process is among what is waited for. What an event loop waits for is `loops`'
business, and `communicate` has a way of its own (`readiness`). `select.poll` and `select.epoll` used by themselves
are not seen: in a replay every pipe is ready at once, and the reads wait.
"""

from __future__ import annotations

import select
from _thread import _local
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from lockstep.log.model import Value
from lockstep.session import current, exceptions, lanes
from lockstep.taps.patches import stand_in
from lockstep.taps.processes import descriptors

_select = select.select
_WHAT = "selected"
LOOP = "_lockstep_loop"  # set on the selector of an event loop


class _Serving(_local):
    """This thread's `communicate`. `live`: of a process that is recorded; `now`: what it is served."""

    live = False
    now: tuple[Any, Any] | None = None


serving = _Serving()


@contextmanager
def looking() -> Iterator[None]:
    """While `communicate` of a process that is recorded runs: what it looks at is nobody's."""
    serving.live = True
    try:
        yield
    finally:
        serving.live = False


def _pipe(item: Any) -> bool:
    try:
        fd = item if isinstance(item, int) else item.fileno()
    except (AttributeError, OSError, TypeError, ValueError):
        return False
    return isinstance(fd, int) and descriptors.pipe_of(fd) is not None


def _answer(wait: Any, keep: Any, give: Any) -> Any:
    """One wait. `keep` makes data of what it found, `give` what it found of the data."""
    session: Any = current.session
    lane = lanes.lane()
    number = lane.ordinal(_WHAT)
    if not session.recording:
        if session.stopped:
            session.raise_latched()
        slot = session.cause(lane, _WHAT, number)
        if slot is not None:
            session.wait(slot)
            body = session.tape.body(slot.seq)
            if isinstance(body, dict):
                raise exceptions.revive(body)
            return give(body)
        if not session.goes_live():
            session.never(lane, "select")
    try:
        found = wait()
    except BaseException as error:
        session.cause(lane, _WHAT, number, body=exceptions.encode(error))
        raise
    session.cause(lane, _WHAT, number, body=keep(found))
    return found


def selecting(_: object, rlist: Any, wlist: Any, xlist: Any, timeout: Any = None, /) -> Any:
    if current.session is None or not descriptors.any_known() or lanes.inside() is not None:
        return _select(rlist, wlist, xlist, timeout)
    lists = list(rlist), list(wlist), list(xlist)
    if not any(_pipe(item) for items in lists for item in items):
        return _select(*lists, timeout)

    def keep(found: Any) -> Value:
        return [[items.index(item) for item in ready] for items, ready in zip(lists, found, strict=True)]

    def give(places: Any) -> Any:
        return tuple([items[at] for at in ready] for items, ready in zip(lists, places, strict=True))

    return _answer(lambda: _select(*lists, timeout), keep, give)


def _seam(original: Any) -> Any:
    def wait(self: Any, timeout: Any = None) -> Any:
        if (
            current.session is None
            or not descriptors.any_known()
            or lanes.inside() is not None
            or serving.live
            or hasattr(self, LOOP)
        ):
            return original(self, timeout)
        keys = list(self.get_map().values())
        if not any(_pipe(key.fd) for key in keys):
            return original(self, timeout)
        return _answer(
            lambda: original(self, timeout),
            lambda found: [[keys.index(key), events] for key, events in found],
            lambda places: [(keys[at], events) for at, events in places],
        )

    wait.__name__, wait.__qualname__, wait.__doc__ = original.__name__, original.__qualname__, original.__doc__
    return wait


def install() -> None:
    """Puts the seam into `select`."""
    module: Any = select
    module.select = stand_in(selecting, _select, "select")


def install_selectors(module: ModuleType) -> None:
    """And into the classes of `selectors`, which call functions that they took before."""
    for name in ("SelectSelector", "_PollLikeSelector", "EpollSelector", "KqueueSelector"):
        kind = getattr(module, name, None)
        if kind is not None and "select" in vars(kind):
            kind.select = _seam(vars(kind)["select"])
