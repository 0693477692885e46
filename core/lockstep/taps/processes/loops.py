"""asyncio and processes: when the loop finds a pipe ready, or a process over, is a cause.

Transports and child watchers are asyncio's own in both modes. In a replay their descriptors are not watched: each
callback runs where the recording ran it, and what it reads is served.
"""

from __future__ import annotations

import selectors
from asyncio import selector_events
from functools import partial
from typing import Any

from lockstep.session import current, lanes
from lockstep.taps.loops.handles import Ready
from lockstep.taps.loops.seams import call_soon_threadsafe, position
from lockstep.taps.processes import descriptors
from lockstep.taps.processes.waiting import LOOP

_Base: Any = selector_events.BaseSelectorEventLoop
_add_reader, _remove_reader = _Base._add_reader, _Base._remove_reader
_add_writer, _remove_writer = _Base._add_writer, _Base._remove_writer
_UNWATCHED = "_lockstep_unwatched"  # of a loop: descriptor and event -> the handle that the record runs


class Source:
    """The readiness of one descriptor, in one direction."""

    __slots__ = ("count", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self.count = 0

    def runs(self, handle: Ready, session: Any, here: Any) -> None:
        """The handle is about to run."""
        self.count += 1
        if session.recording:
            session.cause(lanes.own(), "ready", f"{self.name}#{self.count}", here.count)
        elif not session.stopped:
            if handle.slot is not None:
                session.gate.perform(handle.slot)
            self.park(handle, session, here)

    def park(self, handle: Ready, session: Any, here: Any) -> None:
        """Replay: asks for the next run of the handle. A fork watches for it where the record has none any more."""
        handle.slot = slot = session.cause(None, "ready", f"{self.name}#{self.count + 1}")
        if slot is not None:
            here.park(slot, lambda loop: None if session.stopped else loop._ready.appendleft(handle))
        else:
            session.when_live(partial(_watch_soon, handle, session))


def _source(fd: int, event: int) -> Source | None:
    pipe = descriptors.pipe_of(fd)
    if pipe is not None:
        process, what = pipe.process, f"{pipe.channel} {'read' if event == selectors.EVENT_READ else 'write'}"
    else:
        process, what = descriptors.exit_of(fd), "exit"
    if process is None:
        return None
    name = f"{process.name}:{what}"
    found: Source = process.sources.get(name) or process.sources.setdefault(name, Source(name))
    return found


def _add(self: Any, fd: Any, event: int, callback: Any, args: tuple[Any, ...]) -> Any:
    """The handle, watched or not; None where the descriptor is no process's."""
    session = current.session
    if session is None:
        return None
    fd = fd if isinstance(fd, int) else fd.fileno()
    source = _source(fd, event)
    here = position(self) if source is not None else None
    if source is None or here is None:
        return None
    self._check_closed()
    handle = Ready(callback, args, self, None)
    handle.source, handle.slot = source, None
    if session.recording:
        _watch(self, fd, event, handle)
        return handle
    unwatched = vars(self).setdefault(_UNWATCHED, {})
    before = unwatched.get((fd, event))
    if before is not None:
        _forget(before, here)
    unwatched[(fd, event)] = handle
    if not session.stopped:
        source.park(handle, session, here)
    return handle


def _watch(loop: Any, fd: int, event: int, handle: Any) -> None:
    # As the loop's own methods do it, but with this handle.
    vars(loop._selector)[LOOP] = True
    reading = event == selectors.EVENT_READ
    try:
        key = loop._selector.get_key(fd)
    except KeyError:
        loop._selector.register(fd, event, (handle, None) if reading else (None, handle))
        return
    reader, writer = key.data
    loop._selector.modify(fd, key.events | event, (handle, writer) if reading else (reader, handle))
    before = reader if reading else writer
    if before is not None:
        before.cancel()


def _watch_soon(handle: Ready, session: Any) -> None:
    loop = handle._loop  # type: ignore[attr-defined]

    def watch() -> None:
        unwatched = vars(loop).get(_UNWATCHED, {})
        for fd, event in [at for at, found in unwatched.items() if found is handle]:
            del unwatched[fd, event]
            _watch(loop, fd, event, handle)

    if session.recording and loop is not None and not loop.is_closed():
        lanes.ours(lambda: call_soon_threadsafe(loop, watch))()


def _remove(self: Any, fd: Any, event: int) -> bool:
    """Whether it was one that is not watched."""
    unwatched = vars(self).get(_UNWATCHED)
    handle = unwatched.pop((fd if isinstance(fd, int) else fd.fileno(), event), None) if unwatched else None
    if handle is None:
        return False
    _forget(handle, position(self))
    return True


def _forget(handle: Any, here: Any) -> None:
    if handle.slot is not None and here is not None:
        here.unpark(handle.slot)
    handle.cancel()


def add_reader(self: Any, fd: Any, callback: Any, *args: Any) -> Any:
    return _add(self, fd, selectors.EVENT_READ, callback, args) or _add_reader(self, fd, callback, *args)


def add_writer(self: Any, fd: Any, callback: Any, *args: Any) -> Any:
    return _add(self, fd, selectors.EVENT_WRITE, callback, args) or _add_writer(self, fd, callback, *args)


def remove_reader(self: Any, fd: Any) -> Any:
    return _remove(self, fd, selectors.EVENT_READ) or _remove_reader(self, fd)


def remove_writer(self: Any, fd: Any) -> Any:
    return _remove(self, fd, selectors.EVENT_WRITE) or _remove_writer(self, fd)


def install(module: Any) -> None:
    """Puts the seams in place."""
    base = module.BaseSelectorEventLoop
    for ours, theirs in (
        (add_reader, _add_reader), (add_writer, _add_writer),
        (remove_reader, _remove_reader), (remove_writer, _remove_writer),
    ):  # fmt: skip
        setattr(base, theirs.__name__, ours)
