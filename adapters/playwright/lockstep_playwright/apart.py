"""A loop of our own in a thread of its own: for what must go on while the program does something else.

    apart = Apart()
    connection = apart.run(connect(endpoint))            # waits
    connection = await apart.arun(connect(endpoint))     # the same under a loop
    apart.close()

Nothing that runs there is the program's: a session that is on sees neither its thread nor its sockets.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

from lockstep.session import lanes

_ENDS = 5.0  # seconds that what still runs there is given


class Apart:
    """See above. Begins with the first coroutine that it is given."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def start[T](self, coroutine: Coroutine[Any, Any, T]) -> Future[T]:
        """Runs it there; the future is for any thread."""
        token = lanes.INSIDE.set(True)
        try:
            return asyncio.run_coroutine_threadsafe(coroutine, self._begun())
        finally:
            lanes.INSIDE.reset(token)

    def run[T](self, coroutine: Coroutine[Any, Any, T]) -> T:
        """What it returns or raises."""
        return self.start(coroutine).result()

    async def arun[T](self, coroutine: Coroutine[Any, Any, T]) -> T:
        """The same for a task of another loop."""
        return await asyncio.wrap_future(self.start(coroutine))

    def finish(self, coroutine: Coroutine[Any, Any, Any], failed: Callable[[str, BaseException], Any]) -> None:
        """Waits for its end, but not for long. What goes wrong is told to `failed`."""
        try:
            self.start(coroutine).result(_ENDS)
        except Exception as error:
            failed("the end of a connection", error)

    def close(self) -> None:
        """Ends the thread, once what runs there has ended or has been cancelled."""
        with self._lock:
            loop, thread, self._loop, self._thread = self._loop, self._thread, None, None
        if loop is None or thread is None:
            return
        with suppress(RuntimeError):  # it has stopped by itself
            loop.call_soon_threadsafe(loop.stop)
        if thread is not threading.current_thread():
            thread.join(_ENDS)

    def _begun(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(
                    target=_run, args=(self._loop,), name="lockstep-playwright", daemon=True
                )
                self._thread.start()
            return self._loop


def _run(loop: asyncio.AbstractEventLoop) -> None:
    lanes.INSIDE.set(True)
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        if left:
            loop.run_until_complete(asyncio.wait(left, timeout=_ENDS))
        loop.run_until_complete(loop.shutdown_asyncgens())
    finally:
        loop.close()
