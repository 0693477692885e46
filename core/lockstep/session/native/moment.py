"""Which answers came to a program at once: in one and the same turn of its event loop.

A loop that is busy finds many answers when it looks, however far apart they came, and resumes all who wait for them
before any of them gets further. That cannot be told by the time; so the first answer that a turn of the loop brings has
a callback sent, which only the next turn runs, and all that come before that are of one number.
"""

from __future__ import annotations

import itertools
import sys
import threading
from collections.abc import Callable
from typing import Any


class _Here(threading.local):
    """What a thread knows of its loop: `number` of the turn, None when that is over."""

    loop: Any = None
    number: int | None = None


_here = _Here()
_numbers = itertools.count(1)
_running: Callable[[], Any] | None = None


def loop() -> Any:
    """The running event loop, None outside of one."""
    global _running
    if _running is None:
        asyncio = sys.modules.get("asyncio")  # a program without it has no loop
        if asyncio is None:
            return None
        _running = asyncio._get_running_loop
    return _running()


def moment() -> int:
    """The number of this turn of the running loop, unique in the process; -1 outside of a loop."""
    running = loop()
    if running is None:
        return -1
    here = _here
    if here.number is None or here.loop is not running:
        here.loop, here.number = running, next(_numbers)
        running.call_soon(_over, here.number)
    return here.number


def _over(number: int) -> None:
    if _here.number == number:
        _here.loop = _here.number = None
