"""A gate of a fork: shut until the part that is served is over.

    gate = Gate()
    await gate.passed(lambda: latch.stopped)        # a call that belongs past the cut and came early
    gate.open()

Usable from any thread and loop. Who waits goes through in the order of coming, so that what comes past the cut is
recorded in the order in which it was asked for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from lockstep.log import untapped

_LOOK = 0.1  # seconds between two looks at whether all is stopped
_LOOK_OF_THREAD = 0.02  # likewise, and at whose turn it is


class Gate:
    """See above."""

    def __init__(self) -> None:
        self.is_open = False
        self._waiting: dict[object, Callable[[], None]] = {}
        self._lock: Any = untapped.RLock()

    def open(self) -> None:
        with self._lock:
            self.is_open = True
        self.look()

    def look(self) -> None:
        """Has who is next look again."""
        with self._lock:
            ring = next(iter(self._waiting.values()), None)
        if ring is not None:
            ring()

    async def passed(self, stopped: Callable[[], bool]) -> None:
        """Returns once it is open, or all is `stopped`."""
        loop, bell, ticket = asyncio.get_running_loop(), asyncio.Event(), object()
        with self._lock:
            self._waiting[ticket] = lambda: _ring(loop, bell)
        try:
            while not (self._is_next(ticket) or stopped()):
                with suppress(TimeoutError):
                    async with asyncio.timeout(_LOOK):
                        await bell.wait()
                bell.clear()
        finally:
            self._leave(ticket)

    def wait(self, stopped: Callable[[], bool]) -> None:
        """The same of a thread."""
        ticket = object()
        with self._lock:
            self._waiting[ticket] = lambda: None
        try:
            while not (self._is_next(ticket) or stopped()):
                untapped.sleep(_LOOK_OF_THREAD)
        finally:
            self._leave(ticket)

    def _is_next(self, ticket: object) -> bool:
        with self._lock:
            return self.is_open and next(iter(self._waiting)) is ticket

    def _leave(self, ticket: object) -> None:
        with self._lock:
            del self._waiting[ticket]
        self.look()


def _ring(loop: asyncio.AbstractEventLoop, bell: asyncio.Event) -> None:
    with suppress(RuntimeError):  # its loop has ended, and with it who waited
        loop.call_soon_threadsafe(bell.set)
