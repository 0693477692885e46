"""`threading.Lock` and `threading.RLock`, with the order in which strands take them recorded and kept.

A lock made without a session, or inside an effect, is the plain one.
"""

from __future__ import annotations

import _thread
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from lockstep.log.model import Kind
from lockstep.session.gate import Stopped
from lockstep.session.lanes import Lane
from lockstep.session.lanes import current as _lane

_Lock = _thread.allocate_lock
_RLock = _thread.RLock
_PRIMITIVES = frozenset({"threading", "queue", "lockstep.taps.threads.queues"})  # what is made of locks
_locks: tuple[Any, Any] = (threading.Lock, threading.RLock)


class GatedLock:
    """A lock of the program: as `_thread.lock`, in the recorded order."""

    __slots__ = ("__weakref__", "_changes", "_last", "_name", "_raw", "_run", "release")

    def __init__(self, raw: Any, name: str) -> None:
        self._raw = raw
        self.release: Callable[[], None] = raw.release
        self._name = name
        self._last: Any = None  # recording: the strand that has it in a row, and how often
        self._run = 0
        self._changes = 0  # how often it went to another strand

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        lane = _lane()
        if lane is None or (timeout != -1 and (timeout < 0 or not blocking)):
            return self._raw.acquire(blocking, timeout)  # type: ignore[no-any-return]
        if lane.session.recording:
            return self._record(lane, blocking, timeout)
        return self._replay(lane, blocking, timeout)

    def locked(self) -> bool:
        return self._raw.locked()  # type: ignore[no-any-return]

    def __enter__(self) -> bool:
        # The common case of the above, which clients come to a dozen times a call.
        return self._raw.acquire() if _lane() is None else self.acquire()

    def __exit__(self, *_: object) -> None:
        self._raw.release()

    def _is_owned(self) -> bool:
        # `Condition` asks, and would try to take a lock that has no answer.
        return self._raw.locked()  # type: ignore[no-any-return]

    acquire_lock, locked_lock = acquire, locked

    def release_lock(self) -> None:
        self._raw.release()

    def _at_fork_reinit(self) -> None:
        self._raw._at_fork_reinit()
        self._last = None
        self._run = 0

    def __repr__(self) -> str:
        return repr(self._raw)

    def _record(self, lane: Lane, blocking: bool, timeout: float, number: int = 0) -> bool:
        if lane.session.resumes:
            self._turn(lane.session, lane.strand)
        if blocking and timeout < 0:
            self._raw.acquire()
        else:
            number = number or lane.ordinal("acquire")
            if not self._raw.acquire(blocking, timeout):
                lane.session.cause(lane, "acquire", number)
                return False
        strand = lane.strand
        if strand is self._last:
            self._run += 1
        else:
            self._count(lane.session, strand)
        return True

    def _turn(self, session: Any, strand: Any) -> None:
        """Of a fork: lets others take it first that are to, by the record."""
        last = self._last
        if last is not None and last.session is not session:
            last, self._last, self._changes = None, None, 0  # it is older than this session
        self._changes = max(self._changes, session.turn(self._name, strand, last))

    def _count(self, session: Any, strand: Any) -> None:
        # Under the lock itself, so the counts need no other.
        if strand is not self._last:
            if self._last is not None and self._last.session is session:  # and not that of the parent, before a fork
                last = self._last.name
                self._changes += 1
                if session.beyond(self._name, self._changes):
                    session.emit(Kind.LOCK, strand.name, session.position(), what=last, name=self._name, of=self._run)
            self._last, self._run = strand, 0
        self._run += 1

    def _replay(self, lane: Lane, blocking: bool, timeout: float) -> bool:
        session, number = lane.session, 0
        if not (blocking and timeout < 0) and not session.stopped:
            number = lane.ordinal("acquire")
            missed = session.cause(lane, "acquire", number)
            if missed is not None:
                with suppress(Stopped):
                    session.gate.wait(missed)
                return False
        if session.resumes:
            self._turn(session, lane.strand)
        turns = session.turns(self._name)
        if turns is not None:
            turns.wait(lane.strand.name)
        elif session.stopped and not (blocking and timeout < 0):
            return self._raw.acquire(blocking, timeout)  # type: ignore[no-any-return]
        if not session.hold(self._raw):
            return self._record(lane, blocking, timeout, number)  # a fork has gone live
        if turns is not None:
            turns.taken(lane.strand.name)
        if session.resumes:
            self._count(session, lane.strand)
        return True


