"""A WebSocket of JSON messages, for a connection over which a browser tells a dozen of them for each request of a page.

    line = await dial("ws://127.0.0.1:9222/devtools/browser/…")
    line.serve(told, over)
    line.say({"id": 1, "method": …})
    await line.close()

Of the library `websockets` only the protocol: a message is told from within the read that brought it, and leaves from
within the call that says it. Its own connections hand each message from task to task, which took longer than all else
that is done with it, while a page waits.

Tried with websockets 15 to 17.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec

if TYPE_CHECKING:
    from websockets.client import ClientProtocol

# A body of 100 MB is 134 MB of base64 in one message, and nothing else bounds what a page loads.
_LARGEST = 1 << 30
_OPENS = 30.0  # seconds until the handshake is done
_TEXT, _MASKED = 0x81, 0x80  # a whole message in one frame, as clients send it
_CLOSES = 5.0  # seconds in which the browser answers a close

type Told = Callable[[Mapping[str, Any]], None]


class Line(asyncio.Protocol):
    """See above."""

    def __init__(self, protocol: ClientProtocol) -> None:
        loop = asyncio.get_running_loop()
        self._protocol = protocol
        self._transport: asyncio.Transport | None = None
        self._opened: asyncio.Future[None] = loop.create_future()
        self._gone: asyncio.Future[None] = loop.create_future()
        self._parts: list[bytes] = []
        self._early: list[Mapping[str, Any]] = []  # what came before anybody served it
        self._told: Told = self._early.append
        self._over: Callable[[], None] | None = None

    def serve(self, told: Told, over: Callable[[], None]) -> None:
        """Has each message told from now on, and the end. Neither may raise."""
        self._told, self._over = told, over
        early, self._early = self._early, []
        for message in early:
            told(message)
        if self._gone.done():
            over()

    def say(self, message: Mapping[str, Any]) -> None:
        """Sends it. Once the browser is gone, nothing."""
        from websockets.protocol import State

        if self._protocol.state is State.OPEN:
            assert self._transport is not None
            self._transport.write(_framed(_encoded(message)))

    async def opened(self) -> None:
        """Returns once messages can be said. Raises OSError, websockets.exceptions.WebSocketException."""
        async with asyncio.timeout(_OPENS):
            await self._opened

    async def close(self) -> None:
        """Sends what is on its way, and closes."""
        from websockets.protocol import State

        assert self._transport is not None
        if self._protocol.state is State.OPEN:
            self._protocol.send_close()
            self._flush()
        await asyncio.wait([self._gone], timeout=_CLOSES)
        self._transport.abort()
        await self._gone

    # Of asyncio.Protocol.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._protocol.send_request(self._protocol.connect())
        self._flush()

    def data_received(self, data: bytes) -> None:
        self._protocol.receive_data(data)
        self._read()

    def eof_received(self) -> None:
        self._protocol.receive_eof()
        self._read()

    def connection_lost(self, error: Exception | None) -> None:
        if not self._opened.done():
            self._opened.set_exception(error or ConnectionResetError("the browser closed the connection"))
        self._gone.set_result(None)
        if self._over is not None:
            self._over()

    def _read(self) -> None:
        from websockets.frames import Frame, Opcode

        for event in self._protocol.events_received():
            if not isinstance(event, Frame):  # the answer to the handshake
                refused = self._protocol.handshake_exc
                if refused is not None and not self._opened.done():
                    self._opened.set_exception(refused)
                elif not self._opened.done():
                    self._opened.set_result(None)
            elif event.opcode in (Opcode.TEXT, Opcode.CONT):
                self._parts.append(bytes(event.data))
                if event.fin:
                    whole, self._parts = b"".join(self._parts), []
                    self._told(_decoded(whole))
        self._flush()

    def _flush(self) -> None:
        assert self._transport is not None
        for data in self._protocol.data_to_send():
            if data:
                self._transport.write(data)
            elif self._transport.can_write_eof():  # how the protocol says that nothing more will come
                self._transport.write_eof()
        if self._protocol.close_expected():
            self._transport.close()


async def dial(url: str) -> Line:
    """Connects. Raises OSError, websockets.exceptions.WebSocketException."""
    from websockets.client import ClientProtocol
    from websockets.uri import parse_uri

    parts = urlsplit(url)
    secure = parts.scheme == "wss" or None
    protocol = ClientProtocol(parse_uri(url), max_size=_LARGEST)
    _, line = await asyncio.get_running_loop().create_connection(
        lambda: Line(protocol), parts.hostname or "127.0.0.1", parts.port or (443 if secure else 80), ssl=secure
    )
    await line.opened()
    return line


def _framed(text: bytes) -> bytes:
    """The frame of a message. Its mask is of zeros: a random one keeps scripts of pages from saying what they like to a
    proxy, which are not who speaks here, and making it took as long as the rest of a message."""
    length = len(text)
    if length < 126:
        head = bytes((_TEXT, _MASKED | length))
    elif length < 1 << 16:
        head = bytes((_TEXT, _MASKED | 126)) + length.to_bytes(2)
    else:
        head = bytes((_TEXT, _MASKED | 127)) + length.to_bytes(8)
    return head + b"\0\0\0\0" + text


def _decoded(data: bytes) -> Any:
    try:
        return msgspec.json.decode(data)
    except msgspec.DecodeError:
        return json.loads(data)  # half of a surrogate pair, as pages may have it


def _encoded(message: Mapping[str, Any]) -> bytes:
    try:
        return msgspec.json.encode(message)
    except (UnicodeEncodeError, TypeError):
        return json.dumps(message).encode()
