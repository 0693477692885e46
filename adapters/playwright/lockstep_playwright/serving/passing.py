"""A WebSocket past the cut of a fork that the policy has let go: passed on to its real server, and recorded.

It is spoken without extensions, so that what is said can be read on the way.
"""

from __future__ import annotations

import asyncio
import ssl
from base64 import b64encode
from contextlib import suppress
from typing import Any

from websockets.exceptions import ProtocolError
from websockets.frames import Frame, Opcode
from websockets.http11 import Request
from websockets.protocol import Protocol, Side

from lockstep.log.model import Status
from lockstep.session.call import Call
from lockstep_playwright.serving.client import Client, Messages
from lockstep_playwright.serving.line import Clear, Line

PAGE, SERVER = "page", "server"
_HEAD_ENDS = b"\r\n\r\n"
_LEFT_OUT = "sec-websocket-extensions"
_UNKNOWN = 1005  # the code of an end that has none


async def pass_on(client: Client, request: Request, origin: str, call: Call) -> None:
    """Until either side is through. `origin`: "ws://host:80"."""
    scheme, _, authority = origin.partition("://")
    host, _, port = authority.rpartition(":")
    tls = ssl.create_default_context() if scheme == "wss" else None
    try:
        reader, writer = await asyncio.open_connection(host.strip("[]"), int(port), ssl=tls)
    except OSError as error:
        call.end(Status.OK, {"code": 1006, "reason": "", "clean": False, "by": SERVER, "error": str(error)})
        client.line.abort()
        return
    beyond = Clear(reader, writer)
    talk = _Talk(call)
    try:
        await beyond.write(_head(request))
        head = await reader.readuntil(_HEAD_ENDS)
        talk.opened(head)
        await client.line.write(head)
        there = asyncio.ensure_future(_copy(client.line, beyond, talk.heard(PAGE, Side.SERVER)))
        try:
            await _copy(beyond, client.line, talk.heard(SERVER, Side.CLIENT))
        finally:
            there.cancel()
            with suppress(asyncio.CancelledError):
                await there
    except (OSError, asyncio.IncompleteReadError):
        client.line.abort()
    finally:
        talk.over()
        writer.close()


def _head(request: Request) -> bytes:
    kept = [f"{name}: {value}" for name, value in request.headers.raw_items() if name.lower() != _LEFT_OUT]
    return "\r\n".join([f"GET {request.path} HTTP/1.1", *kept, "", ""]).encode()


class _Talk:
    """What is said, on its way to the branch."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._end: dict[str, Any] = {"code": 1006, "reason": "", "clean": False, "by": SERVER}

    def opened(self, head: bytes) -> None:
        first, *rest = head.rstrip().decode("latin-1").split("\r\n")
        status = int(first.split(" ")[1])
        pairs = [line.partition(":")[::2] for line in rest]
        self._call.part({"status": status, "headers": [[name, value.strip()] for name, value in pairs]})

    def heard(self, who: str, side: Side) -> Any:
        """Takes the bytes that one side says. `side`: of whoever hears them."""
        protocol, messages = Protocol(side, max_size=None), Messages()

        def take(data: bytes) -> None:
            with suppress(ProtocolError):
                protocol.receive_data(data)
            protocol.data_to_send()  # what one would answer, the other side does itself
            for event in protocol.events_received():
                if not isinstance(event, Frame):
                    continue
                if event.opcode is Opcode.CLOSE and self._end["code"] == 1006:
                    code = int.from_bytes(event.data[:2]) if len(event.data) > 1 else _UNKNOWN
                    reason = bytes(event.data[2:]).decode("utf-8", "replace")
                    self._end = {"code": code, "reason": reason, "clean": True, "by": who}
                message = messages.take(event)
                if message is not None:
                    self._call.part(_frame(who, *message))

        return take

    def over(self) -> None:
        self._call.end(Status.OK, self._end)


def _frame(who: str, opcode: Opcode, data: bytes) -> dict[str, Any]:
    if opcode is Opcode.TEXT:
        return {"from": who, "text": data.decode("utf-8", "replace")}
    return {"from": who, "base64": b64encode(data).decode()}


async def _copy(source: Line, sink: Line, heard: Any) -> None:
    with suppress(OSError):
        while data := await source.read():
            heard(data)
            await sink.write(data)
        await sink.finish()
