"""asyncio: a lane for each task, timers and wake-ups as causes, and the loop's ticks.

What is patched are methods of `BaseEventLoop` and `Handle` themselves, so that it works for any loop
built on them, whoever makes it and when. uvloop is not: it is named (`lockstep.taps.guard.clients`).
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from lockstep.log.model import Value
from lockstep.session import ticks as positions
from lockstep.taps.imports import when_imported


def install() -> None:
    """Patches asyncio when it is imported. Once."""
    when_imported("asyncio", _seams)


def start(session: Any, facts: Value) -> Value:
    positions.set_here(None)
    asyncio = sys.modules.get("asyncio")
    loop = asyncio._get_running_loop() if asyncio is not None else None
    if loop is not None:
        from lockstep.taps.loops import seams

        # A session that begins inside a running callback: what is left of that one is its first.
        here = seams.position(loop)
        if here is not None:
            here.running = True
    return None


def stop(session: Any) -> None:
    pass


def _seams(module: ModuleType) -> None:
    from lockstep.taps.loops import seams

    seams.install()
