"""The gate: what came from outside comes back at the same moment of the program.

A recording is one total order of slots (calls asked for, answers handed out, timers fired, …). In
a replay a slot may happen when all slots before it have. How a strand waits for its turn:

* sync code blocks its thread in `wait`;
* a task parks a release (`park`) and is resumed by its loop's `Ticks` when the loop has run as
  many of the program's own callbacks as it had when the answer came in the recording.

Slots of one strand are in program order already, so a strand never waits for itself: if the head
is another slot of the same strand, the program has changed its order there, and the matcher (which
looks inside lanes) is the one to say so.
"""

from __future__ import annotations

import _thread
import time
from collections.abc import Callable
from typing import Any

from lockstep.log.model import Kind
from lockstep.session.claims import Claims
from lockstep.session.tape import Slot

_allocate = _thread.allocate_lock
_monotonic = time.monotonic
_sleep = time.sleep


class Stopped(Exception):
    """Internal: the session has latched a divergence or a cut; the waiter must raise it."""


class Gate:
    """The total order of one replayed process. Thread-safe.

    speed     0: no pacing; else recorded time divided by it, by absolute deadlines
    progress  grows with everything that moves: the watchdog looks at it
    """

    def __init__(self, slots: list[Slot], speed: float) -> None:
        self._slots = slots
        self._done = bytearray(len(slots))
        self._head = 0
        self._lock = _allocate()
        self._waiting: dict[str, tuple[int, Any]] = {}  # strand -> (slot index, lock that it sleeps on)
        self._loops: dict[str, Callable[[], None]] = {}  # strand -> wakes its loop
        self._asleep: set[str] = set()  # strands whose loop has nothing to run, and was not woken since
        self._own: dict[str, tuple[list[Slot], int]] = {}  # strand -> its slots, how many of the first are done
        self.on_wait: Callable[[], None] | None = None  # told whenever a strand has to wait
        self.on_end: Callable[[], None] | None = None  # told once, when the last slot has happened
        self.claims: dict[str, Claims] = {}  # strand -> its turns with the locks
        self._last = {slot.strand: slot.index for slot in slots}
        self._ending: list[Any] = []
        self._resting: list[Any] = []
        self.speed = speed
        self._started = _monotonic()
        self.progress = 0
        self.stopped = False

    def head(self) -> Slot | None:
        """The first slot that has not happened, None when all have."""
        index = self._head
        return self._slots[index] if index < len(self._slots) else None

    def slots_of(self, strand: str) -> list[Slot]:
        return [slot for slot in self._slots if slot.strand == strand]

    def done(self, slot: Slot) -> bool:
        return bool(self._done[slot.index])

    def past(self, strand: str) -> bool:
        """Whether all places of a strand have been passed."""
        last = self._last.get(strand, -1)
        return last < self._head or bool(self._done[last])

    def perform(self, slot: Slot) -> None:
        """Says that the slot has happened."""
        self.reached(slot.strand, slot.index)
        with self._lock:
            self._perform(slot)
        self._ended()

    def reached(self, strand: str, place: int) -> None:
        """The strand has come to this place; see `Claims.settle`."""
        claims = self.claims.get(strand)
        if claims is not None and claims.before < place:
            claims.settle(place)

    def comes(self, slot: Slot) -> bool:
        """Whether this may be the next place of its strand: only locks lie before it."""
        strand = slot.strand
        with self._lock:
            if strand in self._loops or self._done[slot.index]:
                return True  # its tasks may wait for an earlier place; or the order of locks has just been given up
            slots, first = self._own.get(strand) or (self.slots_of(strand), 0)
            while self._done[slots[first].index] and slots[first] is not slot:
                first += 1
            self._own[strand] = slots, first
            while slots[first] is not slot and slots[first].event.kind is Kind.LOCK:
                first += 1
            return slots[first] is slot

    def skip(self, kind: Kind) -> None:
        """Takes all places of this kind for passed, whoever was to come to them."""
        with self._lock:
            for slot in self._slots:
                if slot.event.kind is kind and not self._done[slot.index]:
                    self._perform(slot)
            self._wake_loops()  # also the one whose own place comes first now
        self._ended()

    def wait(self, slot: Slot, perform: bool = True) -> None:
        """Blocks this thread until the slot's turn, then performs it (or leaves that to the caller).
        Raises Stopped."""
        if self.claims:
            self.reached(slot.strand, slot.index)
        if self.speed:
            self._pace(slot)
        while True:
            with self._lock:
                if self.stopped:
                    raise Stopped
                head = self._head
                due = head >= slot.index or self._slots[head].strand == slot.strand
                if due:
                    if perform:
                        self._perform(slot)
                else:
                    sleeper = _allocate()
                    sleeper.acquire()
                    self._waiting[slot.strand] = (slot.index, sleeper)
            if due:
                if self.on_end is not None:
                    self._ended()
                return
            if self.on_wait is not None:
                self.on_wait()
            sleeper.acquire()

    def wait_all(self) -> None:
        """Blocks until every recorded slot has happened (the cut of an interrupted run). Raises Stopped."""
        with self._lock:
            if self._head >= len(self._slots) or self.stopped:
                return
            sleeper = _allocate()
            sleeper.acquire()
            self._ending.append(sleeper)
        sleeper.acquire()

    def wait_stop(self) -> None:
        """Blocks until the session stops: for a strand that has nothing more to get."""
        with self._lock:
            if self.stopped:
                return
            sleeper = _allocate()
            sleeper.acquire()
            self._resting.append(sleeper)
        sleeper.acquire()

    def ready(self, slot: Slot) -> bool:
        """Whether it is the slot's turn (its own strand aside)."""
        head = self.head()
        return head is None or head.index >= slot.index

    def attach(self, strand: str, poke: Callable[[], None]) -> None:
        """Names the loop that runs on a strand: `poke` wakes it when its turn comes."""
        with self._lock:
            self._loops[strand] = poke

    def detach(self, strand: str) -> None:
        with self._lock:
            self._loops.pop(strand, None)

    def sleep(self, strand: str) -> None:
        """The strand's loop has nothing to run: only a poke, or a cause that it asked for, can move it."""
        with self._lock:
            self._asleep.add(strand)

    def awake(self, strand: str) -> None:
        """The strand's loop runs something."""
        with self._lock:
            self._asleep.discard(strand)

    def all_wait(self, strands: set[str]) -> bool:
        """Whether each of these strands waits for its turn."""
        with self._lock:
            return strands <= self._waiting.keys() | self._asleep

    def blocked(self) -> bool:
        """Whether some strand waits for its turn."""
        return bool(self._waiting or self._ending or self._loops)

    def stop(self) -> None:
        """Releases every waiter; each finds the latch."""
        with self._lock:
            self.stopped = True
            self._release_all()
            for sleeper in self._resting:
                sleeper.release()
            self._resting.clear()

    def due(self, slot: Slot) -> float:
        """Seconds until the slot's recorded time at the replay's speed; 0 without pacing."""
        if not self.speed:
            return 0.0
        return max(0.0, self._started + slot.at / 1e9 / self.speed - _monotonic())

    def _pace(self, slot: Slot) -> None:
        delay = self.due(slot)
        if delay > 0:
            _sleep(delay)

    def _ended(self) -> None:
        # Not under the lock: whoever is told begins to record.
        if self.on_end is not None and self._head >= len(self._slots):
            told, self.on_end = self.on_end, None
            told()

    def _perform(self, slot: Slot) -> None:
        self.progress += 1
        self._done[slot.index] = 1
        if slot.index != self._head:
            return
        done, size, head = self._done, len(self._slots), self._head
        while head < size and done[head]:
            head += 1
        self._head = head
        if head == size:
            self._release_all()
            return
        strand = self._slots[head].strand
        waiting = self._waiting.get(strand)
        if waiting is not None:
            del self._waiting[strand]
            waiting[1].release()
        poke = self._loops.get(strand)
        if poke is not None and strand != slot.strand:
            self._asleep.discard(strand)
            poke()

    def _release_all(self) -> None:
        for _, sleeper in self._waiting.values():
            sleeper.release()
        self._waiting.clear()
        for sleeper in self._ending:
            sleeper.release()
        self._ending.clear()
        self._wake_loops()

    def _wake_loops(self) -> None:
        self._asleep.clear()
        for poke in self._loops.values():
            poke()
