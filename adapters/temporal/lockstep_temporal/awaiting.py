"""Runs what is async from code that is not: a codec of the user's, in the thread that has a workflow's task.

Most codecs never suspend, and then no event loop is made. One that does (it asks a key service) has it run to its end
in a thread with a loop that is kept: a coroutine that has begun can't be moved to a loop, so it begins again.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any

_lock = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None


def wait[T](make: Callable[[], Awaitable[T]], seconds: float | None = None) -> T:
    """What the awaitable returns. Raises what it raises, TimeoutError where it takes longer than that."""
    coroutine: Any = make()
    try:
        coroutine.send(None)
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return]
    except RuntimeError as error:
        if "event loop" not in str(error):
            raise
    else:
        coroutine.close()

    async def whole() -> T:
        return await make()

    return asyncio.run_coroutine_threadsafe(whole(), _running()).result(seconds)


def _running() -> asyncio.AbstractEventLoop:
    global _loop
    with _lock:
        if _loop is None or _loop.is_closed():
            _loop = asyncio.new_event_loop()
            threading.Thread(target=_loop.run_forever, name="lockstep-codec", daemon=True).start()
        return _loop
