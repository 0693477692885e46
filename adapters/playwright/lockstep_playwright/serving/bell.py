"""Wakes one task, in whatever loop it waits, from any thread."""

from __future__ import annotations

import asyncio
from _thread import get_ident
from contextlib import suppress


class Bell:
    """Of the task that makes it."""

    __slots__ = ("_event", "_loop", "_thread")

    def __init__(self) -> None:
        self._event = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._thread = get_ident()

    def ring(self) -> None:
        if get_ident() == self._thread:
            self._event.set()
        else:
            with suppress(RuntimeError):  # its loop has ended, and with it who waited
                self._loop.call_soon_threadsafe(self._event.set)

    async def heard(self, seconds: float) -> bool:
        """Waits until it is rung, or for as long. Whether it was."""
        try:
            async with asyncio.timeout(seconds):
                await self._event.wait()
        except TimeoutError:
            return False
        self._event.clear()
        return True
