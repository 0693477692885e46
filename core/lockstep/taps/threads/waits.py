"""Waits that may run out, and polls: `time.sleep`, timeouts of conditions (and so of events, queues and
futures), `join(timeout)`, `is_alive`, `Event.is_set`.

What ran out is a cause of its own, at its place in the total order. In a replay it runs out there,
at once; a wait that was ended by another strand waits for that strand, however long it takes.
"""

from __future__ import annotations

import _thread
import functools
import threading
import time
from typing import Any

from lockstep.session import current, exceptions, lanes
from lockstep.taps.patches import stand_in
from lockstep.taps.threads.locks import GatedLock

_sleep = time.sleep
_join = threading.Thread.join
_is_alive = threading.Thread.is_alive
_is_set = threading.Event.is_set
_allocate = _thread.allocate_lock
_POLL = 0.01  # seconds
_GRACE = 0.25  # seconds for a wait in a replay that has stopped


def sleep(_: object, seconds: float, /) -> None:
    lane = lanes.current()
    if lane is None:
        return _sleep(seconds)
    session = lane.session
    if not session.recording and session.stopped:
        session.raise_latched()
    number = lane.ordinal("sleep")
    if not session.recording:
        slot = session.cause(lane, "sleep", number)
        if slot is not None:
            session.wait(slot)
            return None
        broken = session.cause(lane, "broken sleep", number)
        if broken is not None:
            session.wait(broken)
            raise exceptions.revive(session.secrets.reveal(session.tape.body(broken.seq)))
        if not session.goes_live():
            session.never(lane, "sleep")
    try:
        _sleep(seconds)
    except BaseException as error:
        # A signal handler's (an alarm that limits a tool's time), Ctrl-C, or no number of seconds.
        session.cause(lane, "broken sleep", number, body=exceptions.encode(error))
        raise
    session.cause(lane, "sleep", number)
    return None


class Waiter:
    """What a condition's waiter sleeps on."""

    __slots__ = ("_raw",)

    def __init__(self) -> None:
        self._raw = _allocate()

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        lane = lanes.current()
        if lane is None:
            return self._raw.acquire(blocking, timeout)
        if blocking and timeout < 0:
            return (not lane.session.recording and lane.session.hold(self._raw)) or self._raw.acquire()
        session, number = lane.session, lane.ordinal("wait")
        if not session.recording:
            if session.stopped:
                # The program's own limits are not waited for any more, in a replay that is over.
                got = self._raw.acquire(blocking, min(timeout, _GRACE) if blocking else timeout)
                return got if got or not blocking or timeout <= _GRACE else session.raise_latched()
            slot = session.cause(lane, "wait", number)
            if slot is not None:
                session.wait(slot)
                return False
            if session.hold(self._raw):
                return True
        got = self._raw.acquire(blocking, timeout)
        if not got:
            session.cause(lane, "wait", number)
        return got

    def release(self) -> None:
        self._raw.release()

    def locked(self) -> bool:
        return self._raw.locked()

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self._raw.release()

    def _at_fork_reinit(self) -> None:
        self._raw._at_fork_reinit()  # type: ignore[attr-defined]


def allocate_lock() -> Any:
    return _allocate() if current.session is None or lanes.inside() is not None else Waiter()


def join(self: threading.Thread, timeout: float | None = None) -> None:
    lane = None if timeout is None else lanes.current()
    if lane is None:
        return _join(self, timeout)
    session, number = lane.session, lane.ordinal("join")
    if not session.recording:
        slot = None if session.stopped else session.cause(lane, "join", number)
        if slot is not None:
            return session.wait(slot)  # type: ignore[no-any-return]
        if session.stopped:
            return _join(self, timeout)
        if _ends(self, session):
            return None
    _join(self, timeout)
    if _is_alive(self):
        session.cause(lane, "join", number)
    return None


def _ends(thread: threading.Thread, session: Any) -> bool:
    """Waits for a thread that ended in the recording; False where a fork has gone live before."""
    if not session.resumes:
        _join(thread)
        return True
    while _is_alive(thread) and not session.recording and not session.stopped:
        _join(thread, _POLL)
    return not _is_alive(thread)


def is_alive(self: threading.Thread) -> bool:
    lane = lanes.current()
    if lane is None or not self._started.is_set():  # type: ignore[attr-defined]
        return _is_alive(self)
    session, number = lane.session, lane.ordinal("alive")
    if not session.recording:
        if session.stopped or self is threading.current_thread():
            return _is_alive(self)
        slot = session.cause(lane, "alive", number)
        if slot is not None:
            session.wait(slot)
            return True
        if _ends(self, session):
            return False
    alive = _is_alive(self)
    if alive:
        session.cause(lane, "alive", number)
    return alive


def is_set(self: threading.Event) -> bool:
    # An event of the interpreter's own (a thread's start) has a plain lock.
    lane = lanes.current() if isinstance(self._cond._lock, GatedLock) else None  # type: ignore[attr-defined]
    if lane is None:
        return _is_set(self)
    session, number = lane.session, lane.ordinal("unset")
    if not session.recording:
        if session.stopped:
            return _is_set(self)
        slot = session.cause(lane, "unset", number)
        if slot is not None:
            session.wait(slot)
            return False
        while not _is_set(self) and not session.stopped and not session.recording:
            with session.standstill.blocking():
                _sleep(0.0005)
        if not session.recording:
            return _is_set(self)
    found = _is_set(self)
    if not found:
        session.cause(lane, "unset", number)
    return found


def install() -> None:
    clock: Any = time
    clock.sleep = stand_in(sleep, _sleep, "time")
    threading._allocate_lock = allocate_lock  # type: ignore[attr-defined]
    for ours, theirs in ((join, _join), (is_alive, _is_alive), (is_set, _is_set)):
        functools.update_wrapper(ours, theirs)
    threading.Thread.join = join  # type: ignore[method-assign]
    threading.Thread.is_alive = is_alive  # type: ignore[method-assign]
    threading.Event.is_set = is_set  # type: ignore[method-assign]
