"""Never a hang: what a replay does where nothing moves any more.

Where every strand is known to wait for a place that none of them comes to, the difference is known at once
(`check`). Where some strand may still move for a reason that nobody can see (it computes, or waits outside the
gate), a watchdog looks at the clock: the order of locks is given up first, then the run.
"""

from __future__ import annotations

import _thread
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from lockstep.log import untapped
from lockstep.log.model import Kind
from lockstep.session import current, findings, lanes
from lockstep.session.board import Board
from lockstep.session.tape import Slot

_sleep = time.sleep  # before the taps
_LOOSEN = 5.0  # seconds without progress after which the order of locks is given up
_PAST_CUT = 1.0  # seconds without progress after which an interrupted run has come to its cut
_TOGETHER = 4.0  # the same for one of several processes, which may wait for one that is only being started
_LOOK = 0.25  # seconds between two looks
_BUSY = 0.0125  # seconds of processor time between two looks that are progress: a strand computes


class Standstill:
    """Of one replaying session. Thread-safe.

    unordered  whether the order of locks is given up: whoever comes first has them
    """

    def __init__(self, session: Any, deadline: float) -> None:
        self.unordered = False
        self._session = session
        self.deadline = deadline
        self._blocked = 0
        self._guard = _thread.allocate_lock()
        self._look = _thread.allocate_lock()  # free: the watchdog is to look now
        self._look.acquire()
        self._watching = False
        self._paused = False

    def start(self) -> None:
        """Starts the watchdog."""
        with self._guard:
            self._paused = False
            if not self._watching:
                self._watching = True
                _thread.start_new_thread(self._watch, ())

    def pause(self) -> None:
        """Ends the watchdog until somebody waits: CPython warns about forking a process with threads."""
        self._paused = True
        with suppress(RuntimeError):
            self._look.release()
        threads = untapped.threads()
        for _ in range(50):
            if not self._watching and untapped.threads() < threads:
                return
            _sleep(0.0002)

    @contextmanager
    def blocking(self) -> Iterator[None]:
        """Around a wait for another strand outside the gate."""
        if self._paused:
            self.start()
        self._blocked += 1
        try:
            yield
        finally:
            self._blocked -= 1

    def check(self) -> None:
        """Somebody has to wait now: latches the difference if there is nobody left to move."""
        if self._paused:
            self.start()
        session, gate = self._session, self._session.gate
        strands = session.running()
        if strands is None or session.stopped or not gate.all_wait(strands):
            return
        head = gate.head()
        if head is None:
            if not session.interrupted:
                session.missing(None)
        elif head.index in session.wakes:
            return  # its loop is about to see it
        elif head.event.kind is Kind.LOCK:
            self._loosen()
        else:
            session.missing(head)

    def _loosen(self) -> None:
        # Perhaps it is only the order of locks that holds somebody up.
        self.unordered = True
        self._session.loosen()

    def _current(self) -> bool:
        return current.session is self._session

    def _watch(self) -> None:
        lanes.INSIDE.set(True)  # nothing that this thread looks at is the program's
        try:
            self._look_after()
        finally:
            self._watching = False

    def _is_cut(self, head: Slot | None, quiet: float, board: Board | None) -> bool:
        """Whether an interrupted recording goes no further: all of it has happened, and everybody waits; or they
        wait for a process that was cut before it had stored what this one had of it."""
        session = self._session
        if head is None and session.wanted is not None and session.wanted():
            return True  # it is about to be killed, as it was then
        together = len(session.processes) > 1
        stuck = head is None or (board is not None and board.cuts > 0)
        return stuck and quiet >= (_TOGETHER if together else _PAST_CUT)

    def _look_after(self) -> None:
        session, gate = self._session, self._session.gate
        quiet, last, others = 0.0, (-1, 0.0), 0
        while not session.stopped and not session.recording and self._current():
            self._look.acquire(timeout=_LOOK)
            if self._paused:
                return
            times = os.times()
            now = (gate.progress, times.user + times.system)
            busy = now[0] != last[0] or now[1] - last[1] > _BUSY
            last = now
            board = session.board() if session.meeting and len(session.processes) > 1 else None
            if board is not None:
                if board.stopped:
                    session.leave()
                    return
                if busy:
                    board.moved()
                busy = busy or board.progress != others
                others = board.progress
            quiet = 0.0 if busy else quiet + _LOOK
            head = gate.head()
            if session.interrupted and self._is_cut(head, quiet, board):
                session.cut()
            elif quiet >= min(_LOOSEN, self.deadline / 2) and not self.unordered:
                self._loosen()
            elif quiet >= self.deadline and (self._blocked or gate.blocked()):
                session.stop_at(findings.stuck(session.tape, head, self.deadline))
