"""Bodies of HTTP messages for showing: decoded, and cut into the frames of a stream.

For people to read, so nothing here raises: what cannot be decoded is said in words.
"""

from __future__ import annotations

import base64
import binascii
import importlib
import re
import struct
import zlib
from collections.abc import Iterator
from typing import Any

import msgspec

_MOST = 64 << 20  # bytes a body may decode to; a bomb is cut there
_decode = msgspec.json.Decoder().decode
_BLANK = re.compile(rb"\r\n\r\n|\n\n|\r\r")
_LINE = re.compile(rb"\r\n|\n|\r")


def header(headers: Any, name: str) -> str:
    """The first header of that name, "" if there is none. `headers`: [[name, value], …], str or bytes."""
    if isinstance(headers, list | tuple):
        for pair in headers:
            if isinstance(pair, list | tuple) and len(pair) == 2 and text(pair[0]).lower() == name:
                return text(pair[1])
    return ""


def text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value if isinstance(value, str) else ""


def json(body: bytes | str | None) -> Any:
    """The value of a JSON text; None where it is none."""
    if not body:
        return None
    try:
        return _decode(body)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None


def plain(body: bytes, encoding: str) -> tuple[bytes, str]:
    """A body without its content-encoding, and why it is not all there ("" where it is)."""
    for coding in reversed([part.strip().lower() for part in encoding.split(",") if part.strip()]):
        decoded, problem = _plain(body, coding)
        if problem:
            return decoded, problem
        body = decoded
    return body, ""


def _plain(body: bytes, coding: str) -> tuple[bytes, str]:
    if coding == "identity" or not body:
        return body, ""
    if coding in ("gzip", "x-gzip", "deflate"):
        return _inflated(body, coding)
    if coding == "zstd":
        return _with_package(body, coding, ("compression.zstd", "zstandard"))
    if coding == "br":
        return _with_package(body, coding, ("brotli", "brotlicffi"))
    return b"", f"the body is encoded as {coding}, which is not known"


def _inflated(body: bytes, coding: str) -> tuple[bytes, str]:
    # "deflate" is sent with zlib's frame or, wrongly but often, without
    for bits in (zlib.MAX_WBITS | 32, -zlib.MAX_WBITS):
        stream = zlib.decompressobj(bits)
        decoded = b""
        try:
            # in small steps, so that what came before a broken place is kept
            for at in range(0, len(body), 4096):
                decoded += stream.decompress(body[at : at + 4096], _MOST - len(decoded))
                if len(decoded) >= _MOST:
                    return decoded, f"the body decodes to more than {_MOST >> 20} MiB"
        except zlib.error:
            if decoded:
                return decoded, f"the body is not whole {coding}"
            continue
        return decoded, "" if stream.eof else f"the body is not whole {coding}"
    return b"", f"the body is not {coding}"


def _with_package(body: bytes, coding: str, packages: tuple[str, ...]) -> tuple[bytes, str]:
    for name in packages:
        try:
            package = importlib.import_module(name)
        except ImportError:
            continue
        try:
            return _streamed(package, name, body), ""
        except Exception as error:  # each package has its own kind
            return b"", f"the body is not {coding}: {error}"
    return b"", f"the body is encoded as {coding}: pip install {packages[-1]} to see it"


def _streamed(package: Any, name: str, body: bytes) -> bytes:
    # By stream: a frame of a streamed answer does not say its size.
    if name.startswith("brotli"):
        decoder = package.Decompressor()
        decode = decoder.process if hasattr(decoder, "process") else decoder.decompress
    elif name == "zstandard":
        decode = package.ZstdDecompressor().decompressobj().decompress
    else:
        decode = package.ZstdDecompressor().decompress
    return bytes(decode(body))


def events(body: bytes) -> Iterator[Any]:
    """The JSON data of server-sent events, in order; what is no JSON (`[DONE]`) is left out."""
    for block in _BLANK.split(body):
        data = [line[5:].lstrip(b" ") for line in _LINE.split(block) if line.startswith(b"data:")]
        if data:
            value = json(b"\n".join(data))
            if value is not None:
                yield value


def lines(body: bytes) -> Iterator[Any]:
    """The values of JSON lines."""
    for line in body.splitlines():
        value = json(line.strip())
        if value is not None:
            yield value


def frames(body: bytes) -> Iterator[tuple[str, Any]]:
    """Events of Amazon's binary event stream as (type, JSON payload); stops where it is cut off.

    A frame: total length, headers' length, their checksum, headers, payload, checksum; big-endian
    (application/vnd.amazon.eventstream).
    """
    at = 0
    while at + 16 <= len(body):
        total, head = struct.unpack_from(">II", body, at)
        if total < 16 or head > total - 16 or at + total > len(body):
            return
        kind = _event_type(body[at + 12 : at + 12 + head])
        yield kind, json(body[at + 12 + head : at + total - 4])
        at += total


def _event_type(head: bytes) -> str:
    at = 0
    while at < len(head):
        size = head[at]
        name = head[at + 1 : at + 1 + size]
        at += 1 + size
        if at + 3 > len(head) or head[at] != 7:  # 7: a string, the only kind that these services send
            return ""
        (length,) = struct.unpack_from(">H", head, at + 1)
        value = head[at + 3 : at + 3 + length]
        at += 3 + length
        if name in (b":event-type", b":exception-type"):
            return value.decode("utf-8", "replace")
    return ""


def from_base64(value: Any) -> bytes:
    try:
        return base64.b64decode(value) if isinstance(value, str) else b""
    except (binascii.Error, ValueError):
        return b""
