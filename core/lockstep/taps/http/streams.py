"""Response bodies of httpcore: teed while recording, served in a replay.

A tee records what passes and never waits, so nothing is added to the time to the first byte.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, Any, NoReturn

from lockstep.errors import Code
from lockstep.log.model import Status
from lockstep.session import lanes
from lockstep.session.call import failed
from lockstep.session.exceptions import revive
from lockstep.session.ticks import here

if TYPE_CHECKING:
    from lockstep.session.surface import Session

_LATE = frozenset(("anyio", "h11", "h2", "hpack", "hyperframe", "socksio", "ssl"))


def raise_end(call: Any, piece: Any) -> NoReturn:
    """Replay: raises what the recorded effect ended with, where the program expects more."""
    if piece.status is Status.ERROR:
        _load_what_clients_load(piece.value)
        raise revive(piece.value, call)
    session: Session = call.session
    session.diverge(Code.PAST_END, "the program reads further than the recorded run did", call=call)


def _load_what_clients_load(form: Any) -> None:
    """Some clients import their protocol modules with the first connection, which a replay does not make;
    exceptions of these stand behind the clients' own."""
    if isinstance(form, dict):
        module = form.get("module")
        if isinstance(module, str) and module.partition(".")[0] in _LATE and module not in sys.modules:
            with contextlib.suppress(ImportError):
                importlib.import_module(module)
        for inner in form.values():
            _load_what_clients_load(inner)
    elif isinstance(form, list):
        for inner in form:
            _load_what_clients_load(inner)


def check_encoding(call: Any, head: dict[str, Any], accepted: str) -> None:
    """A recorded body that only the recording's environment could decode would reach the program raw."""
    recorded = _codings(head.get("offered", ""))
    for name, value in head["headers"]:
        if name.lower() == "content-encoding":
            for coding in _codings(value):
                if coding in recorded and coding not in _codings(accepted):
                    call.session.diverge(
                        Code.ENVIRONMENT, f"the recorded answer is {coding}-encoded: this client has no decoder",
                        call=call, path="headers.accept-encoding", expected=head.get("offered"), actual=accepted,
                    )  # fmt: skip


def _codings(value: str) -> set[str]:
    return {part.partition(";")[0].strip().lower() for part in value.split(",")} - {""}


async def next_piece(call: Any) -> Any:
    """The next piece; outside of asyncio (trio) it can only be waited for with the thread."""
    return call.take() if here() is None else await call.atake()


# Response bodies, recording.


class TappedStream:
    """A live response body: each chunk is recorded as it passes."""

    def __init__(self, stream: Any, call: Any) -> None:
        self._stream = stream
        self._call = call

    def __iter__(self) -> Iterator[bytes]:
        call = self._call
        inner: Any = None
        try:
            while True:
                try:
                    with call.inside():
                        if inner is None:
                            inner = iter(self._stream)
                        chunk = next(inner)
                except StopIteration:
                    call.end(Status.OK)
                    return
                except BaseException as error:
                    failed(call, error)
                    raise
                call.part(chunk)
                yield chunk
        finally:
            call.end(Status.CLOSED)
            close = getattr(inner, "close", None)
            if close is not None:
                with call.inside():
                    close()

    def close(self) -> None:
        try:
            with self._call.inside():
                self._stream.close()
        finally:
            self._call.end(Status.CLOSED)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class AsyncTappedStream:
    """A live response body of a task.

    At its end the stream is closed before the program is told: the close suspends, and the program
    goes on once, after both. (The client's own close that follows finds nothing left to do.)
    """

    def __init__(self, stream: Any, call: Any) -> None:
        self._stream = stream
        self._call = call

    async def __aiter__(self) -> AsyncIterator[bytes]:
        call = self._call
        inner: Any = None
        try:
            while True:
                try:
                    with call.inside():
                        if inner is None:
                            inner = self._stream.__aiter__()
                        try:
                            chunk = await inner.__anext__()
                        except StopAsyncIteration:
                            await self._stream.aclose()
                            break
                except BaseException as error:
                    failed(call, error)
                    raise
                call.part(chunk)
                yield chunk
            call.end(Status.OK)
        finally:
            close = getattr(inner, "aclose", None)
            if close is not None:
                with call.inside():
                    await close()

    async def aclose(self) -> None:
        call = self._call
        try:
            with call.inside():
                await self._stream.aclose()
        except BaseException as error:
            failed(call, error)
            raise
        if lanes.inside() is None:
            call.part({"closed": True})
        call.end(Status.CLOSED)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


