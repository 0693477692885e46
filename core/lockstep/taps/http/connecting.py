"""Making the connection of an http.client client: not recorded where it succeeds, an exchange where it fails.

A replay connects to nothing. Since urllib3 connects TLS and proxies before it sends, a recorded failure
is recognised by its place: it is the next thing that the lane's record holds.

A held request is asked for before there is a connection, so what fails then is its own outcome: a part
{"connection": …} and the error, raised where the client sends.
"""

from __future__ import annotations

import errno
import sys
from typing import Any, NoReturn

from lockstep.log.model import Status, Value
from lockstep.session import current
from lockstep.session.call import failed
from lockstep.session.exceptions import revive
from lockstep.taps.http import expected, streams
from lockstep.taps.http.connections import CONNECTING, exchange_of, forget, origin, put
from lockstep.taps.http.request import absolute
from lockstep.taps.http.sockets import FakeSocket

# What urllib3 looks at to decide whose fault an error was, and whether to warn.
_FLAGS = ("_has_connected_to_proxy", "is_verified", "proxy_is_verified")
# urllib3 goes on to read the answer after these: a server may answer before it has read the body.
_READS_ON = frozenset((errno.EPIPE, errno.EPROTOTYPE, errno.ECONNRESET))
_PATIENCE = 1  # seconds, which botocore waits for `100 Continue`


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


def serve(call: Any, connection: Any, eager: bool = False) -> bool:
    """Replay: puts the stand-in for a socket in place, or raises what the recording raised here. Whether the call
    was needed for that: it is asked where the recording could not connect. `eager`: nothing is sent yet."""
    asked = False
    name, key = _name(connection)
    # Past the served part what is recorded next says nothing of this connection.
    if not call.session.recording and expected.is_next(call, "http", name, key):
        asked = True
        call.ask(name, {"method": "CONNECT", "url": key["origin"]}, key)
        if call.held:
            call.ready()
        if call.live:
            _try(call, connection)
            return asked
        fail(call, connection, call.take())
    flags = {flag: vars(connection)[flag] for flag in _FLAGS if flag in vars(connection)}
    connection.sock = FakeSocket(connection, flags, eager and hasattr(connection, "_response_options"))
    if hasattr(connection, "_has_connected_to_proxy"):
        _connected(connection)
    return asked


def _try(call: Any, connection: Any) -> None:
    """Connects where the recording could not."""
    put(connection, CONNECTING)
    try:
        with call.inside():
            connection.connect()
    except BaseException as error:
        _told(call, connection)
        failed(call, error)
        raise
    finally:
        forget(connection)
    _told(call, connection)
    call.end(Status.OK)


def release(connection: Any, fake: Any, pieces: list[bytes]) -> bytes:
    """Sends what a held request consists of. The first bytes of an answer that came instead of the interim one
    for which the client has waited: then its body is not sent."""
    fake.give_back()
    if connection.sock is None:
        try:
            connection.connect()
        except Exception as error:
            if fake.eager:
                _raise_early(connection, error)
            raise
    fake.apply(connection.sock)
    head, *body = pieces
    connection.sock.sendall(head)
    early = _interim(connection.sock) if fake.interim else b""
    if not early:
        for piece in body:
            connection.sock.sendall(piece)
    return early


def _interim(sock: Any) -> bytes:
    if not sys.modules["urllib3.util.wait"].wait_for_read(sock, _PATIENCE):
        return b""
    lines: list[bytes] = []
    with sock.makefile("rb", 0) as reader:
        while line := reader.readline():
            lines.append(line)
            if not line.strip():
                break
    continues = lines and lines[0].split(None, 2)[1:2] == [b"100"]
    return b"" if continues else b"".join(lines)


def _raise_early(connection: Any, error: Exception) -> NoReturn:
    """Raises an error of connecting as urllib3 does where it connects, which is before it sends: raised where it
    sends, some would be taken for errors of sending, after which it reads on."""
    pools, exceptions = sys.modules["urllib3.connectionpool"], sys.modules["urllib3.exceptions"]
    tunnel = getattr(connection, "_tunnel_host", None)
    if not tunnel and isinstance(error, (pools.BaseSSLError, pools.CertificateError)):
        raise exceptions.SSLError(error)
    if getattr(error, "errno", None) in _READS_ON:
        raise exceptions.ProtocolError("Connection aborted.", error) from None
    raise error


def reads_on(connection: Any, error: BaseException) -> bool:
    """Whether the client will look for an answer although sending has failed."""
    return hasattr(connection, "_response_options") and getattr(error, "errno", None) in _READS_ON


def raise_failed(call: Any, connection: Any, fake: Any) -> None:
    """Replay: raises what kept a held request from being sent, if anything did."""
    recorded = call.recorded
    if recorded is None or len(recorded.pieces) != 2 or recorded.pieces[1][1].what != Status.ERROR:
        return
    first = call.session.tape.body(recorded.pieces[0][0])
    if not (isinstance(first, dict) and "connection" in first):
        return
    try:
        fail(call, connection, call.take())
    except Exception as error:
        if fake is not None and fake.eager:
            _raise_early(connection, error)
        raise


def fail(call: Any, connection: Any, piece: Any) -> None:
    """Raises what connecting is recorded to have ended with. Returns where it succeeded."""
    flags = piece.value.get("connection", {}) if piece.status is None and isinstance(piece.value, dict) else {}
    vars(connection).update(flags)
    piece = call.take() if piece.status is None else piece
    if piece.status is Status.OK:
        return
    forget(connection)
    if piece.status is Status.ERROR:
        kind = type(connection)
        raise revive(piece.value, call, {f"{kind.__module__}.{kind.__qualname__}": connection})
    streams.raise_end(call, piece)


def _name(connection: Any) -> tuple[str, dict[str, Value]]:
    scheme, host, port = origin(connection)
    where = absolute(scheme, host, port, "")
    key: dict[str, Value] = {"connect": absolute(scheme, connection.host, connection.port, ""), "origin": where}
    return f"CONNECT {where.partition('://')[2]}", key


def _refused(call: Any, connection: Any, name: str, key: dict[str, Value], error: BaseException) -> None:
    try:
        if not call.held:
            call.ask(name, {"method": "CONNECT", "url": key["origin"]}, key)
        _told(call, connection)
    except Exception as fault:
        session = current.session
        if session is not None:
            session.fault("http.client connect", fault)
    failed(call, error)


def _told(call: Any, connection: Any) -> None:
    flags: dict[str, Value] = {flag: getattr(connection, flag) for flag in _FLAGS if hasattr(connection, flag)}
    call.part({"connection": flags})


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
