"""Reading a stored answer back, whatever client it was recorded from: for `show`, usage and edits.

Not used while a program runs. A pool exchange (httpx) has a head part and content; the raw seams
(http.client, aiohttp) have what came over the wire.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from lockstep.log import frames
from lockstep.log.model import Value
from lockstep.log.placeholders import joined
from lockstep.session import coded
from lockstep.taps.http.wire import Dechunker, end_of_head, headers_of, status_of


class Answer(msgspec.Struct, frozen=True):
    """An answer without its transfer framing. `body` still has its content-encoding; `status` is None
    where no head came."""

    status: int | None
    headers: tuple[tuple[str, str], ...]
    body: bytes

    def header(self, name: str) -> str:
        return next((value for key, value in self.headers if key.lower() == name), "")


def answer(parts: Iterable[Value]) -> Answer:
    """Puts an exchange's parts together. Of a secret in it the placeholder counts."""
    parts = list(parts)
    if any(map(coded.is_coded, parts)):
        parts = coded.as_text(parts, lambda value: value)
    elif any(frames.is_framed(part) for part in parts):
        parts = frames.refit(parts, lambda piece: piece.text())
    status: int | None = None
    headers: list[tuple[str, str]] = []
    body: list[bytes] = []
    raw: list[bytes] | None = None
    for part in parts:
        if isinstance(part, bytes):
            (body if raw is None else raw).append(part)
        elif isinstance(part, dict):
            segments = part.get("raw")
            if isinstance(segments, list):
                raw = [segment for segment in segments if isinstance(segment, bytes)]
            code, pairs = part.get("status"), part.get("headers")
            if isinstance(code, int):
                status = code
            if isinstance(pairs, list):
                headers = [(str(pair[0]), str(pair[1])) for pair in pairs if isinstance(pair, list)]
    if raw is None:
        return Answer(status, tuple(headers), joined(b"".join(body)))
    data = b"".join(raw)
    start = end_of_head(data)
    if start < 0:
        return Answer(status, tuple(headers), b"")
    if not headers:
        headers = headers_of(data[:start])
    if status is None:
        status = status_of(data[:start])
    content = data[start:]
    if any(name.lower() == "transfer-encoding" and "chunked" in value.lower() for name, value in headers):
        content = b"".join(Dechunker().feed(content))
    return Answer(status, tuple(headers), joined(content))