class GatedRLock(GatedLock):
    """A re-entrant lock of the program: only the outermost acquire is a turn."""

    __slots__ = ()

    def _record(self, lane: Lane, blocking: bool, timeout: float, number: int = 0) -> bool:
        if self._raw._is_owned():
            return self._raw.acquire(blocking, timeout)  # type: ignore[no-any-return]
        return super()._record(lane, blocking, timeout, number)

    def _replay(self, lane: Lane, blocking: bool, timeout: float) -> bool:
        if self._raw._is_owned():
            return self._raw.acquire(blocking, timeout)  # type: ignore[no-any-return]
        return super()._replay(lane, blocking, timeout)

    def locked(self) -> bool:
        found = getattr(self._raw, "locked", None)  # 3.14 has it
        if found is None:
            raise AttributeError("'_thread.RLock' object has no attribute 'locked'")
        return found()  # type: ignore[no-any-return]

    # What `Condition` uses to let go of every level at once.

    def _is_owned(self) -> bool:
        return self._raw._is_owned()  # type: ignore[no-any-return]

    def _recursion_count(self) -> int:
        return self._raw._recursion_count()  # type: ignore[no-any-return]

    def _release_save(self) -> Any:
        return self._raw._release_save()

    def _acquire_restore(self, state: Any) -> None:
        lane = _lane()
        if lane is None:
            self._raw._acquire_restore(state)
            return
        session, strand = lane.session, lane.strand
        if session.recording:
            if session.resumes:
                self._turn(session, strand)
            self._raw._acquire_restore(state)
            self._count(session, strand)
            return
        if session.resumes:
            self._turn(session, strand)
        turns = session.turns(self._name)
        if turns is not None:
            turns.wait(strand.name)
        self._raw._acquire_restore(state)
        if turns is not None:
            turns.taken(strand.name)
        if session.resumes:
            self._count(session, strand)


def _name(lane: Lane) -> str:
    """The name of a lock of the program's that is made here: the n-th of the lane that this function makes. Others may
    make more or fewer, as one that makes something once in a process, where a replay is not the first to come by."""
    frame = sys._getframe(2)
    while frame.f_back is not None and frame.f_globals.get("__name__") in _PRIMITIVES:
        frame = frame.f_back
    maker = frame.f_code.co_qualname
    return f"{lane.name}:{maker}.{lane.ordinal(f'lock {maker}')}"


class _Either(type):
    """`isinstance(x, threading.Lock)` holds for plain locks, as it did, and for ours."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, (GatedLock, _thread.LockType)) and not isinstance(instance, GatedRLock)


class Lock(metaclass=_Either):
    """Stands for `threading.Lock`."""

    def __new__(cls) -> Any:
        lane = _lane()
        return _Lock() if lane is None else GatedLock(_Lock(), _name(lane))


def RLock(*args: Any, **kwargs: Any) -> Any:  # noqa: N802 - it stands for threading.RLock
    """Stands for `threading.RLock`."""
    lane = _lane()
    return _locks[1](*args, **kwargs) if lane is None else GatedRLock(_RLock(), _name(lane))


def install() -> None:
    for ours, name in ((Lock, "lock"), (GatedLock, "lock"), (GatedRLock, "RLock")):
        ours.__name__ = ours.__qualname__ = name
        ours.__module__ = "_thread"
    patched: Any = threading
    patched.Lock, patched.RLock = Lock, RLock
