"""Threads of tools while a session is on, and whether any are at work in a replay.

AG2 runs functions that are no coroutines, and looks for what a function is to be given, on the worker threads of anyio.
A worker that the program's own code has begun is the program's, and the session keeps the order in which it wakes the
loop; a replay would wait for what it did for a tool, which does not run then. So what a tool's call sends to a thread
goes to the loop's executor, whose threads belong to whoever sends them work.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
from collections.abc import Callable
from typing import Any

import anyio.to_thread
from anyio._backends._asyncio import AsyncIOBackend
from anyio._core._eventloop import claim_worker_thread

from lockstep.session import current as sessions
from lockstep.session import lanes
from lockstep.session.native.rest import away


def install() -> None:
    """Wraps `anyio.to_thread.run_sync`, once. It does what it did wherever no effect of a session is open."""
    plain = anyio.to_thread.run_sync
    if getattr(plain, "__wrapped__", None) is None:
        anyio.to_thread.run_sync = _sending(plain)


def _sending(plain: Any) -> Any:
    @functools.wraps(plain)
    async def run_sync(func: Callable[..., Any], *args: Any, **options: Any) -> Any:
        if sessions.session is None or lanes.inside() is None or asyncio._get_running_loop() is None:
            with away():
                return await plain(func, *args, **options)
        loop, context = asyncio.get_running_loop(), contextvars.copy_context()

        def work() -> Any:
            with claim_worker_thread(AsyncIOBackend, loop):  # so that `anyio.from_thread` finds the way back
                return context.run(func, *args)

        return await loop.run_in_executor(None, work)

    return run_sync
