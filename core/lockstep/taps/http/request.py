"""What a client asked for: the request as stored, and what of it must match in a replay.

The match key holds everything that has a meaning to the server, byte for byte: method, URL, body, and
all headers but those in the tables below. Bodies are compared raw and not as JSON, so that `1` and
`1.0`, or a doubled key, stay apart; canonical forms are for reports only.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence

import msgspec

from lockstep.log.model import Value
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
_DEFAULT_PORTS = {"http": 80, "https": 443}
_MOST_DECODED = 256 << 20
_MOST_NAMES = 1000
_MOST_URLS = 256
_taken_apart: dict[str, tuple[str, str, str | None, str]] = {}
_judged: dict[str, str | None] = {}


class Asked(msgspec.Struct, frozen=True):
    """The four things that `Call.ask` wants to know."""

    name: str
    kind: str
    request: Value
    key: Value


def asked(method: str, url: str, headers: Headers, body: bytes, partial: str | None = None) -> Asked:
    """Describes a request. `url` is absolute; `partial` says why the body was not
    sent to its end, None if it was."""
    origin, path, query, shown = _parts(url)
    pairs: list[Value] = [[name, value] for name, value in headers]
    request: dict[str, Value] = {"method": method, "url": url, "body": body, "headers": pairs}
    body, kept = _comparable(body, headers)
    key: dict[str, Value] = {
        "method": method,
        "origin": origin,
        "path": path,
        "query": query,
        "headers": kept,
        "body": body,
    }
    if partial is not None:
        request["partial"] = key["partial"] = partial
    return Asked(f"{method} {shown}", classify(method, url, headers, body), request, key)


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


def _comparable(body: bytes, headers: Headers) -> tuple[bytes, list[Value]]:
    kept: list[tuple[str, str]] = []
    for name, value in headers:
        lower = _compared(name)
        if lower is None:
            continue
        if lower == "content-type":
            found = _BOUNDARY.search(value)
            if found is not None and value.lower().startswith("multipart/"):
                boundary = (found[1] or found[2] or "").encode("latin-1")
                if boundary:
                    body = body.replace(boundary, _SAME_BOUNDARY)
                value = value[: found.start()] + value[found.end() :]
        elif lower == "content-encoding":
            # Compressors write the time and their version into what they make.
            plain = _decoded(body, value.strip().lower())
            if plain is not None:
                body = plain
        kept.append((lower, value))
    kept.sort(key=lambda pair: pair[0])  # stable: repeated headers keep their order
    return body, [[name, value] for name, value in kept]


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


def _decoded(body: bytes, encoding: str) -> bytes | None:
    if encoding not in ("gzip", "x-gzip", "deflate"):
        return None
    try:
        inflate = zlib.decompressobj(zlib.MAX_WBITS | 32)
        plain = inflate.decompress(body, _MOST_DECODED)
    except zlib.error:
        return None
    return plain if inflate.eof and not inflate.unused_data else None


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
