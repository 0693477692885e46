"""Memory that the followed processes of a run share: what order they keep among each other, and whether
anything still moves.

A recording gives each message sent and each semaphore taken the next number of its pipe or semaphore; in
a replay whoever has the next number goes next. The file is sparse, and only what is used takes room.

    0          bytes of `PROGRESS`: changes as long as some process does something
    8          whether some process is not the recorded one: the others stop
    16         how many processes have come to the cut of their recording
    4096 …     (key, number) pairs of 8 bytes each, found by hashing the key
"""

from __future__ import annotations

import _thread
import os
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from lockstep.session.gate import Stopped

_sleep = time.sleep  # before the taps
_monotonic = time.monotonic
_allocate = _thread.allocate_lock

PROGRESS, STOPPED, CUT = 0, 1, 2
_FIRST = 512  # number of the first pair's word
_PAIRS = 1 << 16
_SIZE = 8 * (_FIRST + 2 * _PAIRS)
_PATIENCE = 2.0  # seconds in which nobody does anything, after which a number that is missing is given up
_QUICK, _SLOW = 0.00005, 0.004  # seconds between two looks at a number


class Board:
    """One for each process, over the same file. Thread-safe, and inherited by a fork."""

    def __init__(self, path: str) -> None:
        import fcntl
        import mmap

        self.path = path
        self._lockf: Any = fcntl.lockf
        self._modes = fcntl.LOCK_EX | fcntl.LOCK_NB, fcntl.LOCK_UN
        # Never closed: closing any descriptor of the file would free what this process has locked in it.
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        if os.fstat(self._file).st_size < _SIZE:
            os.ftruncate(self._file, _SIZE)
        self._words = memoryview(mmap.mmap(self._file, _SIZE)).cast("Q")
        self._places: dict[str, int] = {}
        self._locks: dict[int, Any] = {}
        self._guard = _allocate()

    def forked(self) -> None:
        """In a forked child: locks of threads that are not there are free."""
        self._guard = _allocate()
        self._locks = {}

    def place(self, key: str) -> int | None:
        """Where the number of `key` stands; None if there is no more room."""
        found = self._places.get(key)
        if found is None:
            with self.locked(0):
                found = self._find(zlib.crc32(key.encode()) << 32 | zlib.adler32(key.encode()) | 1)
            if found is not None:
                self._places[key] = found
        return found

    def _find(self, key: int) -> int | None:
        for step in range(_PAIRS):
            at = _FIRST + 2 * ((key >> 20) + step & _PAIRS - 1)
            if self._words[at] == key:
                return at + 1
            if not self._words[at]:
                self._words[at] = key
                return at + 1
        return None

    @contextmanager
    def locked(self, place: int) -> Iterator[None]:
        """Keeps other threads and processes from this place for the length of a block."""
        with self._guard:
            lock = self._locks.get(place)
            if lock is None:
                lock = self._locks[place] = _allocate()
        with lock:
            self._lock_file(place)
            try:
                yield
            finally:
                self._lockf(self._file, self._modes[1], 1, place * 8)

    def _lock_file(self, place: int) -> None:
        pause = _QUICK
        while True:
            try:
                # Not waited for in the kernel, which takes threads that wait for each other's processes for a deadlock.
                self._lockf(self._file, self._modes[0], 1, place * 8)
                return
            except OSError:
                _sleep(pause)
                pause = min(pause * 2, _SLOW)

    def next(self, place: int) -> int:
        """Takes the next number, from 1. Only in `locked`, or where something else keeps others away."""
        number = self._words[place] + 1
        self._words[place] = number
        return number

    def wait(self, place: int, number: int, stopped: Callable[[], bool]) -> None:
        """Blocks until `number` is the next one. Raises Stopped.

        Numbers that nobody comes to get are given up in the end: who had one may have been killed before that
        was recorded.
        """
        pause, seen, since = _QUICK, (-1, -1), 0.0
        while (now := self._words[place]) < number - 1:
            if stopped():
                raise Stopped
            moved = (now, self._words[PROGRESS])
            if moved != seen:
                seen, since = moved, _monotonic()
            elif _monotonic() - since > _PATIENCE:
                return
            _sleep(pause)
            pause = min(pause * 1.3, _SLOW)

    def passed(self, place: int, number: int) -> None:
        """Says that `number` has had its turn."""
        self._words[place] = max(self._words[place], number)

    # What all processes know of each other.

    def moved(self) -> None:
        self._words[PROGRESS] = self._words[PROGRESS] + 1 & 0xFFFFFFFFFFFFFFFF

    @property
    def progress(self) -> int:
        return self._words[PROGRESS]

    def pending(self, process: str, value: bool) -> None:
        """Recording: whether that process has something which is not stored yet."""
        place = self.place(f"pending {process}")
        if place is not None:
            self._words[place] = value

    def settled(self, process: str, patience: float) -> None:
        """Waits until it has not."""
        place = self.place(f"pending {process}")
        until = _monotonic() + patience
        while place is not None and self._words[place] and _monotonic() < until:
            _sleep(_QUICK)

    def stop(self) -> None:
        """Some process of the replay is not the recorded one."""
        self._words[STOPPED] = 1

    @property
    def stopped(self) -> bool:
        return bool(self._words[STOPPED])

    def cut(self) -> None:
        """A process has come to the cut of its recording."""
        self._words[CUT] = self._words[CUT] + 1

    @property
    def cuts(self) -> int:
        return self._words[CUT]
