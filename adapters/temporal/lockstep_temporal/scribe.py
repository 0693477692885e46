"""The thread that writes what interceptors have seen: they run where a workflow or an event loop waits for them.

    scribe.put(job)                 runs in our thread, in the order put
    scribe.later(job)               is tried again and again until it returns True, for a few seconds
    await scribe.written()          once all that was put is done, a second at most

One thread for a process, begun with the first job. A job that fails is told once and stops nobody.
"""

from __future__ import annotations

import atexit
import logging
import os
from _queue import Empty, SimpleQueue
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from lockstep.log import untapped
from lockstep.session import lanes
from lockstep.session.writer import start_thread

log = logging.getLogger("lockstep")

PATIENCE = 5.0  # seconds that something is waited for which another process writes
AGAIN = 0.01  # seconds between attempts
HELD_UP = 1.0  # seconds that an activity waits for its end to be stored, at most
AT_EXIT = 5.0
_MOST_TOLD = 100

type Job = Callable[[], object]
type Try = Callable[[bool], bool]


class Scribe:
    """See the module. `faults`: what went wrong, in words."""

    def __init__(self) -> None:
        self._hooked = False
        self._reset()

    def _reset(self) -> None:
        self._jobs: SimpleQueue[Job] = SimpleQueue()
        self._waiting: list[tuple[float, Try]] = []
        self._lock: Any = untapped.RLock()
        self._running = False
        self.faults: list[str] = []

    def start(self) -> None:
        """Begins the thread, where the first job would come from a workflow's sandbox."""
        if not self._running:
            self._begin()

    def put(self, job: Job) -> None:
        """Never waits, and never raises."""
        self._jobs.put(job)
        if not self._running:
            self._begin()

    def later(self, job: Try) -> None:
        """In our thread only. `job(last)` says whether it is done; `last`: it will not be asked again."""
        self._waiting.append((untapped.monotonic() + PATIENCE, job))

    async def written(self) -> None:
        """Waits until all that was put is done: what comes after an activity must find it in the log."""
        import asyncio

        loop = asyncio.get_running_loop()
        done = loop.create_future()

        def tell() -> None:
            if not done.done():
                done.set_result(None)

        def over() -> None:
            try:
                loop.call_soon_threadsafe(tell)
            except RuntimeError:
                return  # it is closed

        self.put(over)
        await asyncio.wait([done], timeout=HELD_UP)

    def flush(self, timeout: float = AT_EXIT) -> bool:
        """Waits until all that was put is done. False: it takes longer."""
        done = untapped.allocate_lock()
        done.acquire()
        self.put(done.release)
        return bool(done.acquire(timeout=timeout))

    @property
    def idle(self) -> bool:
        """Whether nothing is to be done, now or later."""
        return self._jobs.empty() and not self._waiting

    def fault(self, where: str, error: BaseException) -> None:
        """Something of ours went wrong, which the program is not to notice."""
        said = f"{where}: {type(error).__name__}: {error}"
        if said not in self.faults and len(self.faults) < _MOST_TOLD:
            self.faults.append(said)
            log.warning("lockstep could not record: %s", said)

    def _begin(self) -> None:
        with self._lock:
            if self._running:
                return
            if not self._hooked:
                self._hooked = True
                atexit.register(self._exit)
                if hasattr(os, "register_at_fork"):
                    os.register_at_fork(after_in_child=self._reset)
            self._running = start_thread(self._run)
        if not self._running:
            self._drain()  # as when the interpreter is about to end

    def _exit(self) -> None:
        if self._running:
            self.flush()
            self.put(self._give_up)
            self.flush()

    def _run(self) -> None:
        lanes.INSIDE.set(True)
        tried = 0.0
        while True:
            with suppress(Empty):
                self._do(self._jobs.get(timeout=AGAIN) if self._waiting else self._jobs.get())
            now = untapped.monotonic()
            if self._waiting and now - tried >= AGAIN:
                tried = now
                self._try_again()

    def _drain(self) -> None:
        with suppress(Empty):
            while True:
                self._do(self._jobs.get_nowait())

    def _do(self, job: Job) -> None:
        try:
            job()
        except Exception as error:
            self.fault("Temporal", error)

    def _try_again(self, give_up: bool = False) -> None:
        now = untapped.monotonic()
        for waits in list(self._waiting):
            until, job = waits
            last = give_up or now >= until
            try:
                over = job(last)
            except Exception as error:
                self.fault("Temporal", error)
                over = True
            if over or last:
                self._waiting.remove(waits)

    def _give_up(self) -> None:
        self._try_again(give_up=True)


scribe = Scribe()
