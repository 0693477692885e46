"""Where an event loop stands: the asyncio half of the gate.

A *tick* is one loop callback of the program's own. Callbacks that belong to an effect (the live
client's sockets and tasks, absent in a replay) are not counted, and neither is the callback by
which an answer, a timer or another thread resumes the program: that one is the *cause*, and its
place is the number of ticks run before it. Completion order alone is not enough: the program can
tell after how many of its own callbacks an answer came (facts: 15 of 120 random programs replayed
the same by order, 120 of 120 by ticks).

In a replay a cause is released when the loop has run as many ticks since the cause before it as it
had in the recording. If the loop has nothing left to run, the next cause comes whatever the count
says: the lanes' own checks decide then whether the program is another one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from lockstep.session import lanes
from lockstep.session.gate import Gate, Stopped
from lockstep.session.tape import Slot


class Ticks:
    """The position of one strand's loops. Used by that strand's thread only, except `poke`.

    count   ticks run
    serial  callbacks run, of any kind: tells whether an await suspended
    asleep  whether the gate takes the loop for one with nothing to run
    """

    __slots__ = (
        "_base_count",
        "_base_tick",
        "_cursor",
        "_gate",
        "_queue",
        "_resting",
        "asleep",
        "count",
        "loop",
        "paced",
        "parked",
        "raised",
        "running",
        "serial",
        "session",
        "strand",
    )  # fmt: skip

    def __init__(self, session: Any, strand: str) -> None:
        self.count = 0
        self.serial = 0
        self.running = False
        self.asleep = False
        self.strand = strand
        self.loop: Any = None
        self.parked: dict[int, Callable[[Any], None]] = {}
        self.raised = False
        self.paced: Any = None
        self.session = session
        self._gate: Gate | None = session.gate
        self._cursor = 0
        self._resting = 0
        self._base_count = 0
        self._base_tick = 0
        slots = self._gate.slots_of(strand) if self._gate is not None else []
        self._queue: list[Slot] = [slot for slot in slots if slot.tick >= 0]

    def attach(self, loop: Any) -> None:
        """Makes `loop` the one that this strand runs now."""
        if self.loop is loop:
            return
        self.loop = loop
        loop._lockstep_ticks = self
        if self._gate is not None:
            self._gate.attach(self.strand, lambda: _poke(loop))

    def park(self, slot: Slot, release: Callable[[Any], None]) -> None:
        """Asks for a cause: `release(loop)` will be called in this thread at its place."""
        self.parked[slot.index] = release

    def park_forever(self, answer: Any) -> None:
        """Something that only the end of the session resumes."""

        def release(_: Any) -> None:
            if not answer.done():
                answer.set_exception(self.session.latched())

        self._resting += 1
        self.parked[-self._resting] = release

    def unpark(self, slot: Slot) -> None:
        self.parked.pop(slot.index, None)

    def pump(self, loop: Any) -> None:
        """After each callback of a replay: releases the next cause if its place is here."""
        gate = self._gate
        assert gate is not None
        slot = self._next()
        if slot is None or self.count - self._base_count < slot.tick - self._base_tick:
            return
        if not self._asked(slot) and (slot.event.what != "wake" or not self.session.wait_for_wake(slot)):
            return
        if not gate.ready(slot):
            head = gate.head()
            if head is not None and head.strand == self.strand:
                return  # the program has a call of its own to make first
            try:
                gate.wait(slot, perform=False)
            except Stopped:
                self.session.raise_latched()
        self._release(loop, slot)

    def idle(self, loop: Any) -> None:
        """Before a loop of a replay sleeps with nothing to run. Raises Divergence or Cut where it is
        known that nothing can come."""
        gate = self._gate
        assert gate is not None
        if gate.stopped:
            self._unwind(loop)
            return
        # Before the look at the head: whoever moves it from now on wakes this loop.
        self.asleep = True
        gate.sleep(self.strand)
        slot = self._next()
        if slot is not None and self._asked(slot) and gate.ready(slot):
            self.awake()
            self._release(loop, slot)
        elif len(loop._selector.get_map()) > 1:
            self.awake()  # a socket of the program's own may move it
        elif gate.head() is None and self.session.interrupted:
            self.session.cut()
        else:
            self.session.standstill.check()
        if self.session.stopped:
            self._unwind(loop)

    def awake(self) -> None:
        """The loop runs something after it was asleep."""
        self.asleep = False
        assert self._gate is not None
        self._gate.awake(self.strand)

    def stop(self, loop: Any) -> None:
        """The session stopped: everybody who waits is resumed, to find the latch."""
        parked, self.parked = self.parked, {}
        for release in parked.values():
            release(loop)

    def _unwind(self, loop: Any) -> None:
        self.stop(loop)
        # Again where nothing is left that could resume it: a program that took the first for the failure of one call,
        # and waits for more, would wait for ever.
        if not self.raised or not (loop._ready or loop._scheduled):
            self.raised = True
            self.session.raise_latched()

    def _next(self) -> Slot | None:
        gate, queue, cursor = self._gate, self._queue, self._cursor
        assert gate is not None
        while cursor < len(queue) and gate.done(queue[cursor]):
            cursor += 1
        self._cursor = cursor
        return queue[cursor] if cursor < len(queue) else None

    def _release(self, loop: Any, slot: Slot) -> None:
        gate = self._gate
        assert gate is not None
        delay = gate.due(slot)
        if delay > 0:
            if self.paced is None:
                self.paced = slot
                # A real timer of ours, whose callback is none of the program's.
                lanes.ours(loop.call_later)(delay, self._unpace, loop)
            return
        self._base_count = self.count
        self._base_tick = slot.tick
        release = self.parked.pop(slot.index, None)
        (self.session.wakes.pop(slot.index) if release is None else release)(loop)

    def _asked(self, slot: Slot) -> bool:
        return slot.index in self.parked or slot.index in self.session.wakes

    def _unpace(self, loop: Any) -> None:
        self.paced = None
        self.idle(loop)


class _Here(threading.local):
    """`ticks`: those of this thread, None where no loop has run under the present session."""

    ticks: Ticks | None = None


HERE = _Here()


def here() -> Ticks | None:
    """The ticks of this thread, None where no loop has run under the present session."""
    return HERE.ticks


def set_here(ticks: Ticks | None) -> None:
    HERE.ticks = ticks


def _poke(loop: Any) -> None:
    if not loop.is_closed():
        loop._write_to_self()
