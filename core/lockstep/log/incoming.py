"""An HTTP answer piece by piece, down to the text of its body: frames and content-encoding taken off.

Beside what the client does with it: to look into what goes by. What is encoded in a way that nobody here can
decode stays as it is.
"""

from __future__ import annotations

import re
import sys
import zlib
from collections.abc import Callable
from typing import Any

_HEAD_END = re.compile(rb"\r?\n\r?\n")
_INTERIM = re.compile(rb"HTTP/1\.[01] 1[0-9][0-9][^0-9]")
_ENCODING = re.compile(rb"(?im)^content-encoding[ \t]*:[ \t]*([^\r\n]+)")
_CHUNKED = re.compile(rb"(?im)^transfer-encoding[ \t]*:[^\r\n]*\bchunked")
_MOST = 64 << 20  # bytes of one piece's text

type Decoder = Callable[[bytes], bytes]


def decoder(encoding: str) -> Decoder | None:
    """What takes a content-encoding off, piece by piece; None for none and for an unknown one."""
    name = encoding.strip().lower()
    if name in ("gzip", "x-gzip", "deflate"):
        return _Zlib()
    if name == "zstd":
        import zstandard

        return zstandard.ZstdDecompressor().decompressobj().decompress
    if name == "br":
        # The client's own, which it has imported to say that it can.
        module: Any = sys.modules.get("brotli") or sys.modules.get("brotlicffi")
        made = module.Decompressor() if module is not None else None
        found: Decoder | None = getattr(made, "process", None) or getattr(made, "decompress", None)
        return found
    return None


class _Zlib:
    """gzip, zlib or bare deflate, as servers send any of these under either name."""

    def __init__(self) -> None:
        self._inflate: Any = None

    def __call__(self, data: bytes) -> bytes:
        if self._inflate is None:
            self._inflate = zlib.decompressobj(zlib.MAX_WBITS | 32)
            try:
                return self._inflate.decompress(data, _MOST)  # type: ignore[no-any-return]
            except zlib.error:
                self._inflate = zlib.decompressobj(-zlib.MAX_WBITS)
        return self._inflate.decompress(data, _MOST)  # type: ignore[no-any-return]


class Incoming:
    """An answer as it comes over the wire, from its status line on.

    head      the bytes of the head, once it is whole; `after`: those behind it in the piece that completed it
    encoding  of its body; "" for none
    """

    def __init__(self) -> None:
        self.head = b""
        self.encoding = ""
        self.after = 0
        self._waiting: bytes | None = b""  # of the head
        self._chunked = False
        self._line = b""
        self._left = 0
        self._over = False

    def feed(self, data: bytes) -> bytes:
        """The bytes of the body in this piece, without frames."""
        if self._waiting is not None:
            self._waiting += data
            start = 0
            while (end := _HEAD_END.search(self._waiting, start)) is not None and _INTERIM.match(self._waiting, start):
                start = end.end()
            if end is None:
                return b""
            self.head, data = self._waiting[: end.end()], self._waiting[end.end() :]
            self._waiting = None
            self.after = len(data)
            found = _ENCODING.search(self.head, start)
            self.encoding = found[1].decode("latin-1").strip() if found is not None else ""
            self._chunked = _CHUNKED.search(self.head, start) is not None
        return self._unchunked(data) if self._chunked else data

    def _unchunked(self, data: bytes) -> bytes:
        content = []
        at = 0
        while at < len(data) and not self._over:
            if self._left:
                piece = data[at : at + self._left]
                content.append(piece[: max(0, self._left - 2)])
                self._left -= len(piece)
                at += len(piece)
                continue
            end = data.find(b"\n", at)
            if end < 0:
                self._line += data[at:]
                break
            line = (self._line + data[at:end]).partition(b";")[0].strip()
            self._line, at = b"", end + 1
            try:
                size = int(line, 16)
            except ValueError:
                size = 0
            self._over = not size
            self._left = size + 2 if size else 0
        return b"".join(content)
