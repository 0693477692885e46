"""Whether a program has come to rest: its loop has nothing to run, and nothing is on that it gave to a thread of its.

Asked of what a loop keeps for itself. Where that is not there (another kind of loop, other versions), it is at rest.
"""

from __future__ import annotations

from typing import Any

from lockstep.session.native.moment import loop


def is_at_rest() -> bool:
    """Of the loop that is running; True outside of one."""
    running = loop()
    if running is None:
        return True
    return not (getattr(running, "_ready", ()) or _pool_works(running))


def _pool_works(running: Any) -> bool:
    """Whether something is on that `asyncio.to_thread` was given."""
    pool = getattr(running, "_default_executor", None)
    idle = getattr(getattr(pool, "_idle_semaphore", None), "_value", None)
    return idle is not None and idle < len(getattr(pool, "_threads", ()))
