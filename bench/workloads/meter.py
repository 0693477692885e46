"""Clocks that no recorder sees, and the file that a workload leaves its figures in.

A workload runs bare, recorded and replayed, by either tool, and must not notice: it measures with
clocks that a replay does not serve and no guard names, and says nothing on stdout.
"""

from __future__ import annotations

import ctypes
import json
import resource
import sys
from pathlib import Path
from types import TracebackType


class _Timespec(ctypes.Structure):
    _fields_ = [("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long)]


_UTC = 1
_get = ctypes.CDLL(None).timespec_get
_get.argtypes = [ctypes.POINTER(_Timespec), ctypes.c_int]


def wall() -> float:
    """Microseconds of the system's clock."""
    now = _Timespec()
    if _get(ctypes.byref(now), _UTC) != _UTC:
        raise OSError("timespec_get failed")
    return float(now.seconds * 1e6 + now.nanoseconds / 1e3)


def thread() -> float:
    """CPU microseconds of the calling thread."""
    return _spent(resource.RUSAGE_THREAD)


def process() -> float:
    """CPU microseconds of the process, all its threads."""
    return _spent(resource.RUSAGE_SELF)


def _spent(whose: int) -> float:
    used = resource.getrusage(whose)
    return (used.ru_utime + used.ru_stime) * 1e6


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


def arguments(*kinds: type[str | int]) -> list[str | int]:
    """The command line, each argument as its kind."""
    return [kind(given) for kind, given in zip(kinds, sys.argv[1:], strict=True)]
