"""Ends code of a workflow that does not come to a stop: a worker would have its deadlock detector for that.

    with Watch(30.0) as watch:
        with watch.on(): drive.activate(activation)        # raises Stuck after 30 s

While a debugger stands inside, no time passes.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self

from lockstep.log import untapped

_AGAIN = 0.01  # seconds between two tries
_MOST = 500  # of these
_DEBUGGERS = frozenset({"bdb", "pdb", "ipdb", "pudb", "pydevd", "_pydevd_bundle", "debugpy"})


class Stuck(BaseException):
    """The watched code ran for longer than it may. `frame`: where it was; `length`: of the history, where it is an
    activation that is known by that."""

    frame: Any = None
    length = 0


class Watch:
    """A thread that looks after one other thread at a time."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._since = 0.0  # 0.0: nothing is on
        self._thread_id = 0
        self._frame: Any = None
        self._raised = 0  # how often
        self._over = False
        self._thread = threading.Thread(target=self._look, name="lockstep-temporal-watch", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._over = True
        self._wake.set()
        self._thread.join()

    @contextmanager
    def on(self) -> Iterator[None]:
        """The block may take that long. Raises Stuck in it, again and again where the code takes that for nothing."""
        with self._lock:
            self._thread_id, self._since, self._raised = threading.get_ident(), _now(), 0
        try:
            yield
        except Stuck:
            pass
        finally:
            self._off()
        if self._raised:  # a task keeps what was raised in it to itself
            stuck = Stuck()
            stuck.frame = self._frame
            raise stuck

    def _off(self) -> None:
        while True:
            try:
                with self._lock:  # who raises holds it
                    self._since = 0.0
                    _raise(self._thread_id, None)
                return
            except Stuck:
                continue

    def _look(self) -> None:
        while not self._over:
            self._wake.wait(_AGAIN if self._raised and self._since else self._seconds / 4)
            with self._lock:
                if self._since == 0.0 or self._raised > _MOST:
                    continue
                if not self._raised:
                    if _now() - self._since < self._seconds:
                        continue
                    frame = sys._current_frames().get(self._thread_id)
                    if _debugged(frame):
                        self._since = _now()
                        continue
                    self._frame = frame
                self._raised += 1
                _raise(self._thread_id, Stuck)


def _raise(thread_id: int, error: type[BaseException] | None) -> None:
    """Raises an exception in another thread; None takes back one that is on its way."""
    given = ctypes.py_object(error) if error is not None else None
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread_id), given)


def _debugged(frame: Any) -> bool:
    while frame is not None:
        if (frame.f_globals.get("__name__") or "").partition(".")[0] in _DEBUGGERS:
            return True
        frame = frame.f_back
    return False


def _now() -> float:
    return untapped.monotonic_ns() / 1e9
