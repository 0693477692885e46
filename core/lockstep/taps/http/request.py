"""What a client asked for: the request as stored, and what of it must match in a replay.

The match key holds everything that has a meaning to the server, byte for byte: method, URL, body, and
all headers but those in the tables below. Bodies are compared raw and not as JSON, so that `1` and
`1.0`, or a doubled key, stay apart; canonical forms are for reports only.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Sequence

import msgspec

from lockstep.log.model import Value
from lockstep.session.call import Asked
from lockstep.taps.http.endpoints import classify

type Headers = Sequence[tuple[str, str]]

# Headers that change from run to run, by SDK retry, or with the version of a library, and say nothing of
# what is wanted.
_CLIENTS_OWN = (
    "user-agent",
    "host",
    "connection",
    "keep-alive",
    "te",
    "expect",
    "accept-encoding",
    "x-goog-api-client",
)
_FRAMING = ("content-length", "transfer-encoding", "date", "x-amz-date", "x-amz-content-sha256", "x-amz-security-token")
_REQUEST_IDS = ("idempotency-key", "x-idempotency-key", "x-request-id", "x-client-request-id", "x-correlation-id")
_TRACING = ("traceparent", "tracestate", "baggage", "b3", "sentry-trace", "x-cloud-trace-context", "x-amzn-trace-id")
_VOLATILE = frozenset((*_CLIENTS_OWN, *_FRAMING, *_REQUEST_IDS, *_TRACING))
_VOLATILE_FAMILIES = ("x-stainless-", "amz-sdk-", "proxy-", "x-b3-", "x-datadog-")
# Who asks, not what is asked: a rotated key still gets the recorded answer.
_CREDENTIALS = frozenset(["authorization", "x-api-key", "api-key", "x-goog-api-key", "cookie"])
_SECRET_FIELDS = frozenset(["api_key", "apikey", "api-key", "access_token", "client_secret"])
_SIGNATURES = ("x-amz-", "x-goog-")
_AZURE_SIGNATURE = frozenset(["sig", "se", "st"])

_BOUNDARY = re.compile(r'\s*;\s*boundary=(?:"([^"]*)"|([^;\s]*))', re.IGNORECASE)
_SAME_BOUNDARY = b"boundary"
_BOUNDARY_IS, _ENCODING_IS = "boundary", "encoding"
_DEFAULT_PORTS = {"http": 80, "https": 443}
_MOST_DECODED = 256 << 20
_MOST_NAMES = 1000
_MOST_URLS = 256
_MOST_DESCRIBED = 256
_described: dict[tuple[object, ...], Described] = {}
_taken_apart: dict[str, tuple[str, str, str | None, str]] = {}
_judged: dict[str, str | None] = {}


class Described(msgspec.Struct, frozen=True):
    """A request without its body. What a body is compared as may depend on `boundary` and `encodings`."""

    method: str
    url: str
    headers: Headers
    shown: str
    pairs: Value  # the headers, as stored
    origin: str
    path: str
    query: str | None
    kept: Value  # the headers, as compared
    undo: tuple[tuple[str, bytes], ...]


def describe(method: str, url: str, headers: Headers) -> Described:
    """Describes a request whose `url` is absolute."""
    origin, path, query, shown = _parts(url)
    pairs: list[Value] = [[name, value] for name, value in headers]
    kept, undo = _comparable(headers)
    return Described(method, url, headers, f"{method} {shown}", pairs, origin, path, query, kept, undo)


def known(raw: tuple[object, ...], make: Callable[[], Described]) -> Described:
    """The description of a request that consists of these parts: a program's requests mostly differ in their
    bodies only, and taking one apart costs what all the rest of recording it does."""
    found = _described.get(raw)
    if found is None:
        found = make()
        if len(_described) < _MOST_DESCRIBED and not found.undo and len(found.url) < 500:
            _described[raw] = found
    return found


def asked(method: str, url: str, headers: Headers, body: bytes, partial: str | None = None) -> Asked:
    """Describes a request with its body. `url` is absolute; `partial` says why the body was not sent to its
    end, None if it was."""
    return with_body(describe(method, url, headers), body, partial)


def with_body(about: Described, body: bytes, partial: str | None = None) -> Asked:
    """The whole request."""
    method, url, headers = about.method, about.url, about.headers
    request: dict[str, Value] = {"method": method, "url": url, "body": body, "headers": about.pairs}
    for what, how in about.undo:
        body = body.replace(how, _SAME_BOUNDARY) if what == _BOUNDARY_IS else _decoded(body, how)
    key: dict[str, Value] = {
        "method": method,
        "origin": about.origin,
        "path": about.path,
        "query": about.query,
        "headers": about.kept,
        "body": body,
    }
    if partial is not None:
        request["partial"] = key["partial"] = partial
    return Asked(about.shown, classify(method, url, headers, body), request, key)


def _parts(url: str) -> tuple[str, str, str | None, str]:
    """Origin, path and query as compared, and the name to show. URLs repeat, so each is taken apart once."""
    found = _taken_apart.get(url)
    if found is not None:
        return found
    scheme, _, rest = url.partition("://")
    authority, slash, target = rest.partition("/")
    if "?" in authority:  # no path at all
        authority, slash, target = authority.partition("?")
    path, mark, query = (slash + target).partition("?")
    host = authority.rpartition("@")[2].lower()
    found = f"{scheme}://{host}", path, _query(query) if mark else None, f"{host}{path or '/'}"
    if len(_taken_apart) < _MOST_URLS and len(url) < 500:
        _taken_apart[url] = found
    return found


def absolute(scheme: str, host: str, port: int | None, target: str) -> str:
    """The URL of a request; the port is left out where it is the scheme's own."""
    if ":" in host and not host.startswith("["):
        host = f"[{host}]"
    if port is not None and port != _DEFAULT_PORTS.get(scheme):
        host = f"{host}:{port}"
    return f"{scheme}://{host}{target}"


