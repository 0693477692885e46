"""Runs a team in a replay or fork, and takes it down where that stops.

Everything that a team starts, it starts from the task that runs it, so all of its tasks have that one's context: they
are found by it, and cancelled together. What is left behind in a loop of somebody else's (a notebook's) is nothing.

    drive = Drive(halt, moved, stuck, deadline, latch)
    ended = await drive.run(lambda: team.run(task="…"))
    ended.result, ended.error, ended.stopped
"""

from __future__ import annotations

import asyncio
import contextvars
import gc
import logging
from collections.abc import Callable, Coroutine
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from lockstep.errors import Stop
from lockstep.session.native.endings import Ended
from lockstep_autogen.halting import Halt

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lockstep.session.native.guard import Watched
    from lockstep.session.native.latch import Latch

_ROUNDS = 50  # of cancelling: who is cancelled may begin something that has to be cancelled too
_ROUND = 0.1  # seconds that each is given
_CLOSES = 1.0  # seconds that connections are given to be closed
_LOOK = 0.05  # seconds between two looks at whether anybody gets on

driven: ContextVar[Drive | None] = ContextVar("lockstep_autogen.driven", default=None)


class Drive:
    """One replay's or fork's runs of a team. `stopping`: the team is being taken down; `deadline`: see `__init__`."""

    def __init__(
        self, halt: Halt, moved: Callable[[], Any], stuck: Callable[[], None], deadline: float, latch: Latch,
        watched: Watched | None = None,
    ) -> None:  # fmt: skip
        """`moved`: gives something else whenever anybody gets on, None where nobody has to. `stuck` is told when that
        has been the same for `deadline` seconds, and latches why. `watched`: who is told what the team's code reaches
        by itself, None once it may reach what it likes."""
        self.halt = halt
        self.stopping = False
        self.watched = watched
        self._latch = latch
        self._moved = moved
        self._stuck = stuck
        self.deadline = deadline

    async def run(self, begin: Callable[[], Coroutine[Any, Any, Any]]) -> Ended:
        """Runs what `begin` makes, until it ends or the halt stops it."""
        if self.halt.stopped:
            return Ended(stopped=True)
        loop = asyncio.get_running_loop()
        context = contextvars.copy_context()
        context.run(driven.set, self)
        with _quiet():
            task = loop.create_task(self._begun(begin), context=context)
            watch = loop.create_task(self._watch())
            try:
                await asyncio.wait({task, watch}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                watch.cancel()
                await asyncio.wait({watch})
                if not task.done() or self.halt.stopped:
                    self.stopping = True
                    await self._take_down()
        if self.halt.stopped or not task.done() or task.cancelled():
            return Ended(stopped=True)
        return task.result()

    async def _begun(self, begin: Callable[[], Coroutine[Any, Any, Any]]) -> Ended:
        try:
            return Ended(await begin())
        except (KeyboardInterrupt, SystemExit):
            raise
        except Stop:
            self.halt.stop()
            return Ended(stopped=True)
        except asyncio.CancelledError as error:
            if self.stopping:
                raise
            return Ended(error=error)  # the program's own
        except BaseException as error:
            return Ended(error=error)

    async def _watch(self) -> None:
        """Returns once the halt has stopped, which it does where nobody gets on for too long."""
        seen, since = self._moved(), asyncio.get_running_loop().time()
        heard = asyncio.ensure_future(self.halt.heard())
        try:
            while not (heard.done() or self._latch.stopped):
                await asyncio.wait({heard}, timeout=min(_LOOK, self.deadline / 4))
                moved, now = self._moved(), asyncio.get_running_loop().time()
                if moved is None or moved != seen:
                    seen, since = moved, now
                elif now - since > self.deadline:
                    self._stuck()
                    break
        finally:
            heard.cancel()
        self.halt.stop()

    async def _take_down(self) -> None:
        own = asyncio.current_task()
        for _ in range(_ROUNDS):
            left = {task for task in asyncio.all_tasks() if self._is_ours(task) and task is not own}
            if not left:
                return
            for task in left:
                task.cancel()
            done, _ = await asyncio.wait(left, timeout=_ROUND)
            for task in done:
                if not task.cancelled():
                    task.exception()  # of a team that is taken down: nobody is to be told of it

    def _is_ours(self, task: asyncio.Task[Any]) -> bool:
        return task.get_context().get(driven) is self


def watched() -> Watched | None:
    """Who is told what the code of the running team reaches, None where it may."""
    drive = driven.get()
    return None if drive is None or drive.stopping else drive.watched


def alone[T](running: Coroutine[Any, Any, T]) -> T:
    """Runs a replay or fork in an event loop of its own, and leaves nothing in it."""
    return asyncio.run(_cleared(running))


async def _cleared[T](running: Coroutine[Any, Any, T]) -> T:
    # To look at what was there before takes longer than all the rest.
    frozen = gc.get_freeze_count() == 0
    if frozen:
        gc.freeze()
    try:
        return await running
    finally:
        # Clients of models close their connections when they are collected, which has to be in the loop that they have
        # them in: later they would complain on stderr that it is closed.
        gc.collect()
        if frozen:
            gc.unfreeze()
        left = asyncio.all_tasks() - {asyncio.current_task()}
        if left:
            await asyncio.wait(left, timeout=_CLOSES)


class _Untold(logging.Filter):
    """AutoGen's log is not told of messages whose handling was cancelled because we took a team down."""

    def filter(self, record: logging.LogRecord) -> bool:
        drive = driven.get()
        return drive is None or not drive.stopping


@contextmanager
def _quiet() -> Iterator[None]:
    log, untold = logging.getLogger("autogen_core"), _Untold()
    log.addFilter(untold)
    try:
        yield
    finally:
        log.removeFilter(untold)
