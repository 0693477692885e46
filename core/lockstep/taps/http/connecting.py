"""Making the connection of an http.client client: not recorded where it succeeds, an exchange where it fails.

A replay connects to nothing. Since urllib3 connects TLS and proxies before it sends, a recorded failure
is recognised by its place: it is the next thing that the lane's record holds.
"""

from __future__ import annotations

import sys
from typing import Any

from lockstep.log.model import Status, Value
from lockstep.session import current
from lockstep.session.exceptions import revive
from lockstep.taps.http import expected, streams
from lockstep.taps.http.exchange import CONNECTING, exchange_of, forget, origin, put
from lockstep.taps.http.request import absolute
from lockstep.taps.http.sockets import FakeSocket

# What urllib3 looks at to decide whose fault an error was, and whether to warn.
_FLAGS = ("_has_connected_to_proxy", "is_verified", "proxy_is_verified")


def connect(call: Any, connection: Any, original: Any) -> None:
    """Recording: connects."""
    exchange = exchange_of(connection)
    put(connection, CONNECTING)
    name, key = _name(connection)
    try:
        with call.inside():
            original(connection)
    except BaseException as error:
        if exchange is not None:
            exchange.over = True
        _refused(call, connection, name, key, error)
        raise
    finally:
        if exchange is None:
            forget(connection)
        else:
            put(connection, exchange)


def serve(call: Any, connection: Any) -> None:
    """Replay: puts the stand-in for a socket in place, or raises what the recording raised here."""
    name, key = _name(connection)
    if expected.is_next(call, "http", name, key):
        call.ask(name, {"method": "CONNECT", "url": key["origin"]}, key)
        piece = call.take()
        flags = piece.value.get("connection", {}) if piece.status is None and isinstance(piece.value, dict) else {}
        vars(connection).update(flags)
        piece = call.take() if piece.status is None else piece
        forget(connection)
        if piece.status is Status.ERROR:
            kind = type(connection)
            raise revive(piece.value, call, {f"{kind.__module__}.{kind.__qualname__}": connection})
        streams.raise_end(call, piece)
    connection.sock = FakeSocket(connection)
    if hasattr(connection, "_has_connected_to_proxy"):
        _connected(connection)


def _name(connection: Any) -> tuple[str, dict[str, Value]]:
    scheme, host, port = origin(connection)
    where = absolute(scheme, host, port, "")
    key: dict[str, Value] = {"connect": absolute(scheme, connection.host, connection.port, ""), "origin": where}
    return f"CONNECT {where.partition('://')[2]}", key


def _refused(call: Any, connection: Any, name: str, key: dict[str, Value], error: BaseException) -> None:
    try:
        call.ask(name, {"method": "CONNECT", "url": key["origin"]}, key)
        flags: dict[str, Value] = {flag: getattr(connection, flag) for flag in _FLAGS if hasattr(connection, flag)}
        call.part({"connection": flags})
    except Exception as fault:
        session = current.session
        if session is not None:
            session.fault("http.client connect", fault)
    streams.fail(call, error)


def _connected(connection: Any) -> None:
    """What urllib3's own `connect` would have set. A TLS peer counts as verified where it would have to be."""
    proxied = bool(connection.proxy)
    connection._has_connected_to_proxy = proxied
    secure = hasattr(connection, "cert_reqs")
    verified = secure and (_required(connection.cert_reqs) or bool(connection.assert_fingerprint))
    tunnel = getattr(connection, "_tunnel_host", None)
    connection.is_verified = verified and not (proxied and tunnel is None)
    if proxied:
        scheme = getattr(connection, "_tunnel_scheme", None) if tunnel else connection.proxy.scheme
        config = connection.proxy_config
        context = getattr(config, "ssl_context", None)
        required = _required(context.verify_mode if context is not None else getattr(connection, "cert_reqs", None))
        connection.proxy_is_verified = scheme == "https" and required


def _required(cert_reqs: Any) -> bool:
    resolve = sys.modules["urllib3.util.ssl_"].resolve_cert_reqs
    required: bool = resolve(cert_reqs).name == "CERT_REQUIRED"
    return required