def offered(headers: Headers) -> str:
    """The content encodings that the client said it can decode."""
    return ",".join(value for name, value in headers if name.lower() == "accept-encoding")


def _comparable(headers: Headers) -> tuple[Value, tuple[tuple[str, bytes], ...]]:
    kept: list[tuple[str, str]] = []
    undo: list[tuple[str, bytes]] = []
    for name, value in headers:
        lower = _compared(name)
        if lower is None:
            continue
        if lower == "content-type":
            found = _BOUNDARY.search(value)
            if found is not None and value.lower().startswith("multipart/"):
                boundary = (found[1] or found[2] or "").encode("latin-1")
                if boundary:
                    undo.append((_BOUNDARY_IS, boundary))
                value = value[: found.start()] + value[found.end() :]
        elif lower == "content-encoding":
            # Compressors write the time and their version into what they make.
            undo.append((_ENCODING_IS, value.strip().lower().encode("latin-1")))
        kept.append((lower, value))
    kept.sort(key=lambda pair: pair[0])  # stable: repeated headers keep their order
    return [[name, value] for name, value in kept], tuple(undo)


def _compared(name: str) -> str | None:
    """A header's name in lower case; None for one that is not compared. Names repeat, so each is judged once."""
    found = _judged.get(name, "")
    if found == "":
        lower = name.lower()
        left_out = lower in _VOLATILE or lower in _CREDENTIALS or lower.startswith(_VOLATILE_FAMILIES)
        found = None if left_out else lower
        if len(_judged) < _MOST_NAMES:
            _judged[name] = found
    return found


def _decoded(body: bytes, encoding: bytes) -> bytes:
    """The body without its compression; as it is where that cannot be undone."""
    if encoding not in (b"gzip", b"x-gzip", b"deflate"):
        return body
    try:
        inflate = zlib.decompressobj(zlib.MAX_WBITS | 32)
        plain = inflate.decompress(body, _MOST_DECODED)
    except zlib.error:
        return body
    return plain if inflate.eof and not inflate.unused_data else body


def _query(query: str) -> str:
    fields = query.split("&")
    names = [field.partition("=")[0].lower() for field in fields]
    azure = "sig" in names and "sv" in names
    kept = []
    for field, name in zip(fields, names, strict=True):
        signature = name.startswith(_SIGNATURES) or (azure and name in _AZURE_SIGNATURE)
        secret = name in _SECRET_FIELDS or (name == "key" and field[4:8] == "AIza")
        kept.append(f"{field.partition('=')[0]}=" if signature or secret else field)
    return "&".join(kept)
