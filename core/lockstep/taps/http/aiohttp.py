"""The tap of aiohttp's client: redirects, cookies, parsing, traces and errors stay aiohttp's own.

Cut at the connector (`connect` asks what a connection is wanted for) and at the connection's protocol
(bytes of an answer on their way to the parser). While recording both only watch; in a replay `connect`
gives a connection to nobody whose protocol is fed from the record.

These classes are private to aiohttp, so they are probed when it is imported: a version that lacks one
is left alone and named. Tried with aiohttp 3.11 to 3.14.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from types import ModuleType
from typing import TYPE_CHECKING, Any

from lockstep.session import current
from lockstep.session.lanes import INSIDE
from lockstep.taps.http.seams import Seam, Seams, parameters
from lockstep.taps.http.streams import close_pool
from lockstep.taps.imports import when_imported

if TYPE_CHECKING:
    from lockstep.taps.http.aiohttp_live import LiveExchange
    from lockstep.taps.http.aiohttp_served import ServedExchange

TRIED = "3.11 to 3.14"

type Original = Callable[..., Any]

seams = Seams()


def install() -> None:
    """Puts the seams on as soon as aiohttp is imported. Inert without a session."""
    when_imported("aiohttp.client", _install)


def stop() -> None:
    """Ends what the session left open."""
    served = sys.modules.get("lockstep.taps.http.aiohttp_served")
    if served is not None:
        served.stop()


def _install(_: ModuleType) -> None:
    if seams.all:
        return
    lacking = _lacking()
    if lacking:
        import aiohttp

        version = getattr(aiohttp, "__version__", "of unknown version")
        seams.refuse("aiohttp", f"aiohttp {version} has no {lacking}: not covered (tried with {TRIED})")
        return
    from aiohttp import client_reqrep
    from aiohttp.client_proto import ResponseHandler
    from aiohttp.connector import BaseConnector

    from lockstep.taps.http.aiohttp_request import TeedWriter

    handler: Any = ResponseHandler
    handler.lockstep_exchange = None  # the LiveExchange whose answer this connection carries
    handler.lockstep_served = None
    handler.lockstep_session = None  # the session that has seen this connection
    handler.feed_data = ResponseHandler.feed_data  # inherited: put on this class alone
    handler.connected = property(_connected(ResponseHandler.connected.fget))
    client_reqrep.StreamWriter = TeedWriter
    for owner, name, make in (
        (BaseConnector, "connect", _connect),
        (BaseConnector, "close", _connector_closed),
        (BaseConnector, "_release", _apart),
        (client_reqrep.ClientRequest, "send", _send),
        (ResponseHandler, "data_received", _data_received),
        (ResponseHandler, "feed_data", _feed_data),
        (ResponseHandler, "connection_lost", _connection_lost),
        (ResponseHandler, "set_exception", _set_exception),
        (ResponseHandler, "close", _closed),
        (ResponseHandler, "abort", _closed),
    ):
        if name == "abort" and not hasattr(owner, name):
            continue  # aiohttp before 3.12
        seams.add(Seam(owner, name, make))


def _lacking() -> str:
    """The first thing this tap stands on that is not there, "" if all is."""
    try:
        from aiohttp import client_reqrep, connector
        from aiohttp.client_proto import ResponseHandler
        from aiohttp.http_writer import StreamWriter
        from aiohttp.multipart import MultipartWriter
        from aiohttp.payload import AsyncIterablePayload, BytesPayload
        from aiohttp.streams import DataQueue, StreamReader
    except ImportError as error:
        return str(error)
    wanted: tuple[tuple[Any, str, tuple[str, ...]], ...] = (
        (connector.BaseConnector, "connect", ("self", "req", "traces", "timeout")),
        (connector.BaseConnector, "close", ("self",)),
        (connector.BaseConnector, "_release", ("self", "key", "protocol")),
        (connector.Connection, "__init__", ("self", "connector", "key", "protocol", "loop")),
        (client_reqrep.ClientRequest, "send", ("self", "conn")),
        (ResponseHandler, "data_received", ("self", "data")),
        (ResponseHandler, "connection_lost", ("self", "exc")),
        (ResponseHandler, "set_exception", ("self", "exc")),
        (ResponseHandler, "_reschedule_timeout", ("self",)),
        (ResponseHandler, "close", ("self",)),
        (DataQueue, "feed_data", ("self", "data", "size")),
        (DataQueue, "exception", ("self",)),
        (StreamReader, "on_eof", ("self", "callback")),
        (StreamWriter, "__init__", ("self", "protocol")),
        (StreamWriter, "write", ("self", "chunk")),
        (StreamWriter, "write_eof", ("self", "chunk")),
        (StreamWriter, "set_eof", ("self",)),
        (MultipartWriter, "write", ("self", "writer")),
        (AsyncIterablePayload, "write", ("self", "writer")),
        (BytesPayload, "write", ("self", "writer")),
    )
    for owner, name, names in wanted:
        if parameters(getattr(owner, name, None))[: len(names)] != names:
            return f"{owner.__qualname__}.{name}({', '.join(names[1:])})"
    uses: tuple[tuple[Any, str, str], ...] = (
        (connector.BaseConnector, "__init__", "_acquired"),
        (ResponseHandler, "__init__", "_payload"),
        (StreamReader, "_wait", "connected"),
        (client_reqrep.ClientRequest, "send", "StreamWriter"),
        (client_reqrep.ClientRequest, "__init__", "_traces"),
        (AsyncIterablePayload, "__init__", "_iter"),
    )
    for owner, name, used in uses:
        code = getattr(getattr(owner, name, None), "__code__", None)
        if code is None or used not in code.co_names:
            return f"{used} in {owner.__qualname__}.{name}"
    return ""


def _begin(session: Any, request: Any) -> Any:
    """Asks the session for this request: an exchange, or where it is held what becomes one. None where recording
    it failed: the program goes on without."""
    from lockstep.taps.http.aiohttp_request import describe

    call = session.open("http")
    try:
        about, streamed = describe(request)
        call.ask(about.name, about.request, about.key, about.kind)
        return _Held(session, call, streamed) if call.held else _exchange(session, call, streamed)
    except Exception as error:
        if not session.recording or call.held:
            raise
        session.fault("aiohttp request", error)
        return None


def _exchange(session: Any, call: Any, streamed: bool) -> LiveExchange | ServedExchange:
    if call.live:
        from lockstep.taps.http.aiohttp_live import LiveExchange

        return LiveExchange(session, call, streamed)
    from lockstep.taps.http.aiohttp_served import ServedExchange

    return ServedExchange(session, call, streamed)


class _Held:
    """A request that waits to be live or served, before there is a connection for it. (A streamed body is no part of
    what is asked, so it is not drawn before.)"""

    __slots__ = ("_call", "_session", "_streamed")

    def __init__(self, session: Any, call: Any, streamed: bool) -> None:
        self._session = session
        self._call = call
        self._streamed = streamed

    async def connect(self, *asked: Any) -> Any:
        await self._call.aready()
        return await _exchange(self._session, self._call, self._streamed).connect(*asked)


def _connect(original: Original) -> Original:
    def connect(self: Any, req: Any, traces: Any, timeout: Any) -> Any:
        session = current.session
        exchange = None if session is None else _begin(session, req)
        if exchange is None:
            return original(self, req, traces, timeout)
        return exchange.connect(original, self, req, traces, timeout)

    return _coroutine_function(connect)


def _send(original: Original) -> Original:
    def send(self: Any, conn: Any) -> Any:
        protocol = conn.protocol
        exchange = protocol.lockstep_exchange or protocol.lockstep_served
        if exchange is None or current.session is None:  # none for the CONNECT to a proxy: a part of connecting
            return original(self, conn)
        return exchange.send(original, self, conn)

    return _coroutine_function(send)


def _coroutine_function(function: Original) -> Original:
    # Here, since it costs at every program's start and aiohttp imports it anyway.
    from inspect import markcoroutinefunction

    return markcoroutinefunction(function)


def _data_received(original: Original) -> Original:
    def data_received(self: Any, data: bytes) -> None:
        exchange = self.lockstep_exchange
        if exchange is None or not data:
            original(self, data)
            return
        exchange.received(data)
        try:
            original(self, data)
        finally:
            exchange.settled()

    return data_received


def _feed_data(original: Original) -> Original:
    def feed_data(self: Any, data: Any, size: int = 0) -> None:
        exchange = self.lockstep_exchange
        if exchange is not None:
            message, payload = data
            exchange.message(message, payload)
        original(self, data, size)

    return feed_data


def _connection_lost(original: Original) -> Original:
    def connection_lost(self: Any, exc: BaseException | None) -> None:
        exchange = self.lockstep_exchange
        if exchange is None:
            original(self, exc)
            return
        payload = self._payload
        exchange.lost(exc)
        try:
            original(self, exc)
        finally:
            exchange.lost_settled(self, payload)

    return connection_lost


def _set_exception(original: Original) -> Original:
    def set_exception(self: Any, exc: BaseException, *cause: BaseException) -> None:
        exchange = self.lockstep_exchange
        if exchange is not None:
            exchange.failed(exc)
        original(self, exc, *cause)

    return set_exception


def _closed(original: Original) -> Original:
    """Own close: `transport` is still there, a lost peer has taken it away before."""
    apart = _apart(original)

    def close(self: Any) -> None:
        exchange = self.lockstep_exchange
        if exchange is not None and self.transport is not None:
            exchange.closed()
        apart(self)

    return close


class _Closing:
    """What `BaseConnector.close` gives: the connections are being closed, who awaits it sees them closed."""

    __slots__ = ("_connector", "_session", "_waiter")

    def __init__(self, session: Any, connector: Any, waiter: Any) -> None:
        self._session = session
        self._connector = connector
        self._waiter = waiter  # warns, if nobody awaits it
        if not session.recording:
            # There is nothing to wait for, and even that suspends: when the program goes on is recorded.
            waiter.__await__()

    def __await__(self) -> Generator[Any, Any, None]:
        return close_pool(self._session, self._done, self._connector).__await__()

    async def _done(self, _: Any) -> None:
        if self._session.recording:
            await self._waiter


def _connector_closed(original: Original) -> Original:
    apart = _apart(original)

    def close(self: Any, **options: Any) -> Any:
        session = current.session
        if session is None:
            return original(self, **options)
        served = sys.modules.get("lockstep.taps.http.aiohttp_served")
        if served is not None:
            _apart(served.close_served)(self)
        return _Closing(session, self, apart(self, **options))

    return close


def _apart(original: Original) -> Original:
    """Clean-up of connections: its callbacks and its shuffles are not the program's."""

    def apart(self: Any, *args: Any, **options: Any) -> Any:
        if current.session is None:
            return original(self, *args, **options)
        token = INSIDE.set(True)
        try:
            return original(self, *args, **options)
        finally:
            INSIDE.reset(token)

    return apart


def _connected(original: Callable[[Any], bool]) -> Callable[[Any], bool]:
    def connected(self: Any) -> bool:
        # A reader asks this when it is about to wait with an empty buffer, and only then.
        exchange = self.lockstep_exchange
        if exchange is not None:
            exchange.reading()
        return original(self)

    return connected
