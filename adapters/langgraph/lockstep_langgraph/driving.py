"""Generators that run with a context variable on, which is off while who reads them runs.

    yield from driven(current, turn, source, watcher)

What the reader sends and throws reaches the source as it would without this, and the watcher is told of each item and
of the end.
"""

from __future__ import annotations

from asyncio.exceptions import CancelledError
from collections.abc import AsyncGenerator, Callable, Generator
from contextvars import ContextVar, Token
from typing import Any


class Watcher:
    """Is told what a source gives and how it ends. This one does nothing of it."""

    def read(self, item: Any) -> None:
        """The reader gets an item."""

    def done(self) -> None:
        """There are no more."""

    def closed(self) -> None:
        """The reader takes no more; the source has been closed."""

    def failed(self, error: BaseException) -> None:
        """The source raised this."""

    def cancelled(self, error: BaseException) -> None:
        """The source's task was cancelled."""
        self.failed(error)


_UNWATCHED = Watcher()


def driven[T](
    variable: ContextVar[T], value: T, source: Generator[Any, Any, Any], watcher: Watcher = _UNWATCHED
) -> Generator[Any, Any, Any]:
    """What `source` gives."""
    step: Callable[..., Any] = source.__next__
    given: tuple[Any, ...] = ()
    try:
        while True:
            token = variable.set(value)
            try:
                item = step(*given)
            except StopIteration:
                break
            finally:
                _leave(token)
            watcher.read(item)
            try:
                sent = yield item
            except GeneratorExit:
                raise
            except BaseException as error:
                step, given = source.throw, (error,)
            else:
                step, given = source.send, (sent,)
    except GeneratorExit:
        token = variable.set(value)
        try:
            source.close()
        finally:
            _leave(token)
            watcher.closed()
        raise
    except BaseException as error:
        watcher.failed(error)
        raise
    watcher.done()


async def adriven[T](
    variable: ContextVar[T], value: T, source: AsyncGenerator[Any, Any], watcher: Watcher = _UNWATCHED
) -> AsyncGenerator[Any, Any]:
    """What an asynchronous `source` gives."""
    step: Callable[..., Any] = source.__anext__
    given: tuple[Any, ...] = ()
    try:
        while True:
            token = variable.set(value)
            try:
                item = await step(*given)
            except StopAsyncIteration:
                break
            finally:
                _leave(token)
            watcher.read(item)
            try:
                sent = yield item
            except GeneratorExit:
                raise
            except BaseException as error:
                step, given = source.athrow, (error,)
            else:
                step, given = source.asend, (sent,)
    except GeneratorExit:
        token = variable.set(value)
        try:
            await source.aclose()
        finally:
            _leave(token)
            watcher.closed()
        raise
    except CancelledError as error:
        watcher.cancelled(error)
        raise
    except BaseException as error:
        watcher.failed(error)
        raise
    watcher.done()


def _leave(token: Token[Any]) -> None:
    try:  # noqa: SIM105 - passed for each chunk
        token.var.reset(token)
    except ValueError:
        pass  # a generator that the collector closes in another context
