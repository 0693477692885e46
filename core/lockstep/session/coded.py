"""Answers with a content-encoding: a secret in one is as readable as in plain text to whoever decodes it.

Recording looks into each piece. From the first piece on in whose text a secret begins, pieces are stored as
that text, with placeholders, and as a reference to the bytes that came, which the vault keeps:

    {"lockstep.coded": b"lockstep-secret.coded-answer-1.", "text": …}

With the vault a replay hands out these bytes. Without it, it hands out the text, and an answer that says that
it is not encoded.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterator
from typing import Any

from lockstep.log.frames import unemptied
from lockstep.log.incoming import Decoder, Incoming, decoder
from lockstep.log.model import Value
from lockstep.session.pieces import Pieces
from lockstep.session.secrets import KEPT, Secrets

CODED = "lockstep.coded"
_ENCODING = re.compile(rb"(?im)^content-encoding[ \t]*:[^\r\n]*\r?\n")
_FRAMING = re.compile(rb"(?im)^(?:transfer-encoding|content-length)[ \t]*:[^\r\n]*\r?\n")
_OWN = frozenset(("content-encoding", "content-length", "transfer-encoding"))


class Coded:
    """Recording: the body of one encoded answer."""

    def __init__(self, secrets: Secrets, encoding: str) -> None:
        self._secrets = secrets
        self._text = Pieces(secrets)
        self._decode: Decoder | None = decoder(encoding)
        self._found = False

    def hide(self, data: bytes, body: bytes) -> Value:
        """A piece as it is stored. `body`: what of it is of the body, without frames."""
        if self._decode is None:
            return data
        try:
            text = self._decode(body)
        except Exception:  # of each decoder its own; the client meets the same
            self._decode = None
            return self._kept(data, b"") if self._found else data
        hidden = self._text.hide(text)
        if hidden == text and not self._found:
            return data
        self._found = True
        return self._kept(data, hidden)

    def _kept(self, data: bytes, hidden: bytes) -> Value:
        return {CODED: self._secrets.keep(data, KEPT), "text": hidden}


def answer(parts: list[Value], secrets: Secrets) -> list[Value]:
    """Replay: all parts of such an answer as the program gets them."""
    if secrets.other([part for part in parts if is_coded(part)]):
        return as_text(parts, secrets.reveal)
    return [as_came(part, secrets.reveal) for part in parts]


def is_coded(value: Value) -> bool:
    """Whether a part is, or holds, a piece that is in the vault."""
    if not isinstance(value, dict):
        return False
    raw = value.get("raw")
    return CODED in value or (isinstance(raw, list) and any(isinstance(each, dict) and CODED in each for each in raw))


def as_came(value: Value, reveal: Callable[[Value], Value]) -> Value:
    """A part as it came over the wire, from the vault."""
    if isinstance(value, dict) and CODED in value:
        return reveal(value[CODED])
    if isinstance(value, dict) and isinstance(value.get("raw"), list):
        raw: Any = value["raw"]
        segments: Any = [as_came(each, reveal) for each in raw]
        if len(value) == 1:
            return b"".join(segments)  # it was one piece
        rest: Any = reveal({name: item for name, item in value.items() if name != "raw"})
        return {**rest, "raw": segments}
    return reveal(value)


def as_text(parts: list[Value], reveal: Callable[[Value], Value]) -> list[Value]:
    """All parts of such an answer without its encoding: where the bytes are not to be had."""
    framed = any(isinstance(part, dict) and isinstance(part.get("raw"), list) for part in parts)
    return _framed(parts, reveal) if framed else list(_plain(parts, reveal))


def _plain(parts: list[Value], reveal: Callable[[Value], Value]) -> Iterator[Value]:
    decode: Decoder | None = None
    for part in parts:
        if isinstance(part, bytes):
            yield _decoded(decode, part)
        elif isinstance(part, dict) and CODED in part:
            yield reveal(part["text"])
        elif isinstance(part, dict) and isinstance(headers := part.get("headers"), list):
            pairs: Any = headers
            encoding = next((str(pair[1]) for pair in pairs if str(pair[0]).lower() == "content-encoding"), "")
            decode = decoder(encoding)
            yield reveal({**part, "headers": [pair for pair in pairs if str(pair[0]).lower() not in _OWN]})
        else:
            yield reveal(part)


def _framed(parts: list[Value], reveal: Callable[[Value], Value]) -> list[Value]:
    incoming = Incoming()
    decode: Decoder | None = None
    made: list[Value] = []
    texts: list[bytes] = []

    def text(segment: Value) -> bytes:
        nonlocal decode
        if isinstance(segment, dict):
            told: Any = reveal(segment.get("text"))
            return bytes(told)
        body = incoming.feed(segment) if isinstance(segment, bytes) else b""
        if decode is None and incoming.encoding:
            decode = decoder(incoming.encoding)
        return _decoded(decode, body)

    headed = 0
    for number, part in enumerate(parts):
        had = bool(incoming.head)
        if isinstance(part, bytes) or (isinstance(part, dict) and CODED in part):
            texts.append(text(part))
            made.append(b"")
        elif isinstance(part, dict) and isinstance(raw := part.get("raw"), list):
            segments: Any = raw
            texts.append(b"".join(map(text, segments)))
            rest: Any = reveal({name: item for name, item in part.items() if name != "raw"})
            made.append({**rest, "raw": []})
        else:
            texts.append(b"")
            made.append(reveal(part))
        headed = headed if had or not incoming.head else number
    size = sum(map(len, texts))
    told: Any = reveal(incoming.head)
    head = _FRAMING.sub(b"", _ENCODING.sub(b"", bytes(told))).rstrip(b"\r\n")
    texts[headed] = head + f"\r\ncontent-length: {size}\r\n\r\n".encode() + texts[headed]
    places = [n for n, part in enumerate(made) if n >= headed and (isinstance(part, bytes) or "raw" in _map(part))]
    for place, filled in zip(places, unemptied([texts[place] for place in places]), strict=True):
        texts[place] = filled
    return [_with_text(part, text, size) for part, text in zip(made, texts, strict=True)]


def _map(part: Value) -> dict[str, Value]:
    return part if isinstance(part, dict) else {}


def _with_text(part: Value, text: bytes, size: int) -> Value:
    if isinstance(part, bytes):
        return text
    if isinstance(part, dict) and "raw" in part:
        return text if len(part) == 1 else {**_without_encoding(part, size), "raw": [text] if text else []}
    if isinstance(part, dict) and "encoding" in part and "offered" in part:
        return {**part, "encoding": ""}
    return part


def _without_encoding(part: dict[str, Value], size: int) -> dict[str, Value]:
    headers: Any = part.get("headers")
    found = dict(part)
    if isinstance(headers, list):
        found["headers"] = [
            *(pair for pair in headers if str(pair[0]).lower() not in _OWN),
            ["content-length", str(size)],
        ]
    if "length" in part:
        found["length"] = size
    return found


def _decoded(decode: Decoder | None, body: bytes) -> bytes:
    if decode is None:
        return body
    try:
        return decode(body)
    except (zlib.error, ValueError):
        return b""
