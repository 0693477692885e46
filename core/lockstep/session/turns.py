"""The order in which strands took a lock: recorded per lock, and kept to in a replay.

Everything that Python's own primitives share (queues, conditions, events, futures) is guarded by
locks, so that keeping to their order keeps all of them. Only changes of strand are stored: a lock
that one strand uses costs nothing.
"""

from __future__ import annotations

import _thread
from typing import Any

_allocate = _thread.allocate_lock


class Turns:
    """The recorded turns of one lock: [(strand, how many in a row), …]. Thread-safe."""

    def __init__(self, session: Any, turns: list[tuple[str, int]]) -> None:
        self._session = session
        self._turns = turns
        self._index = 0
        self._left = turns[0][1] if turns else 0
        self._lock = _allocate()
        self._waiting: dict[str, list[Any]] = {}
        self._known = {strand for strand, _ in turns}

    def wait(self, strand: str) -> None:
        """Blocks until the lock is this strand's to take. After the recorded turns nobody waits."""
        while True:
            with self._lock:
                if self._session.stopped or self._index >= len(self._turns):
                    return
                if self._turns[self._index][0] == strand or strand not in self._known:
                    return
                sleeper = _allocate()
                sleeper.acquire()
                self._waiting.setdefault(strand, []).append(sleeper)
            with self._session.blocking():
                sleeper.acquire()

    def taken(self, strand: str) -> None:
        """The strand has taken the lock: one turn is over."""
        with self._lock:
            if self._index >= len(self._turns) or self._turns[self._index][0] != strand:
                return
            self._session.gate.progress += 1
            self._left -= 1
            if self._left > 0:
                return
            self._index += 1
            if self._index >= len(self._turns):
                self._release_all()
                return
            following, self._left = self._turns[self._index]
            for sleeper in self._waiting.pop(following, ()):
                sleeper.release()

    def stop(self) -> None:
        with self._lock:
            self._release_all()

    def _release_all(self) -> None:
        for sleepers in self._waiting.values():
            for sleeper in sleepers:
                sleeper.release()
        self._waiting.clear()
