"""The page's end of a WebSocket, or of what may become one."""

from __future__ import annotations

import asyncio

from websockets.extensions.base import ServerExtensionFactory
from websockets.extensions.permessage_deflate import ServerPerMessageDeflateFactory
from websockets.frames import Frame, Opcode
from websockets.http11 import Request
from websockets.server import ServerProtocol
from websockets.typing import Subprotocol

from lockstep_playwright.serving.line import Line

type Message = tuple[Opcode, bytes]

_DEFLATE = "permessage-deflate"


class Messages:
    """Makes whole messages of frames."""

    def __init__(self) -> None:
        self._partial: tuple[Opcode, list[bytes]] | None = None

    def take(self, frame: Frame) -> Message | None:
        """The message that ends with this frame."""
        match frame.opcode:
            case Opcode.TEXT | Opcode.BINARY:
                self._partial = (frame.opcode, [bytes(frame.data)])
            case Opcode.CONT if self._partial is not None:
                self._partial[1].append(bytes(frame.data))
            case _:
                return None
        if not frame.fin or self._partial is None:
            return None
        (opcode, pieces), self._partial = self._partial, None
        return opcode, b"".join(pieces)


class Client:
    """See above.

    said    whole messages as they come; None once there are no more
    closed  it has said that it is over, or is gone
    """

    def __init__(self, line: Line) -> None:
        self.line = line
        self.protocol = ServerProtocol(max_size=None)
        self.closed = asyncio.Event()
        self.said: asyncio.Queue[Message | None] = asyncio.Queue()
        self._messages = Messages()

    async def opened(self) -> Request | None:
        """The handshake; None for anything else: what a browser asks its maker comes here too."""
        while True:
            data = await self.line.read()
            if not data:
                return None
            self.protocol.receive_data(data)
            found = self.protocol.events_received()
            if found and isinstance(found[0], Request):
                upgrade = found[0].headers.get("Upgrade", "")
                return found[0] if upgrade.lower() == "websocket" else None
            if self.protocol.handshake_exc is not None or self.protocol.parser_exc is not None:
                return None

    async def listen(self) -> None:
        """Takes what the page says, until it is over."""
        try:
            while True:
                for event in self.protocol.events_received():
                    if isinstance(event, Frame):
                        self._take(event)
                await self.flush()
                data = await self.line.read()
                if not data:
                    break
                self.protocol.receive_data(data)
        except OSError:
            pass
        finally:
            self.closed.set()
            self.said.put_nowait(None)

    async def flush(self) -> None:
        for data in self.protocol.data_to_send():
            if data:
                await self.line.write(data)
            else:
                await self.line.finish()

    def _take(self, frame: Frame) -> None:
        if frame.opcode is Opcode.CLOSE:
            self.closed.set()
            self.said.put_nowait(None)
            return
        message = self._messages.take(frame)
        if message is not None:
            self.said.put_nowait(message)

    async def accept(self, request: Request, protocol: str, extensions: str) -> None:
        """Opens it, with the protocol and extensions that a server had chosen."""
        self.protocol.available_subprotocols = [Subprotocol(protocol)] if protocol else None
        self.protocol.available_extensions = _extensions(extensions)
        self.protocol.send_response(self.protocol.accept(request))
        await self.flush()

    async def reject(self, status: int) -> None:
        """Refuses to."""
        self.protocol.send_response(self.protocol.reject(status, ""))
        await self.flush()


def _extensions(header: str) -> list[ServerExtensionFactory]:
    """What makes the browser find the extensions that the server had accepted."""
    found: list[ServerExtensionFactory] = []
    for said in filter(None, map(str.strip, header.split(","))):
        name, *parameters = [part.strip() for part in said.split(";")]
        if name == _DEFLATE:
            told = dict(part.partition("=")[::2] for part in parameters)
            found.append(
                ServerPerMessageDeflateFactory(
                    server_no_context_takeover="server_no_context_takeover" in told,
                    client_no_context_takeover="client_no_context_takeover" in told,
                    server_max_window_bits=_bits(told.get("server_max_window_bits")),
                    client_max_window_bits=_bits(told.get("client_max_window_bits")),
                )
            )
    return found


def _bits(value: str | None) -> int | None:
    return int(value) if value else None
