"""Clocks that no recorder serves, and the file that a workload leaves its figures in.

A workload runs bare, recorded and replayed, by either tool, and must not notice: it measures with the
system's own clocks, since Python's give a replay the recorded times, and says nothing on stdout. (Our guard
names them in the replay: rightly so, since what they say is not the recorded run's.)
"""

from __future__ import annotations

import ctypes
import json
import time
from pathlib import Path
from types import TracebackType


class _Timespec(ctypes.Structure):
    _fields_ = [("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long)]


_gettime = ctypes.CDLL(None, use_errno=True).clock_gettime
_gettime.argtypes = [ctypes.c_int, ctypes.POINTER(_Timespec)]


def _microseconds(clock: int) -> float:
    now = _Timespec()
    if _gettime(clock, ctypes.byref(now)):
        raise OSError(ctypes.get_errno(), f"clock_gettime({clock})")
    return float(now.seconds * 1e6 + now.nanoseconds / 1e3)


def wall() -> float:
    """Microseconds of a clock that only goes on."""
    return _microseconds(time.CLOCK_MONOTONIC)


def thread() -> float:
    """CPU microseconds of the calling thread."""
    return _microseconds(time.CLOCK_THREAD_CPUTIME_ID)


def process() -> float:
    """CPU microseconds of the process, all its threads."""
    return _microseconds(time.CLOCK_PROCESS_CPUTIME_ID)


class Figures:
    """What a workload measured: lists of figures by name, written to a file at the end."""

    def __init__(self, path: str) -> None:
        self._path = Path(path)
        self._found: dict[str, list[float]] = {}

    def add(self, name: str, value: float) -> None:
        self._found.setdefault(name, []).append(value)

    def block(self, calls: int) -> Block:
        """A block that does `calls` of the same: adds `wall`, `thread` and `process`, in µs a call."""
        return Block(self, calls)

    def write(self) -> None:
        self._path.write_text(json.dumps(self._found))


class Block:
    """One measured stretch of a workload."""

    def __init__(self, figures: Figures, calls: int) -> None:
        self._figures = figures
        self._calls = calls

    def __enter__(self) -> None:
        self._began = (wall(), thread(), process())

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        ended = (wall(), thread(), process())
        for name, began, end in zip(("wall", "thread", "process"), self._began, ended, strict=True):
            self._figures.add(name, (end - began) / self._calls)
