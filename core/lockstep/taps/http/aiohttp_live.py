"""One aiohttp exchange while recording: bytes are kept as they reach aiohttp's own parser.

The parts of its outcome, in the order in which they happened:

    {"trace": name, "of": n, "args": […]}  a connection hook of the n-th trace ran
    {"connected": [host, port] or None}    there is a connection: the peer's address; also "raw": bytes follow
    {"sent": bytes, "whole": bool}         more of a streamed request body was sent; whole: to its end
    bytes                                  a segment of the answer, from the status line on
    {"offered": …, "encoding": …}          the answer is encoded: what the client had said it can decode
    {"lost": encoded error or None}        the peer broke off

Where neither hooks nor a streamed body run between connecting and the answer, "connected" is told with the answer's
first byte: before it the program has got nothing (a fork that leaves there asks anew). An end of status "closed" says
in {"waiting": bool} whether the program was waiting for more.
Only imported once aiohttp is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from aiohttp.client_proto import ResponseHandler
from aiohttp.client_reqrep import ClientRequest

from lockstep.log.model import Value
from lockstep.session import current
from lockstep.session.call import Call
from lockstep.session.exceptions import encode
from lockstep.taps.http.aiohttp_request import SentBody, Traced, hand_back

type Original = Callable[..., Any]


class LiveExchange:
    """Follows one request from `connect` to the end of its answer. Nothing here may raise."""

    def __init__(self, session: Any, call: Call, streamed: bool) -> None:
        self._session = session
        self._call = call
        self._protocol: ResponseHandler | None = None
        self._offered = ""
        self._error: BaseException | None = None  # what aiohttp made of the bytes or of their end
        self._inside_aiohttp = False
        self._waiting = True  # the program waits and has got all there is; first of all for the head
        self.body = SentBody(self._sent) if streamed else None
        self._told = 0  # bytes of it that are recorded
        self._eager = streamed
        self._connected: Value = None  # that there is a connection, where it is not told yet

    async def connect(self, original: Original, connector: Any, request: ClientRequest, traces: Any, limit: Any) -> Any:
        """`BaseConnector.connect`, as part of the effect."""
        self._offered = request.headers.get("Accept-Encoding", "")
        if traces:
            self._eager = True
            traces = [Traced(self._call, trace, self._hook_of(n)) for n, trace in enumerate(traces)]
        try:
            with self._call.inside():
                connection = await original(connector, request, traces, limit)
        except asyncio.CancelledError:
            self._call.end("cancelled")
            raise
        except Exception as error:
            self._call.end("error", error)
            raise
        except BaseException:
            self._call.end("closed")
            raise
        try:
            self._attach(connection.protocol)
        except Exception as error:
            self._session.fault("aiohttp connection", error)
        return connection

    async def send(self, original: Original, request: ClientRequest, connection: Any) -> Any:
        """`ClientRequest.send`, as part of the effect."""
        try:
            hand_back(self._call, request)
        except Exception as error:
            self._session.fault("aiohttp request", error)
        try:
            with self._call.inside():
                return await original(request, connection)
        except Exception as error:
            self._end("error", error)
            raise

    def received(self, data: bytes) -> None:
        """Bytes are about to reach the parser."""
        if self._session is not current.session:
            self._detach()
            return
        self._waiting = False
        self._inside_aiohttp = True
        self._tell_connected()
        self._tell_sent()  # an answer may come before the body's end
        self._call.part(bytes(data))

    def settled(self) -> None:
        """The parser has seen them."""
        self._inside_aiohttp = False
        if self._error is not None:
            self._end("error", self._error)

    def message(self, message: Any, payload: Any) -> None:
        """The parser found the head of an answer."""
        status = message.code
        if message.compression:
            self._call.part({"offered": self._offered, "encoding": message.compression})
        if status == 101:
            self._session.note("websocket", f"{self._call_name()} was upgraded: its frames are not recorded")
            self._end("ok", {"upgrade": True})
        elif status >= 200:
            payload.on_eof(self._complete)

    def lost(self, error: BaseException | None) -> None:
        """The peer is gone; what aiohttp makes of it is known by `lost_settled`."""
        self._inside_aiohttp = True
        self._tell_connected()
        self._call.part({"lost": encode(error) if error is not None else None})

    def lost_settled(self, protocol: ResponseHandler, payload: Any) -> None:
        error = payload.exception() if payload is not None else None
        self._end("error", error or protocol.exception() or ConnectionError("connection lost"))

    def failed(self, error: BaseException) -> None:
        """An error was given to the program: a read timeout, a body that could not be written."""
        if self._inside_aiohttp:
            self._error = error
        else:
            self._end("error", error)

    def reading(self) -> None:
        """The program has read all there is and waits for more."""
        self._waiting = True

    def closed(self) -> None:
        """The program closes the connection before the answer is complete."""
        self._end("closed", {"waiting": self._waiting})

    def _complete(self) -> None:
        self._end("ok")

    def _sent(self) -> None:
        if self.body is not None and self.body.whole:
            self._tell_sent()

    def _tell_connected(self) -> None:
        connected, self._connected = self._connected, None
        if connected is not None:
            self._call.part(connected)

    def _tell_sent(self) -> None:
        body = self.body
        if body is None or self._told < 0 or (len(body.data) == self._told and not body.whole):
            return
        self._call.part({"sent": bytes(body.data[self._told :]), "whole": body.whole})
        self._told = -1 if body.whole else len(body.data)

    def _end(self, status: str, value: Any = None) -> None:
        if self._protocol is not None:
            self._tell_sent()
        if status != "closed":  # else the program gave up before it got anything
            self._tell_connected()
        self._call.end(status, value)
        self._detach()

    def _detach(self) -> None:
        protocol, self._protocol = self._protocol, None
        if protocol is not None:
            protocol.lockstep_exchange = None

    def _attach(self, protocol: Any) -> None:
        self._protocol = protocol
        protocol.lockstep_exchange = self
        transport = protocol.transport
        if protocol.lockstep_session is not self._session:
            protocol.lockstep_session = self._session
            self._own_callbacks(transport)
        self._connected = {"connected": _peer(transport), "raw": []}
        if self._eager:
            self._tell_connected()

    def _own_callbacks(self, transport: Any) -> None:
        """A connection that was pooled before the session is read in the context of whoever opened it;
        its callbacks would count as the program's. Reading is resumed in the effect's context instead."""
        tls = getattr(transport, "_ssl_protocol", None)
        raw = transport if tls is None else tls._transport
        if raw.is_reading():
            with self._call.inside():
                raw.pause_reading()
                raw.resume_reading()

    def _hook_of(self, number: int) -> Callable[[str, list[Any]], None]:
        def seen(name: str, args: list[Any]) -> None:
            self._call.part({"trace": name, "of": number, "args": args})

        return seen

    def _call_name(self) -> str:
        return str(getattr(self._call, "name", ""))


def _peer(transport: Any) -> Value:
    found = transport.get_extra_info("peername")
    return [str(found[0]), int(found[1])] if isinstance(found, tuple) and len(found) >= 2 else None
