"""Paths of the provider that are no model: the odd answers that a client of any kind must survive."""

from __future__ import annotations

import gzip
import itertools
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from lockstep.testing.answers import Request, encode

type Headers = tuple[tuple[str, str], ...]
type Page = tuple[int, Headers, bytes | Iterable[bytes]]

_JSON: Headers = (("content-type", "application/json"),)
_EVENTS: Headers = (("content-type", "text/event-stream"),)


def page(request: Request) -> Page:
    """The answer of a path in the table below; of any other path a JSON with the request's number."""
    return _PAGES.get(request.path, _counter)(request)


def _counter(request: Request) -> Page:
    return 200, _JSON, encode({"n": request.number, "method": request.method, "path": request.path})


def _echo(request: Request) -> Page:
    headers = [[name.lower(), value] for name, value in request.headers]
    seen = {"n": request.number, "method": request.method, "target": request.target, "headers": headers}
    try:
        return 200, _JSON, encode(seen | {"body": request.body.decode()})
    except UnicodeDecodeError:
        return 200, _JSON, encode(seen | {"hex": request.body.hex()})


def _big(request: Request) -> Page:
    size = int(float(request.query.get("mb", "1")) * 1024)
    return 200, (("content-type", "application/octet-stream"),), (b"%07d\n" % request.number) * 128 * size


def _binary(request: Request) -> Page:
    return 200, (("content-type", "application/octet-stream"),), bytes(range(256)) * 64


def _latin1(request: Request) -> Page:
    return 200, (("content-type", "text/plain; charset=iso-8859-1"),), f"caf\xe9 {request.number}".encode("latin-1")


def _gzip(request: Request) -> Page:
    packed = gzip.compress(encode({"n": request.number}), mtime=0)
    return 200, (*_JSON, ("content-encoding", "gzip")), packed


def _gzip_events(request: Request) -> Page:
    packed = gzip.compress(b"".join(_ticks(request)), mtime=0)
    halves = (packed[: len(packed) // 2], packed[len(packed) // 2 :])
    return 200, (*_EVENTS, ("content-encoding", "gzip")), halves


def _events(request: Request) -> Page:
    return 200, _EVENTS, _ticks(request)


def _forever(request: Request) -> Page:
    return 200, _EVENTS, (b"data: tick %d\n\n" % n for n in itertools.count())


def _ticks(request: Request) -> list[bytes]:
    count = int(request.query.get("count", "10"))
    return [b"data: tick %d of %d\n\n" % (n, request.number) for n in range(count)]


def _cookies(request: Request) -> Page:
    number = str(request.number)
    return (
        200,
        (*_JSON, ("set-cookie", f"a={number}; Path=/"), ("set-cookie", "b=2; Path=/")),
        encode({"cookie": request.header("cookie")}),
    )


def _redirect(request: Request) -> Page:
    return 302, (("location", request.query.get("to", "/landed")),), b""


def _flaky(request: Request) -> Page:
    return (500 if request.number % 2 else 200), _JSON, encode({"n": request.number})


def _empty(request: Request) -> Page:
    return 204, (), b""


def _secret(request: Request) -> Page:
    return 200, _JSON, encode({"api_key": f"sk-{'lockstep' * 4}{request.number:04}", "n": request.number})


_PAGES: dict[str, Callable[[Request], Page]] = {
    "/echo": _echo,  # what arrived, as JSON
    "/big": _big,  # ?mb=
    "/binary": _binary,
    "/latin1": _latin1,
    "/gzip": _gzip,
    "/gzip-events": _gzip_events,
    "/events": _events,  # server-sent, ?count=; use gap= and cut= as on every path
    "/forever": _forever,
    "/cookies": _cookies,  # two Set-Cookie headers
    "/redirect": _redirect,  # ?to=
    "/flaky": _flaky,  # 500 to every odd request
    "/empty": _empty,
    "/secret": _secret,  # an answer with a token in it
}


def decoded(body: bytes) -> Any:
    """A body's JSON, None where it is none."""
    try:
        return msgspec.json.decode(body) if body else None
    except msgspec.DecodeError:
        return None
