"""Puts a content-encoding back on a body that comes in pieces: the browser takes it off what a server sends."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Protocol

import zstandard


class Coder(Protocol):
    """Of one body."""

    def piece(self, data: bytes) -> bytes:
        """The next piece, so that its reader has all of it at once."""
        ...

    def last(self) -> bytes:
        """What ends the body."""
        ...


def coder(encoding: str) -> Coder | None:
    """For a content-encoding; None where there is none that makes it."""
    make = _CODERS.get(encoding.strip().lower())
    return make() if make is not None else None


class _Deflate:
    def __init__(self, wbits: int) -> None:
        self._coder = zlib.compressobj(wbits=wbits)

    def piece(self, data: bytes) -> bytes:
        return self._coder.compress(data) + self._coder.flush(zlib.Z_SYNC_FLUSH)

    def last(self) -> bytes:
        return self._coder.flush()


class _Zstandard:
    def __init__(self) -> None:
        self._coder = zstandard.ZstdCompressor().compressobj()

    def piece(self, data: bytes) -> bytes:
        return self._coder.compress(data) + self._coder.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)

    def last(self) -> bytes:
        return self._coder.flush()


class _Brotli:
    """As it is, in blocks that are not compressed (RFC 7932, section 9.2)."""

    def __init__(self) -> None:
        self._begun = False

    def piece(self, data: bytes) -> bytes:
        return b"".join(self._block(data[at : at + _BLOCK]) for at in range(0, len(data), _BLOCK))

    def last(self) -> bytes:
        return (3 << self._window()).to_bytes(1, "little")

    def _block(self, data: bytes) -> bytes:
        head = (len(data) - 1) << 3 | 1 << 19
        return (head << self._window()).to_bytes(3, "little") + data

    def _window(self) -> int:
        """The bits that stand before the first block."""
        begun, self._begun = self._begun, True
        return 0 if begun else 1


_BLOCK = 1 << 16
_CODERS: dict[str, Callable[[], Coder]] = {
    "gzip": lambda: _Deflate(31), "x-gzip": lambda: _Deflate(31), "deflate": lambda: _Deflate(15), "zstd": _Zstandard,
    "br": _Brotli,
}  # fmt: skip
