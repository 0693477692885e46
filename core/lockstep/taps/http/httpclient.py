"""http.client and all that stands on it: urllib, urllib3, requests, botocore.

Seams, tried with CPython 3.12 and 3.13 and urllib3 2.8: `HTTPConnection.send` and `.getresponse` of
http.client, and `connect` of http.client's and urllib3's connections. Everything above stays the
client's own: parsing, response classes, retries, redirects, pools, cookies, proxies, decoding, and
the wrapping of exceptions, since only what the socket gave or raised is recorded.

An exchange is stored as a head part {"status", "headers", "raw": [segments], …}, whose last segment
may hold the begin of the body; then segments as they were received. A connection that could not be
made is an exchange of its own, named CONNECT: it fails before the request is known.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import ModuleType
from typing import Any

from lockstep.session import current, lanes
from lockstep.taps.http import connecting, sockets
from lockstep.taps.http.connections import CONNECTING, exchange_of, forget, put
from lockstep.taps.http.exchange import Exchange
from lockstep.taps.http.seams import Seam, Seams, parameters
from lockstep.taps.imports import when_imported

_TRIED = {"http.client": "CPython 3.12 to 3.13", "urllib3.connection": "urllib3 2.8"}

seams = Seams()


def install() -> None:
    """Patches the connection classes, now or when they are imported. Imports nothing."""
    when_imported("http.client", _patch_http_client)
    when_imported("urllib3.connection", _patch_urllib3)
    when_imported("urllib3.connectionpool", _patch_pools)


def stop() -> None:
    """Takes the stand-ins out of connections that live on."""
    for fake in list(sockets.fakes):
        connection = fake.connection()
        if connection is not None and connection.sock is fake:
            fake.give_back()
            forget(connection)


def probe(module: ModuleType) -> str:
    """Why this version cannot be covered, "" if it can."""
    plain, secure = getattr(module, "HTTPConnection", None), getattr(module, "HTTPSConnection", None)
    wanted: list[tuple[Any, str, tuple[str, ...]]] = [(plain, "connect", ("self",))]
    if secure is not None:  # a Python without ssl has none
        wanted.append((secure, "connect", ("self",)))
    if module.__name__ == "http.client":
        wanted += [(plain, "send", ("self", "data")), (plain, "getresponse", ("self",))]
    for owner, name, names in wanted:
        if parameters(getattr(owner, "__dict__", {}).get(name)) != names:
            where = f"{getattr(owner, '__name__', owner)}.{name}"
            return f"has no {where}{names} (tried: {_TRIED[module.__name__]})"
    return ""


def _patch_http_client(module: ModuleType) -> None:
    if _supported(module):
        seams.add(Seam(module.HTTPConnection, "send", _send), Seam(module.HTTPConnection, "getresponse", _getresponse))
        _patch_connect(module)


def _patch_urllib3(module: ModuleType) -> None:
    if _supported(module):
        _patch_connect(module)


def _patch_pools(module: ModuleType) -> None:
    # Runs from a finalizer too, at a moment that is nobody's decision: its queue must not be the program's.
    close = getattr(module, "_close_pool_connections", None)
    if callable(close) and not hasattr(close, "__wrapped__"):
        module._close_pool_connections = lanes.ours(close)  # type: ignore[attr-defined]


def _patch_connect(module: ModuleType) -> None:
    for name in ("HTTPConnection", "HTTPSConnection"):
        owner = getattr(module, name, None)
        if owner is not None and "connect" in vars(owner):
            seams.add(Seam(owner, "connect", _connect))


def _supported(module: ModuleType) -> bool:
    problem = probe(module)
    if problem:
        seams.refuse(module.__name__, problem)
    return not problem


def _connect(original: Any) -> Any:
    def connect(self: Any) -> None:
        session = current.session
        if session is None or exchange_of(self) is CONNECTING:
            original(self)
            return
        exchange = exchange_of(self)
        call = exchange.call if exchange is not None and exchange.session is session else session.open("http")
        if call.live:
            connecting.connect(call, self, original)
        else:
            connecting.serve(call, self, eager=True)

    return connect


def _send(original: Any) -> Any:
    def send(self: Any, data: Any) -> None:
        session = current.session
        if session is None:
            original(self, data)
            return
        exchange = exchange_of(self)
        if exchange is CONNECTING:
            original(self, data)  # to the proxy, not to the server
            return
        if exchange is None or exchange.session is not session:
            exchange = Exchange(session, self)
            put(self, exchange)
        if exchange.call.live:
            _send_live(original, self, data, exchange)
        else:
            _send_served(original, self, data, exchange)

    return send


def _send_live(original: Any, connection: Any, data: Any, exchange: Exchange) -> None:
    if isinstance(connection.sock, sockets.FakeSocket):
        connection.sock = None  # served so far, live from here on
    try:
        passing = _watched(data, exchange)
        with exchange.call.inside():
            original(connection, passing)
    except BaseException as error:
        _broke(connection, exchange, error)
        raise
    exchange.sent()


def _broke(connection: Any, exchange: Exchange, error: BaseException) -> None:
    if exchange.over:  # the connection could not be made, which is recorded already
        forget(connection)
    elif not connecting.reads_on(connection, error):
        exchange.send_failed(error)
        forget(connection)


def _send_served(original: Any, connection: Any, data: Any, exchange: Exchange) -> None:
    sock = connection.sock
    if not isinstance(sock, sockets.FakeSocket):
        if sock is None and not connection.auto_open:
            original(connection, data)  # raises NotConnected
            return
        if sock is not None and not exchange.call.held:
            # Kept alive from before the replay. Only the socket is closed: the connection's own `close`
            # would also drop what its client has prepared for the answer.
            sock.close()
            sock = None
        if connecting.serve(exchange.call, connection):
            forget(connection)  # that was to connect: the request is a call of its own
            connection.send(data)
            return
        connection.sock.kept = sock
        sock = connection.sock
    sock.exchange = exchange
    exchange.fake = sock
    try:
        original(connection, data)
    except BaseException as error:
        if exchange.call.live:  # held, and sent meanwhile
            _broke(connection, exchange, error)
        raise


def _getresponse(original: Any) -> Any:
    def getresponse(self: Any) -> Any:
        session = current.session
        exchange = exchange_of(self) if session is not None else None
        if exchange is None or exchange is CONNECTING or exchange.session is not session:
            return original(self)
        try:
            if not exchange.call.live:
                exchange.ask()
        finally:
            forget(self)
        return exchange.receive(original) if exchange.call.live else original(self)

    return getresponse


# What may be given to `send`: bytes, something readable, or an iterable of bytes.


def _watched(data: Any, exchange: Exchange) -> Any:
    """The same data, seen by the exchange as it is drawn; drawing is the program's own code."""
    if hasattr(data, "read"):
        return _Read(data, exchange)
    try:
        view = memoryview(data)
    except TypeError:
        return _each(data, exchange) if isinstance(data, Iterable) else data
    exchange.took(view.tobytes() if type(data) is not bytes else data)
    return data


def _each(data: Iterable[Any], exchange: Exchange) -> Iterator[Any]:
    pieces = iter(data)
    while True:
        with exchange.call.program():
            try:
                piece = next(pieces)
            except StopIteration:
                return
        exchange.took(bytes(piece))
        yield piece


class _Read:
    """A file given as a body. Text is encoded as http.client encodes it."""

    def __init__(self, file: Any, exchange: Exchange) -> None:
        self._file = file
        self._exchange = exchange

    def read(self, size: int = -1) -> bytes:
        with self._exchange.call.program():
            block = self._file.read(size)
        encoded = block.encode("iso-8859-1") if isinstance(block, str) else bytes(block)
        self._exchange.took(encoded)
        return encoded
