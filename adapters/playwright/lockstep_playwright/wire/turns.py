"""How long Playwright's client waits for its loop to have nothing more to run, which it reads off the loop's queue.

Since 1.65 it waits so after each message of its driver. What the system has brought (a descriptor that can be read, a
timer that is due) stands in that queue in a recording, and comes to its place only as it runs in a replay: so the
client would wait another number of turns. With a session on only the program's own callbacks count, which are what it
waits for.

Tried with playwright 1.65.
"""

from __future__ import annotations

import asyncio
import sys
from importlib import import_module
from typing import Any

from lockstep.session import current
from lockstep.taps.loops.seams import is_tick

_MODULE, _NAME = "playwright._impl.utils.tasks", "wait_for_next_task"
_MOST = 100  # turns, as there


def count_by_own_callbacks() -> None:
    """Once; without a session it costs one comparison for each message."""
    try:
        module: Any = import_module(_MODULE)
        real = getattr(module, _NAME)
    except (ImportError, AttributeError):
        return  # an older one, which waits for no queue
    if hasattr(real, "_lockstep"):
        return

    async def wait_for_next_task() -> None:
        ready = getattr(asyncio.get_running_loop(), "_ready", None)
        if current.session is None or ready is None:
            await real()
            return
        for _ in range(_MOST):
            await asyncio.sleep(0)
            if not any(is_tick(handle) for handle in ready):
                return

    wait_for_next_task.__dict__["_lockstep"] = True
    for name, found in list(sys.modules.items()):
        if name.startswith("playwright._impl.") and vars(found).get(_NAME) is real:
            setattr(found, _NAME, wait_for_next_task)
