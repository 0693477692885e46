"""httpx and httpx2, sync and async, and whatever else stands on httpcore: cut at the connection pool.

Seams, tried with httpcore 1.0 and httpcore2 2.16: `ConnectionPool.handle_request` and
`AsyncConnectionPool.handle_async_request` (proxy pools inherit both), `AsyncConnectionPool.aclose`.
Above them everything stays the client's own: redirects, auth, cookies, retries, mounts, hooks,
decoding, exception mapping, the user's transports. What is not seen from here are connection-level
matters: `trace` callbacks do not fire in a replay, where no connection is made.

An exchange is stored as a head part {"status", "headers", "http_version", "reason", …}, byte parts
(transfer-decoded, still content-encoded), and the end. An async stream that was closed before its
end has the part {"closed": true}: closing suspends the task, and the program goes on from there.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING, Any

from lockstep.errors import Code
from lockstep.log.model import Value
from lockstep.session import current, sites
from lockstep.session.call import Asked, LiveCall, failed
from lockstep.taps.http import bodies, streams
from lockstep.taps.http.request import Described, absolute, describe, known, offered, with_body
from lockstep.taps.http.seams import Seam, Seams, parameters
from lockstep.taps.imports import when_imported

if TYPE_CHECKING:
    from lockstep.session.surface import Session

type Pair = tuple[bytes, bytes]
type Pairs = tuple[Pair, ...]
type Raw = tuple[Any, ...]  # method, scheme, host, port, target, headers

_PACKAGES = ("httpcore", "httpcore2")
_TRIED = {"httpcore": "1.0.9", "httpcore2": "2.16.2"}

_TOLD = ("http_version", "reason_phrase", "stream_id")
_PEER = "_lockstep_peer"  # set on a connection's stream
_UNASKED = object()

seams = Seams()


def install() -> None:
    """Patches both packages, now or when they are imported."""
    for name in _PACKAGES:
        when_imported(name, _patch)


def probe(module: ModuleType) -> str:
    """Why this version cannot be covered, "" if it can."""
    pool, apool = getattr(module, "ConnectionPool", None), getattr(module, "AsyncConnectionPool", None)
    response = getattr(module, "Response", None)
    for owner, name, wanted in (
        (pool, "handle_request", ("self", "request")),
        (apool, "handle_async_request", ("self", "request")),
        (apool, "aclose", ("self",)),
        (response, "__init__", ("self", "status", "headers", "content", "extensions")),
    ):
        if parameters(getattr(owner, "__dict__", {}).get(name)) != wanted:
            version = getattr(module, "__version__", "of unknown version")
            where = f"{getattr(owner, '__name__', owner)}.{name}"
            return f"{version} has no {where}{wanted} (tried: {_TRIED.get(module.__name__, 'none')})"
    return ""


def _patch(module: ModuleType) -> None:
    problem = probe(module)
    if problem:
        seams.refuse(module.__name__, problem)
        return
    # After `httpx2.alias_httpx()` both names are one module: a seam is put on once.
    seams.add(
        Seam(module.ConnectionPool, "handle_request", lambda original: _sync(original, module)),
        Seam(module.AsyncConnectionPool, "handle_async_request", lambda original: _async(original, module)),
        Seam(module.AsyncConnectionPool, "aclose", _closing),
    )


def _sync(original: Any, module: Any) -> Any:
    def handle_request(self: Any, request: Any) -> Any:
        session = current.session
        if session is None:
            return original(self, request)
        call = session.open("http")
        if call.live:
            return _record(session, call, request, original, self)
        drawn = bodies.draw(request.stream, call)
        _ask(call, request, drawn.body, drawn.partial)
        if call.held:
            call.ready()
        if call.live:
            return _record(session, call, request, original, self, drawn)
        if drawn.rest is not None:
            drawn.rest.close()
        return _serve(call, request, module, drawn)

    return handle_request


def _async(original: Any, module: Any) -> Any:
    async def handle_async_request(self: Any, request: Any) -> Any:
        session = current.session
        if session is None:
            return await original(self, request)
        call = session.open("http")
        if call.live:
            return await _arecord(session, call, request, original, self)
        drawn = await bodies.adraw(request.stream, call)
        _ask(call, request, drawn.body, drawn.partial)
        if call.held:
            await call.aready()
        if call.live:
            return await _arecord(session, call, request, original, self, drawn)
        if drawn.rest is not None:
            await drawn.rest.aclose()
        return await _aserve(call, request, module, drawn)

    return handle_async_request


def _closing(original: Any) -> Any:
    async def aclose(self: Any) -> None:
        session = current.session
        if session is None:
            await original(self)
            return
        await streams.close_pool(session, original, self)

    return aclose


# Recording.


def _record(session: Any, call: Any, request: Any, original: Any, pool: Any, drawn: Any = None) -> Any:
    asking = None
    try:
        asking = _asking(session, call, request, bodies.SentStream, drawn)
        with call.inside():
            response = original(pool, request)
    except BaseException as error:
        if asking is not None:
            asking.done()
        failed(call, error)
        raise
    if asking is not None:
        asking.done()
    return _tapped(session, call, request, response, streams.TappedStream)


async def _arecord(session: Any, call: Any, request: Any, original: Any, pool: Any, drawn: Any = None) -> Any:
    asking = None
    try:
        asking = _asking(session, call, request, bodies.AsyncSentStream, drawn)
        with call.inside():
            response = await original(pool, request)
    except BaseException as error:
        if asking is not None:
            asking.done()
        failed(call, error)
        raise
    if asking is not None:
        asking.done()
    return _tapped(session, call, request, response, streams.AsyncTappedStream)


def _asking(session: Any, call: Any, request: Any, kind: Any, drawn: Any) -> _Drawing | None:
    """Asks as soon as the whole request is known: before it is sent if its body is plain bytes. A held one has been
    asked. None where the client sends what it has."""
    body = bodies.plain(request.stream)
    if body is None:
        return _Drawing(session, call, request, kind, drawn)
    if drawn is None:
        _ask_later(session, call, request, body)
    return None


class _Drawing:
    """A request whose body is drawn while it is sent: it is asked for when the last byte was drawn, at the latest
    when the client is done with it."""

    __slots__ = ("_ask", "_request", "_sent", "_stream")

    def __init__(self, session: Any, call: Any, request: Any, kind: Any, drawn: Any) -> None:
        self._request = request
        self._stream = stream = request.stream
        self._ask = partial(_ask_later, session, call, request)
        self._sent = kind(stream, call, self._ask) if drawn is None else None
        request.stream = bodies.Given(stream, drawn) if drawn is not None else self._sent

    def done(self) -> None:
        sent = self._sent
        self._request.stream = self._stream
        if sent is not None and sent.partial is not None:
            self._ask(sent.so_far(), sent.partial)


def _ask_later(session: Any, call: LiveCall, request: Any, body: bytes, unsent: str | None = None) -> None:
    try:
        call.ask_later(partial(_asked, _raw(request), unsent), body)
    except Exception as error:
        session.fault("httpcore request", error)


def _tapped(session: Any, call: Any, request: Any, response: Any, stream: Any) -> Any:
    """Hands the response on, with its stream teed."""
    try:
        status, extensions = response.status, response.extensions
        switched = status == 101 or (request.method == b"CONNECT" and 200 <= status < 300)
        told = {name: extensions.get(name) for name in _TOLD}
        connection = extensions.get("network_stream")
        peer = getattr(connection, _PEER, _UNASKED)
        if peer is _UNASKED:
            peer = _peer(connection)
        call.part(partial(_head, status, tuple(response.headers), told, peer, tuple(request.headers), switched))
        if switched:
            # From here on it is a websocket or a tunnel, which no tap follows.
            call.end("ok")
            session.note("protocol switch", f"{_described(_raw(request)).shown} ({sites.site() or 'a library'})")
            return response
        response.stream = stream(response.stream, call)
    except Exception as error:
        session.fault("httpcore response", error)
    return response


def _peer(stream: Any) -> Any:
    """The address at the other end of a connection, asked for once: it is information only."""
    found = None
    with suppress(Exception):  # OSError on a connection that the peer has closed already
        found = stream.get_extra_info("server_addr")
    with suppress(AttributeError):
        setattr(stream, _PEER, found)
    return found


def _head(
    status: int, headers: Pairs, told: dict[str, Any], peer: Any, asked: Pairs, switched: bool
) -> dict[str, Value]:  # fmt: skip
    """The head of an answer, as stored."""
    pairs = _text(headers)
    version = told["http_version"] or b""
    head: dict[str, Value] = {
        "status": status,
        "headers": [[name, value] for name, value in pairs],
        "http_version": version.decode("latin-1"),
    }
    for name in _TOLD[1:]:
        value = told[name]
        if value is not None:
            head[name] = value.decode("latin-1") if isinstance(value, bytes) else value
    if any(name.lower() == "content-encoding" for name, _ in pairs):
        head["offered"] = offered(_text(asked))
    with suppress(TypeError, LookupError, ValueError):  # of a socket that has no such address
        head["server_addr"] = [str(peer[0]), int(peer[1])]
    if switched:
        head["switched"] = True
    return head


# Replay.


def _serve(call: Any, request: Any, module: Any, drawn: bodies.Drawn) -> Any:
    piece = call.take()
    if drawn.error is not None:
        raise drawn.error
    return _response(call, request, module, piece, streams.ServedStream)


async def _aserve(call: Any, request: Any, module: Any, drawn: bodies.Drawn) -> Any:
    piece = await streams.next_piece(call)
    if drawn.error is not None:
        raise drawn.error
    return _response(call, request, module, piece, streams.AsyncServedStream)


def _response(call: Any, request: Any, module: Any, piece: Any, stream: Any) -> Any:
    if piece.status is not None:
        streams.raise_end(call, piece)
    head = piece.value
    session: Session = call.session
    if not isinstance(head, dict) or "status" not in head:
        session.diverge(Code.UNSERVABLE, "the recorded answer has no head", call=call)
    if head.get("switched"):
        session.diverge(Code.NOT_COVERED, "what followed the protocol switch was not recorded", call=call)
    streams.check_encoding(call, head, offered(_text(request.headers)))
    extensions: dict[str, Any] = {"http_version": str(head.get("http_version") or "HTTP/1.1").encode("latin-1")}
    if "reason_phrase" in head:
        extensions["reason_phrase"] = head["reason_phrase"].encode("latin-1")
    if "stream_id" in head:
        extensions["stream_id"] = head["stream_id"]
    extensions["network_stream"] = streams.NoNetwork(call, head.get("server_addr"))
    headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in head["headers"]]
    return module.Response(head["status"], headers=headers, content=stream(call), extensions=extensions)


# Both.


def _ask(call: Any, request: Any, body: bytes, unsent: str | None) -> None:
    what = _asked(_raw(request), unsent, body)
    call.ask(what.name, what.request, what.key, what.kind)


def _raw(request: Any) -> Raw:
    """What a request consists of beside its body, as nobody can change it any more."""
    url = request.url
    return request.method, url.scheme, url.host, url.port, url.target, *request.headers


def _asked(raw: Raw, unsent: str | None, body: bytes) -> Asked:
    return with_body(known(raw, lambda: _described(raw)), body, unsent)


def _described(raw: Raw) -> Described:
    method, scheme, host, port, target, *headers = raw
    address = absolute(scheme.decode(), host.decode("latin-1"), port, target.decode("latin-1"))
    return describe(method.decode("latin-1"), address, _text(headers))


def _text(headers: Iterable[Pair]) -> list[tuple[str, str]]:
    return [(name.decode("latin-1"), value.decode("latin-1")) for name, value in headers]
