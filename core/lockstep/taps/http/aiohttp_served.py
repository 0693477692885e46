"""One aiohttp exchange in a replay: recorded bytes go through aiohttp's own parser, readers and responses.

Only imported once aiohttp is.
"""

from __future__ import annotations

import asyncio
import contextvars
import sys
from collections.abc import Callable, Coroutine
from types import FrameType
from typing import Any

from aiohttp.client_proto import ResponseHandler
from aiohttp.client_reqrep import ClientRequest, RequestInfo
from aiohttp.connector import Connection
from aiohttp.helpers import set_exception
from multidict import CIMultiDict, CIMultiDictProxy

from lockstep.errors import Code
from lockstep.log.model import Status
from lockstep.session.call import Call, Piece
from lockstep.session.exceptions import revive
from lockstep.session.lanes import INSIDE
from lockstep.taps.http.aiohttp_request import SentBody, hand_back
from lockstep.taps.http.streams import check_encoding

type Original = Callable[..., Any]


class _Transport(asyncio.Transport):
    """A connection to nobody: takes what is written, and closes one callback later, as a socket does."""

    def __init__(self, loop: asyncio.AbstractEventLoop, protocol: ResponseHandler, peer: Any) -> None:
        super().__init__({"peername": tuple(peer)} if peer else None)
        self._loop = loop
        self._protocol = protocol
        self._closing = False

    def write(self, data: Any) -> None:
        pass

    def writelines(self, list_of_data: Any) -> None:
        pass

    def can_write_eof(self) -> bool:
        return False

    def get_write_buffer_size(self) -> int:
        return 0

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass

    def is_reading(self) -> bool:
        return not self._closing

    def is_closing(self) -> bool:
        return self._closing

    def close(self) -> None:
        if not self._closing:
            self._closing = True
            self._loop.call_soon(self._protocol.connection_lost, None)

    def abort(self) -> None:
        self.close()


class ServedHandler(ResponseHandler):  # type: ignore[misc]
    """aiohttp's protocol, fed from the record. Never pooled."""

    def __init__(self, loop: asyncio.AbstractEventLoop, exchange: ServedExchange) -> None:
        super().__init__(loop)
        self.lockstep_served = exchange
        self.force_close()

    @property
    def connected(self) -> bool:
        # A reader asks this when it is about to wait with an empty buffer, and only then.
        if self.transport is not None:
            self.lockstep_served.reading()
        return super().connected  # type: ignore[no-any-return]

    def feed_data(self, data: Any, size: int = 0) -> None:
        message, payload = data
        if message.code >= 200:
            payload.on_eof(self.lockstep_served.complete)
        super().feed_data(data, size)

    def _reschedule_timeout(self) -> None:
        pass  # a read timeout that ran out in the recording is served as its error

    def close(self) -> None:
        if self.transport is not None:
            self.lockstep_served.closed()
        super().close()

    def abort(self) -> None:
        if self.transport is not None:
            self.lockstep_served.closed()
        super().abort()


