"""The bytes of a segment's two payload columns. Small rows are stored as they are, others compressed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta

from lockstep.errors import Code, StoreError
from lockstep.log import columns
from lockstep.log.model import Event

if TYPE_CHECKING:
    import zstandard

_ZSTD = b"\x28\xb5\x2f\xfd"  # a frame's magic; no msgpack array begins so
_LEVEL = 3  # 9 saves 6 % for a quarter more CPU
_WORTH = 200  # below, compression saves less than it costs
_WORTH_PASSING = 1024  # the same, of a row that another one will replace
_MOST = 128 << 20  # a row holds some 128 kB, and one with an enormous event a little more than that
MOST_LEAF = 1 << 30
TAPE_LEAF = 256 << 20  # of somebody else's file: a gigabyte of nothing takes 33 kB there
_MOST_EVENTS = 1 << 16
_MOST_BLOBS = 1 << 20

type Squeeze = Callable[[bytes], bytes]
type Body = tuple[list[bytes], list[bytes]]  # packed bodies (b"" for None), blobs

_encode = msgspec.msgpack.Encoder().encode
_decode_body = msgspec.msgpack.Decoder(
    tuple[Annotated[list[bytes], Meta(max_length=_MOST_EVENTS)], Annotated[list[bytes], Meta(max_length=_MOST_BLOBS)]]
).decode


class Squeezer:
    """Compresses for one thread. The library is loaded at first use: a run that never starts need not pay."""

    def __init__(self) -> None:
        self._compressor: zstandard.ZstdCompressor | None = None
        self._quick: zstandard.ZstdCompressor | None = None

    def __call__(self, data: bytes) -> bytes:
        if len(data) < _WORTH:
            return data
        if self._compressor is None:
            import zstandard

            self._compressor = zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True)
        return self._compressor.compress(data)

    def passing(self, data: bytes) -> bytes:
        """For what a later row will replace: two thirds of the time."""
        if len(data) < _WORTH_PASSING:
            return data
        if self._quick is None:
            import zstandard

            self._quick = zstandard.ZstdCompressor(level=1, write_checksum=True)
        return self._quick.compress(data)

    def leaf(self, data: bytes) -> bytes:
        """A big leaf: always with a mark, since its bytes are anything."""
        squeezed = self(data)
        return b"z" + squeezed if len(squeezed) < len(data) else b"=" + data


def expand(data: bytes) -> bytes:
    """What was compressed, or is as it was. Raises StoreError LS202."""
    if data[:4] != _ZSTD:
        return data
    import zstandard

    try:
        # The library ignores max_output_size when a frame declares its size, so look at that first.
        if not 0 <= zstandard.frame_content_size(data) <= _MOST:
            raise StoreError(Code.DAMAGED, "a stored frame declares no size or an impossible one")
        return zstandard.ZstdDecompressor().decompress(data, allow_extra_data=False)
    except zstandard.ZstdError as error:
        raise StoreError(Code.DAMAGED, f"a stored frame does not decompress: {error}") from error


def expand_leaf(data: bytes, most: int = MOST_LEAF) -> bytes:
    """A big leaf's bytes, `most` at most. Raises StoreError LS202."""
    if data[:1] == b"=":
        return data[1:]
    if data[:1] == b"z" and data[1:5] == _ZSTD:
        import zstandard

        try:
            if not 0 <= zstandard.frame_content_size(data[1:]) < most:
                raise StoreError(Code.DAMAGED, "a stored leaf declares no size or an impossible one")
            return zstandard.ZstdDecompressor().decompress(data[1:], allow_extra_data=False)
        except zstandard.ZstdError as error:
            raise StoreError(Code.DAMAGED, f"a stored leaf does not decompress: {error}") from error
    raise StoreError(Code.DAMAGED, "a stored leaf has no known form")


def make(events: Sequence[Event], bodies: list[bytes], blobs: list[bytes], squeeze: Squeeze) -> tuple[bytes, bytes]:
    """The columns `cols` and `body` of a row."""
    return squeeze(columns.encode(events)), squeeze(_encode((bodies, blobs)))


def body(data: bytes) -> Body:
    """Bodies and blobs of a row. Raises StoreError LS202."""
    try:
        return _decode_body(expand(data))
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise StoreError(Code.DAMAGED, f"a stored row does not decode: {error}") from error


def events(data: bytes) -> list[Event]:
    """Events of a row, without bodies. Raises StoreError LS202."""
    return columns.decode(expand(data))
