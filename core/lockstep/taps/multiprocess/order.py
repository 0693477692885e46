"""Who of several processes comes first: at a semaphore (locks, queues, events, pools stand on them), and in
a pipe that several write to.

A recording counts, in memory that the processes share, and each keeps the numbers that it got. In a replay
whoever has the next number goes next. Numbers are reads of the lane, so that one more or fewer is found.
"""

from __future__ import annotations

import functools
import os
from collections import deque
from types import ModuleType
from typing import Any

from lockstep.session import current, lanes, reads
from lockstep.session.board import Board
from lockstep.session.gate import Stopped
from lockstep.session.lanes import Lane, strand

SEMAPHORE = reads.ORDER + "Lock"
SENT = reads.ORDER + "Connection.send"
_MISSED = 0  # in place of a number: the semaphore was not to be had
_LIVE = -1  # past the end of an interrupted recording
_LOOK = 0.25  # seconds


def install_semaphores(module: ModuleType) -> None:
    semaphore: Any = module.SemLock
    init, methods, leave = semaphore.__init__, semaphore._make_methods, semaphore.__exit__
    recursive = module.RECURSIVE_MUTEX

    def __init__(self: Any, kind: int, value: int, maxvalue: int, *args: Any, **kwargs: Any) -> None:
        lane = lanes.current()
        if lane is not None:
            self._lockstep_key = f"{lane.name}:{lane.ordinal('semaphore')}"
        lanes.ours(init)(self, kind, value, maxvalue, *args, **kwargs)  # its name is drawn, and need not be ours
        methods_(self)

    def methods_(self: Any) -> None:
        methods(self)
        real = self._semlock
        key = real.name or getattr(self, "_lockstep_key", None)
        if key is not None:
            self.acquire = functools.partial(_acquire, real, key, real.kind == recursive)

    if hasattr(module.Semaphore, "get_value"):
        module.Semaphore.get_value = _told(module.Semaphore.get_value, "Semaphore")
    semaphore.__init__ = __init__
    semaphore._make_methods = methods_
    semaphore.__enter__ = lambda self: self.acquire()
    semaphore.__exit__ = leave


def _acquire(real: Any, key: str, recursive: bool, block: bool = True, timeout: float | None = None) -> bool:
    """Acquire the semaphore/lock."""
    lane = strand.feeding or lanes.current()
    if lane is None or (recursive and real._is_mine()):
        return _unordered(real, block, timeout)
    session = lane.session
    board = session.board()
    place = board.place(key) if board is not None else None
    if board is None or place is None:
        return bool(real.acquire(block, timeout))
    if session.recording:
        got = bool(real.acquire(block, timeout))
        number = _MISSED
        if got and real.maxvalue == 1:
            number = board.next(place)  # nobody else has it now
        elif got:
            with board.locked(place):
                number = board.next(place)
        reads.read(lane, SEMAPHORE, lambda: number)
        session.nudge()
        return got
    number = reads.read(lane, SEMAPHORE, lambda: _LIVE)
    if number == _LIVE:
        if block and timeout is None:
            session.at_cut()
        return bool(real.acquire(block, timeout))
    if number == _MISSED:
        return False
    _turn(session, board, place, number)
    _take(session, real)
    board.passed(place, number)
    return True


def _unordered(real: Any, block: bool, timeout: float | None) -> bool:
    """For code that is not the program's, or that the recording does not tell of."""
    session = current.session
    if session is None or session.recording or not block or timeout is not None:
        return bool(real.acquire(block, timeout))
    _take(session, real)
    return True


def _take(session: Any, real: Any) -> None:
    # Whoever has it may be stopped, and never give it back.
    with session.standstill.blocking():
        while not real.acquire(True, _LOOK):
            if session.stopped:
                session.raise_latched()


def _turn(session: Any, board: Board, place: int, number: int) -> None:
    try:
        with session.standstill.blocking():
            board.wait(place, number, lambda: session.stopped)
    except Stopped:
        session.raise_latched()


def _told(look: Any, name: str) -> Any:
    """A look at how many are in there: recorded, and served whatever is there now."""
    source = f"{reads.ORDER}{name}.{look.__name__}"

    @functools.wraps(look)
    def told(self: Any) -> Any:
        lane = strand.feeding or lanes.current()
        if lane is None:
            return look(self)
        found = reads.read(lane, source, lambda: int(look(self)))
        return bool(found) if name == "Queue" and look.__name__ == "full" else found

    return told


def install_connections(module: ModuleType) -> None:
    connection: Any = module.Connection
    write = connection._send_bytes

    @functools.wraps(write)
    def _send_bytes(self: Any, buf: Any) -> Any:
        lane = strand.feeding or lanes.current()
        board = lane.session.board() if lane is not None else None
        if lane is None or board is None:
            return write(self, buf)
        session = lane.session
        status = os.fstat(self._handle)
        place = board.place(f"{status.st_dev}:{status.st_ino}")
        if place is None:
            return write(self, buf)
        if session.recording:
            session.settle(lane)
            with board.locked(place):
                sent = write(self, buf)
                number = board.next(place)
            reads.read(lane, SENT, lambda: number)
            session.nudge()
            return sent
        number = reads.read(lane, SENT, lambda: _LIVE)
        if number == _LIVE:
            return write(self, buf)
        _turn(session, board, place, number)
        with session.standstill.blocking():
            sent = write(self, buf)
        board.passed(place, number)
        return sent

    read = connection._recv_bytes

    @functools.wraps(read)
    def _recv_bytes(self: Any, *args: Any, **kwargs: Any) -> Any:
        lane = lanes.current()
        if lane is None or lane.session.recording:
            return read(self, *args, **kwargs)
        with lane.session.standstill.blocking():
            return read(self, *args, **kwargs)

    connection._send_bytes, connection._recv_bytes = _send_bytes, _recv_bytes


def install_queues(module: ModuleType) -> None:
    """A queue's own thread takes messages out of a buffer without its lock: when, is a race that nothing depends
    on. Who puts them there is ordered by that lock, and what the thread sends by their order."""
    queue: Any = module.Queue
    begin, feed = queue._start_thread, queue._feed

    @functools.wraps(begin)
    def _start_thread(self: Any) -> Any:
        lane = lanes.current()
        self._buffer = _Buffer(lane.child("_feed", strand=False)) if lane is not None else self._buffer
        return lanes.ours(begin)(self)

    @functools.wraps(feed)
    def _feed(buffer: Any, *args: Any, **kwargs: Any) -> Any:
        strand.feeding = getattr(buffer, "lane", None)
        return feed(buffer, *args, **kwargs)

    for name in ("full", "qsize"):
        setattr(queue, name, _told(getattr(queue, name), "Queue"))
    queue._start_thread, queue._feed = _start_thread, staticmethod(_feed)


class _Buffer(deque[Any]):
    """What waits to be sent, with the lane that it is sent in."""

    def __init__(self, lane: Lane) -> None:
        super().__init__()
        self.lane = lane