class ServedExchange:
    """Serves one request from `connect` to the end of its answer."""

    def __init__(self, session: Any, call: Call, streamed: bool) -> None:
        self._session = session
        self._call = call
        self._context = contextvars.copy_context()
        self._context.run(INSIDE.set, call)
        self._taking: Coroutine[Any, Any, Piece] | None = None
        self._protocol: ServedHandler | None = None
        self._live: dict[str, object] = {}
        self._accepted = ""
        self._recorded = bytearray()  # of a streamed body, as far as it is known
        self._recorded_whole = False
        self._same = 0  # bytes of it that were compared
        self._holding = False
        self._unpaced = session.recording  # past a fork's served part: no recording says when it comes
        self._due: Piece | None = None  # the end of a given answer, while there is more to read before it
        self._complete = False
        self._read_on = True  # whether the recorded program wanted more than it got
        self.body = SentBody(self._sent) if streamed else None

    async def connect(self, original: Original, connector: Any, request: ClientRequest, traces: Any, limit: Any) -> Any:
        """`BaseConnector.connect` without connecting: ends as it did in the recording."""
        self._live = _objects(connector, request)
        self._accepted = request.headers.get("Accept-Encoding", "")
        peer = await self._connected(traces)
        loop = asyncio.get_running_loop()
        protocol = self._protocol = ServedHandler(loop, self)
        protocol.connection_made(_Transport(loop, protocol, peer))
        _acquire(connector, request, protocol)
        _open.add(self)
        if not self._given:
            self._context.run(self._pull)
        return Connection(connector, request.connection_key, protocol, loop)

    async def send(self, original: Original, request: ClientRequest, connection: Any) -> Any:
        """`ClientRequest.send`, to nobody."""
        hand_back(self._call, request)
        token = INSIDE.set(self._call)
        try:
            response = await original(request, connection)
        finally:
            INSIDE.reset(token)
        if self._given:
            # An answer to what was sent, so it comes behind that.
            self._context.run(self._pull)
        return response

    @property
    def _given(self) -> bool:
        return self._unpaced or bool(getattr(self._call, "given", False))

    def reading(self) -> None:
        """The program is about to wait for more. Diverges where the recorded one had stopped reading."""
        if self._due is not None:
            asyncio.get_running_loop().call_soon(self._pull, context=self._context)
        if not self._read_on:
            self._session.diverge(
                Code.PAST_END, "the answer is read further than in the recording", call=self._call
            )  # fmt: skip

    def complete(self) -> None:
        self._complete = True

    def closed(self) -> None:
        """The program closes the connection. Diverges where it had gone on reading in the recording."""
        protocol = self._protocol
        if self._complete or protocol is None or protocol.exception() is not None:
            return
        self._call.end("closed")
        session = self._session
        pending = (self._holding or self._taking is not None) and not session.recording and not self._given
        if pending and not session.stopped and not session.interrupted and not _collecting():
            session.diverge(
                Code.ORDER, "the program closes an answer that it read further in the recording", call=self._call
            )  # fmt: skip

    def stop(self) -> None:
        """The session is over: nothing more comes, and the connection is not used again."""
        if self._taking is not None:
            self._context.run(self._taking.close)
            self._taking = None
        protocol = self._protocol
        if protocol is not None and protocol.transport is not None and not protocol._loop.is_closed():
            protocol.transport.close()

    async def _connected(self, traces: Any) -> Any:
        while True:
            piece = await self._call.atake()
            value = piece.value
            match piece.status:
                case None if isinstance(value, dict) and "connected" in value:
                    return value["connected"]
                case None if isinstance(value, dict) and "trace" in value:
                    number: Any = value["of"]
                    if number < len(traces or ()):
                        args: Any = value["args"]
                        await getattr(traces[number], str(value["trace"]))(*args)
                case Status.ERROR:
                    raise revive(value, self._call, self._live)
                case Status.CLOSED:
                    # Given up, or still connecting when the recording ended, before anything came.
                    await asyncio.get_running_loop().create_future()
                case _:
                    self._session.diverge(Code.UNSERVABLE, "the recorded answer is not aiohttp's", call=self._call)

    def _pull(self, _done: object = None) -> None:
        """Takes piece after piece at its moment and feeds it. No task: the program would see it in
        `asyncio.all_tasks()`, and the loop's end would cancel it."""
        try:
            while True:
                piece, self._due = self._due or self._take(), None
                if piece is None:
                    return
                if self._early(piece):
                    self._due = piece
                    return
                if not self._feed(piece):
                    break
                if self._holding:
                    return
        except BaseException as error:
            self._fail(error)
        _open.discard(self)

    def _early(self, piece: Piece) -> bool:
        """Whether this breaks off an answer of which the program has not read all that came before: aiohttp would
        throw that away."""
        payload = self._protocol._payload if self._protocol is not None and self._given else None
        broken = piece.status is Status.ERROR or (isinstance(piece.value, dict) and "lost" in piece.value)
        return broken and payload is not None and bool(payload._buffer)

    def _take(self) -> Piece | None:
        """The next piece, None if it is to come: then `_pull` will be called again."""
        if self._taking is None:
            self._taking = self._call.atake()
        try:
            waiting = self._taking.send(None)
        except StopIteration as done:
            self._taking = None
            piece: Piece = done.value
            return piece
        except BaseException:
            self._taking = None
            raise
        waiting._asyncio_future_blocking = False
        waiting.add_done_callback(self._pull, context=self._context)
        return None

    def _feed(self, piece: Piece) -> bool:
        """Hands one piece to aiohttp; False after the last."""
        protocol, value = self._protocol, piece.value
        assert protocol is not None
        match piece.status:
            case None if isinstance(value, bytes):
                if protocol.transport is not None:
                    protocol.data_received(value)
            case None if isinstance(value, dict) and "lost" in value:
                lost = value["lost"]
                protocol.connection_lost(None if lost is None else revive(lost, self._call))
            case None if isinstance(value, dict) and "sent" in value:
                more: Any = value["sent"]
                self._recorded += more
                self._recorded_whole = value["whole"] is True
                self._compare_sent()
            case None if isinstance(value, dict) and "offered" in value:
                check_encoding(
                    self._call,
                    {"offered": value["offered"], "headers": [["content-encoding", value["encoding"]]]},
                    self._accepted,
                )
            case Status.OK:
                if isinstance(value, dict) and value.get("upgrade"):
                    self._session.diverge(
                        Code.UNSERVABLE, "this connection became a websocket, whose frames are not recorded",
                        call=self._call,
                    )  # fmt: skip
                return False
            case Status.ERROR:
                # Bytes that cannot be parsed and a lost peer have made their error by themselves.
                if protocol.exception() is None and protocol.transport is not None:
                    self._fail(revive(value, self._call, self._live))
                return False
            case Status.CLOSED:
                self._read_on = not (isinstance(value, dict) and value.get("waiting") is False)
                return False
            case _:
                self._session.diverge(Code.UNSERVABLE, "the recorded answer is not aiohttp's", call=self._call)
        return True

    def _fail(self, error: BaseException) -> None:
        """Raises in the program, wherever it waits for this answer."""
        protocol = self._protocol
        if protocol is None:
            return
        payload = protocol._payload
        protocol.set_exception(error)
        # A body that could not be written says so to who waits for the head, all else to readers as well.
        if payload is not None and (isinstance(error, TimeoutError) or not isinstance(error, Exception)):
            set_exception(payload, error)

    def _sent(self) -> None:
        held = self._holding
        try:
            self._compare_sent()
        except BaseException as error:
            self._fail(error)
            return
        if held and not self._holding:
            asyncio.get_running_loop().call_soon(self._pull, context=self._context)

    def _compare_sent(self) -> None:
        """Compares what is sent with what was. A file may still be read while its answer is due: the answer
        is held until as much was sent as in the recording."""
        body = self.body
        if body is None:
            return
        recorded, now, start = self._recorded, body.data, self._same
        both = min(len(recorded), len(now))
        longer = self._recorded_whole and len(now) > len(recorded)
        shorter = body.whole and len(now) < len(recorded)
        if recorded[start:both] != now[start:both] or longer or shorter:
            self._session.diverge(
                Code.REQUEST, "another request body than recorded", call=self._call, path="body",
                expected=bytes(recorded[start : start + 200]), actual=bytes(now[start : start + 200]),
            )  # fmt: skip
        self._same = both
        self._holding = len(now) < len(recorded) or (self._recorded_whole and not body.whole)


