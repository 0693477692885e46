"""The order in which strands took a lock: recorded per lock, and kept to in a replay.

Everything that Python's own primitives share (queues, conditions, events, futures) is guarded by
locks, so that keeping to their order keeps all of them. Only changes of strand are stored: a lock
that one strand uses costs nothing.
"""

from __future__ import annotations

import _thread
import time
from contextlib import suppress
from typing import Any

from lockstep.session.gate import Stopped
from lockstep.session.tape import Run, Slot

_allocate = _thread.allocate_lock
_sleep = time.sleep  # before the taps
_LOOK, _MOST = 0.0005, 400  # seconds between two looks, and how many: a strand may have given its turns up


class Turns:
    """The recorded turns of one lock. Thread-safe. The last run is open: nobody waits after it began."""

    def __init__(self, session: Any, turns: list[Run]) -> None:
        self._session = session
        self._turns = turns
        self._index = 0
        self._left = turns[0].count
        self._lock = _allocate()
        self._waiting: dict[str, list[Any]] = {}
        self._over: set[int] = set()  # runs that their strand has got past
        self._last = {run.strand: number for number, run in enumerate(turns)}
        self._begun = True  # whether the present run has got the lock from the one before
        self._settled = len(turns) == 1  # whether the strand of the last run has taken it

    def wait(self, strand: str) -> None:
        """Blocks until the lock is this strand's to take, and until the place where it changed hands.

        One that takes it more often than it did in the recording is let pass."""
        arrived = False
        while True:
            with self._lock:
                if self._session.stopped or self._session.standstill.unordered or self.past(strand):
                    return
                run = self._turns[self._index]
                if run.strand == strand:
                    begun, self._begun = self._begun, True
                    break
                slot = self._due(strand)
                if slot is None:
                    return
                if arrived:
                    sleeper = _allocate()
                    sleeper.acquire()
                    self._waiting.setdefault(strand, []).append(sleeper)
            if not arrived:
                arrived = True
                self._session.gate.reached(strand, slot.index)
                continue
            with self._session.standstill.blocking():
                sleeper.acquire()
        if not begun and run.slot is not None:
            # Never raises: an error out of a lock would kill a pool's worker, and hang who waits for it.
            with suppress(Stopped):
                self._session.gate.wait(run.slot)

    def taken(self, strand: str) -> None:
        """The strand has taken the lock: one turn is over."""
        with self._lock:
            last = len(self._turns) - 1
            if self._turns[self._index].strand != strand:
                return
            if self._index == last:
                self._settled = True
                return
            self._session.gate.progress += 1
            self._left -= 1
            if self._left == 0:
                self._pass()

    def past(self, strand: str) -> bool:
        """Whether the strand has no turn left."""
        return self._last.get(strand, -1) < self._index

    def after(self, strand: str) -> int:
        """Of a fork that is live: lets the recorded turns come first. The place where the lock went to its last strand
        has been passed, but that strand may only be about to take it. Returns how often the lock has changed hands by
        the record, before this strand takes it now."""
        changes, waited = len(self._turns) - 1, 0
        if not self._settled and self._turns[-1].strand == strand:
            self._settled = True
            return changes - 1
        while not self._settled and waited < _MOST and not self._session.stopped:
            _sleep(_LOOK)
            waited += 1
        self._settled = True
        return changes

    def over(self, number: int) -> None:
        """The strand of run `number` will not take the lock any more in that run."""
        with self._lock:
            if self._index <= number < len(self._turns) - 1:
                self._over.add(number)
                if number == self._index:
                    self._pass()

    def _due(self, strand: str) -> Slot | None:
        # Where the strand has something else to do before it is to have the lock, it is not to have it now.
        for number in range(self._index + 1, len(self._turns)):
            run = self._turns[number]
            if run.strand == strand and number not in self._over:
                return run.slot if run.slot is not None and self._session.gate.comes(run.slot) else None
        return None

    def _pass(self) -> None:
        last = len(self._turns) - 1
        self._index += 1
        while self._index in self._over:
            self._index += 1
        self._begun = False
        run = self._turns[self._index]
        self._left = run.count
        for sleeper in self._waiting.pop(run.strand, ()):
            sleeper.release()
        if self._index == last:
            self._release_all()

    def stop(self) -> None:
        with self._lock:
            self._release_all()

    def _release_all(self) -> None:
        for sleepers in self._waiting.values():
            for sleeper in sleepers:
                sleeper.release()
        self._waiting.clear()
