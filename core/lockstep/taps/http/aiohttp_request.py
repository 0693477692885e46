"""What aiohttp is about to send, and the program's own code that it calls back while doing so.

Only imported once aiohttp is.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

from aiohttp.client_reqrep import ClientRequest
from aiohttp.http_writer import StreamWriter
from aiohttp.multipart import MultipartWriter
from aiohttp.payload import AsyncIterablePayload, BytesPayload

from lockstep.session.call import Asked, Call
from lockstep.taps.http.request import asked


def describe(request: ClientRequest) -> tuple[Asked, bool]:
    """The request as `Call.ask` wants it, and whether its body is streamed.

    A streamed body (a generator, a file) is the program's to run and known only after it was sent, while
    the answer to connecting is wanted before. Such a request is asked for without its body, which
    becomes a part of the outcome, to be compared when both are complete.
    """
    body = _known(request.body)
    pairs = list(request.headers.items())
    about = asked(request.method, str(request.url), pairs, b"" if body is None else body)
    if body is None:
        for form in (about.request, about.key):
            if isinstance(form, dict):
                form["streamed"] = True
    return about, body is None


def _known(payload: Any) -> bytes | None:
    """The bytes of a body that can be read without using it up, else None."""
    if isinstance(payload, BytesPayload):
        value = payload._value
        return value if type(value) is bytes else bytes(value)
    if isinstance(payload, MultipartWriter):
        if not all(_plain(part) for part, _, _ in payload):
            return None
        return _written(payload)
    if isinstance(payload, bytes | bytearray):  # no body at all, and aiohttp before its payloads
        return bytes(payload)
    return None


def _plain(part: Any) -> bool:
    if isinstance(part, MultipartWriter):
        return all(_plain(inner) for inner, _, _ in part)
    return isinstance(part, BytesPayload)


class _Collector:
    def __init__(self) -> None:
        self.chunks: list[bytes] = []

    async def write(self, chunk: Any) -> None:
        self.chunks.append(bytes(chunk))


def _written(payload: MultipartWriter) -> bytes | None:
    collector = _Collector()
    writing = payload.write(collector)
    try:
        writing.send(None)
    except StopIteration:
        return b"".join(collector.chunks)
    writing.close()  # it waits for something: a large part that is compressed in a thread
    return None


class SentBody:
    """A streamed body as far as it was sent. `told` is called when it has grown or is whole."""

    __slots__ = ("_told", "data", "whole")

    def __init__(self, told: Callable[[], None]) -> None:
        self.data = bytearray()
        self.whole = False
        self._told = told

    def add(self, chunk: Any) -> None:
        if chunk and not self.whole:
            self.data += chunk
            self._told()

    def complete(self) -> None:
        if not self.whole:
            self.whole = True
            self._told()


class TeedWriter(StreamWriter):  # type: ignore[misc]
    """aiohttp's writer of a request; a streamed body is collected on its way, before it is compressed."""

    _body: SentBody | None = None

    def __init__(self, protocol: Any, *args: Any, **options: Any) -> None:
        super().__init__(protocol, *args, **options)
        exchange = protocol.lockstep_exchange or protocol.lockstep_served
        if exchange is not None:
            self._body = exchange.body

    def write(self, chunk: Any, **options: Any) -> Coroutine[Any, Any, None]:
        if self._body is not None:
            self._body.add(chunk)
        return super().write(chunk, **options)  # type: ignore[no-any-return]

    async def write_eof(self, chunk: bytes = b"") -> None:
        body = self._body
        if body is not None:
            body.add(chunk)
        await super().write_eof(chunk)
        if body is not None:
            body.complete()

    def set_eof(self) -> None:
        super().set_eof()
        if self._body is not None:
            self._body.complete()


class _InProgram:
    """The program's generator of a request body: what it does is the program's, not the effect's."""

    __slots__ = ("_call", "_iterator")

    def __init__(self, call: Call, iterator: AsyncIterator[bytes]) -> None:
        self._call = call
        self._iterator = iterator

    def __aiter__(self) -> _InProgram:
        return self

    async def __anext__(self) -> bytes:
        with self._call.program():
            return await self._iterator.__anext__()


class Traced:
    """A trace of the program's whose hooks run as the program's code; `seen` is told of each first."""

    def __init__(self, call: Call, trace: Any, seen: Callable[[str, list[Any]], None] | None = None) -> None:
        self._call = call
        self._trace = trace
        self._seen = seen

    def __getattr__(self, name: str) -> Any:
        original = getattr(self._trace, name)
        if not name.startswith("send_"):
            return original
        call, seen = self._call, self._seen

        async def hook(*args: Any) -> Any:
            if seen is not None:
                seen(name, list(args))
            with call.program():
                return await original(*args)

        return hook


def hand_back(call: Call, request: ClientRequest) -> None:
    """Makes what `send` calls back run as the program's code: body generators and trace hooks."""
    body = request.body
    if isinstance(body, AsyncIterablePayload) and body._iter is not None:
        body._iter = _InProgram(call, body._iter)
    if request._traces:
        request._traces = [Traced(call, trace) for trace in request._traces]