_open: set[ServedExchange] = set()


def stop() -> None:
    """Ends what a replay left open."""
    for exchange in list(_open):
        exchange.stop()
    _open.clear()


def close_served(connector: Any) -> None:
    """Closes what a connector has in use, as its `close` would; but nobody is there to wait for."""
    for protocol in [each for each in connector._acquired if isinstance(each, ServedHandler)]:
        connector._acquired.discard(protocol)
        protocol.close()


def _acquire(connector: Any, request: ClientRequest, protocol: ServedHandler) -> None:
    """Does the connector's own bookkeeping. Limits are not applied, the record has their effect."""
    connector._acquired.add(protocol)
    authorize = getattr(connector, "_update_proxy_auth_header_and_build_proxy_req", None)
    if request.proxy and authorize is not None:
        authorize(request)  # puts the Proxy-Authorization header where a program may look for it


def _collecting() -> bool:
    """Whether this is the clean-up of a dropped response: the collector's moment is nobody's decision."""
    frame: FrameType | None = sys._getframe(2)
    for _ in range(12):
        if frame is None:
            return False
        if frame.f_code.co_name == "__del__":
            return True
        frame = frame.f_back
    return False


def _objects(connector: Any, request: ClientRequest) -> dict[str, object]:
    """The present objects that recorded errors refer to."""
    found: dict[str, object] = {f"{_named(type(request.connection_key))}": request.connection_key}
    info = request.request_info
    if request.proxy:
        # The one that failed was the CONNECT to the proxy.
        headers = CIMultiDictProxy(CIMultiDict(request.headers))
        info = RequestInfo(request.url, "CONNECT", headers, request.proxy)
    found[_named(RequestInfo)] = info
    return found


def _named(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"
