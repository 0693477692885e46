"""Whether a program has come to rest: its loop has nothing to run, and nothing is on that it gave to a thread of its.

    with away(): …          # an adapter knows of work that is somewhere else, as on threads of anyio
    is_at_rest()

Asked of what a loop keeps for itself. Where that is not there (another kind of loop, other versions), it is at rest.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from lockstep.session.native.moment import loop

_away: dict[object, Any] = {}  # the loop of what is somewhere else


def is_at_rest() -> bool:
    """Of the loop that is running; True outside of one."""
    running = loop()
    if running is None:
        return True
    elsewhere = list(_away.values())  # at once: loops of other threads add theirs
    return not (getattr(running, "_ready", ()) or _pool_works(running) or running in elsewhere)


@contextmanager
def away() -> Iterator[None]:
    """What the running loop waits for in this block is done somewhere else."""
    ticket = object()
    _away[ticket] = loop()
    try:
        yield
    finally:
        del _away[ticket]


def _pool_works(running: Any) -> bool:
    """Whether something is on that `asyncio.to_thread` was given."""
    pool = getattr(running, "_default_executor", None)
    idle = getattr(getattr(pool, "_idle_semaphore", None), "_value", None)
    return idle is not None and idle < len(getattr(pool, "_threads", ()))
