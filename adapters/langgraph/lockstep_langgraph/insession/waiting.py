"""Async methods of a saver that wait, for a database: such a wait is an effect of the session.

So the task that waits goes on in a replay where it went on then.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import partial
from typing import Any, Protocol

from lockstep.session import lanes
from lockstep.session.lanes import leave
from lockstep_langgraph import calls


class Asks(Protocol):
    """What may turn out to be an effect."""

    def ask(self) -> Any:
        """Begins it."""

    def failed(self, error: BaseException) -> None:
        """It was one that failed at once."""


async def real(op: Asks, begin: Callable[[], Any]) -> tuple[Any, Any]:
    """Recording: what an async method gives, and the effect that it is where it waits (None where it does not). Raises
    what it raises, with the effect ended."""
    running = begin()
    token = lanes.INSIDE.set(lanes.INSIDE.get() or True)
    try:
        awaited = running.send(None)
    except StopIteration as stop:
        return stop.value, None
    except Exception as error:
        leave(token)
        op.failed(error)
        raise
    finally:
        leave(token)
    call = op.ask()
    try:
        with call.inside():
            return await _Rest(running, awaited), call
    except BaseException as error:
        calls.failed(call, error)
        raise


class _Rest:
    """What is left of a coroutine that has begun to wait for `awaited`."""

    def __init__(self, running: Any, awaited: Any) -> None:
        self._running = running
        self._awaited = awaited

    def __await__(self) -> Generator[Any, Any, Any]:
        awaited = self._awaited
        while True:
            try:
                sent = yield awaited
            except BaseException as error:
                step: Callable[[], Any] = partial(self._running.throw, error)
            else:
                step = partial(self._running.send, sent)
            try:
                awaited = step()
            except StopIteration as stop:
                return stop.value