# Response bodies, replay.


class ServedStream:
    """A recorded response body, handed out chunk by chunk where the recording handed it out."""

    def __init__(self, call: Any) -> None:
        self._call = call

    def __iter__(self) -> Iterator[bytes]:
        call = self._call
        try:
            while True:
                piece = call.take()
                if piece.status is Status.OK:
                    return
                if piece.status is not None:
                    raise_end(call, piece)
                yield piece.value
        finally:
            call.end(Status.CLOSED)

    def close(self) -> None:
        self._call.end(Status.CLOSED)


class AsyncServedStream:
    """The same for tasks."""

    def __init__(self, call: Any) -> None:
        self._call = call
        self._over = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        call = self._call
        while True:
            piece = await self._next()
            if piece.status is Status.OK:
                return
            if piece.status is not None or not isinstance(piece.value, bytes):
                raise_end(call, piece)
            yield piece.value

    async def aclose(self) -> None:
        call = self._call
        # Past a fork's served part a program may read less than the recorded one did, and of an edited answer.
        loose = call.session.recording or getattr(call, "given", False)
        if not self._over and lanes.inside() is None and not loose:
            piece = await self._next()
            if piece.status is None and isinstance(piece.value, bytes):
                call.session.diverge(Code.ORDER, "the program closes a stream that was read further before", call=call)
            if piece.status is Status.ERROR:
                raise_end(call, piece)
            self._over = True
        call.end(Status.CLOSED)

    async def _next(self) -> Any:
        try:
            piece = await next_piece(self._call)
        except BaseException:
            self._over = True
            raise
        if piece.status is not None:
            self._over = True
        return piece


async def close_pool(session: Any, original: Any, pool: Any) -> None:
    """Closes a client's pool. With open connections that suspends the task, without (in a replay) it does
    not: so the place where the program goes on is a cause of its own."""
    ticks = here()
    if ticks is None or not ticks.running or lanes.inside() is not None:
        await original(pool)
        return
    lane = lanes.lane()
    number = lane.ordinal("close")
    if session.recording:
        serial = ticks.serial
        token = lanes.INSIDE.set(True)
        try:
            await original(pool)
        finally:
            lanes.leave(token)
        session.cause(lane, "close", number, -1 if ticks.serial == serial else ticks.count)
        return
    await original(pool)  # nothing is open in a replay, unless the client was made and used before it
    slot = session.cause(lane, "close", number)
    # Here, since asyncio costs 60 ms to import and sync programs never need it.
    from lockstep.session import suspend

    if slot is None:
        if session.resumes:
            # It was being closed at the cut: the program goes on past it.
            await suspend.until_live(session.open("http"), ticks)
            session.cause(lane, "close", number, ticks.count)
    elif slot.tick < 0:
        session.wait(slot)
    else:
        await suspend.until(session.open("http"), slot, False, ticks)


class NoNetwork:
    """The `network_stream` extension of a served response: the one fact recorded of it, and no network."""

    def __init__(self, call: Any, address: Any) -> None:
        self._call = call
        self._address = address

    def get_extra_info(self, info: str) -> Any:
        if info == "server_addr" and self._address is not None:
            return tuple(self._address)
        return self._unknown(f"{info} of the connection was not recorded")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._unknown(f"the connection is used beneath HTTP ({name})")

    def _unknown(self, what: str) -> NoReturn:
        session: Session = self._call.session
        session.diverge(Code.UNSERVABLE, what, call=self._call)
