"""asyncio: a lane for each task, timers and wake-ups as causes, and the loop's ticks.

What is patched are methods of `BaseEventLoop` and `Handle` themselves, so that it works for any loop
built on them, whoever makes it and when. uvloop is not: it is named.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from lockstep.log.model import Value
from lockstep.session import current
from lockstep.session import ticks as positions
from lockstep.taps.imports import when_imported


def install() -> None:
    """Patches asyncio when it is imported. Once."""
    when_imported("asyncio", _seams)
    when_imported("uvloop", _name_uvloop)


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


def _name_uvloop(module: ModuleType) -> None:
    original = module.new_event_loop

    def new_event_loop(*args: Any, **kwargs: Any) -> Any:
        session = current.session
        if session is not None:
            session.note("uvloop", "its order of callbacks cannot be seen: use the standard loop for an exact replay")
        return original(*args, **kwargs)

    module.__dict__["new_event_loop"] = new_event_loop


def _seams(module: ModuleType) -> None:
    from lockstep.taps.loops import seams

    seams.install()
