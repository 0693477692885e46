"""Packed bytes back to values, and to the content codes that the chain was made of.

Both read blobs through a `Source` and trust nothing: a reference must point to a smaller blob than the
one that holds it, expansion has a budget of nodes, and what does not decode is LS202.
"""

from __future__ import annotations

from typing import Any, Protocol

import msgspec

from lockstep.errors import Code, StoreError
from lockstep.log import canonical, jsontext, merkle
from lockstep.log.canonical import encode_ordered
from lockstep.log.model import Value
from lockstep.log.pack import BIG_BYTES, BIG_TEXT, CAT, JSON, REF

# References followed for one value. A value of 4 GB that was stored honestly needs fewer.
BUDGET = 2_000_000

_decode_numbers = msgspec.msgpack.Decoder(list[int]).decode


class Source(Protocol):
    """Where the blobs and big leaves of one stream come from. Both raise StoreError LS202 when absent."""

    def blob(self, number: int) -> bytes: ...

    def big(self, number: int) -> bytes: ...


def damaged(what: str) -> StoreError:
    return StoreError(Code.DAMAGED, what)


class Expander:
    """Expands the values of one stream. Each value is fresh: the caller may change it."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._decode = msgspec.msgpack.Decoder(ext_hook=self._extension).decode
        self._below = 0
        self._budget = 0

    def expand(self, packed: bytes) -> Value:
        """The value that was packed. Raises StoreError LS202."""
        self._below = 1 << 62
        self._budget = BUDGET
        try:
            value: Value = self._decode(packed)
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            raise damaged(f"a stored value does not decode: {error}") from error
        return value

    def _extension(self, code: int, data: memoryview) -> Any:
        self._budget -= 1
        if self._budget < 0:
            raise damaged("a stored value expands without end")
        if code == REF:
            return self._blob(int.from_bytes(data, "big"))
        if code == CAT:
            joined: list[Any] = []
            for number in _decode_numbers(data):
                self._budget -= 1
                part = self._blob(number)
                if type(part) is not list:
                    raise damaged(f"blob {number} is not a piece of a list")
                joined += part
            return joined
        if code == JSON:
            return jsontext.text(data[0], self._decode(data[1:]))
        if code == BIG_TEXT:
            return self._source.big(int.from_bytes(data, "big")).decode()
        if code == BIG_BYTES:
            return self._source.big(int.from_bytes(data, "big"))
        if code == canonical.INTEGER:
            return int.from_bytes(data, "big", signed=True)
        if code == canonical.TEXT:
            return bytes(data).decode("utf-8", "surrogatepass")
        if code == canonical.PAIRS:
            flat = self._decode(data)
            return dict(zip(flat[::2], flat[1::2], strict=True))
        raise damaged(f"a stored value holds the unknown extension {code}")

    def _blob(self, number: int) -> Any:
        if number >= self._below:
            raise damaged(f"blob {number} is referred to by an older blob")
        before, self._below = self._below, number
        try:
            return self._decode(self._source.blob(number))
        finally:
            self._below = before


class _Special:
    """A node that stands for something stored elsewhere. Not encodable, which is how it is found."""

    __slots__ = ("code", "data")

    def __init__(self, code: int, data: bytes) -> None:
        self.code = code
        self.data = data


def _special(code: int, data: memoryview) -> Any:
    if code in (REF, CAT, JSON, BIG_TEXT, BIG_BYTES):
        return _Special(code, bytes(data))
    return msgspec.msgpack.Ext(code, bytes(data))


class Coder:
    """Recomputes content codes from what is stored, each blob once: for `verify`."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._decode = msgspec.msgpack.Decoder(ext_hook=_special).decode
        self._codes: dict[int, bytes] = {}
        self._bigs: dict[tuple[int, int], bytes] = {}
        self._items: dict[int, bytes] = {}

    def code(self, packed: bytes) -> bytes:
        """The content code of a packed value. Raises StoreError LS202."""
        try:
            return self._code(self._decode(packed), 1 << 62)
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            raise damaged(f"a stored value does not decode: {error}") from error

    def _code(self, value: Any, below: int) -> bytes:
        if type(value) is _Special:
            return self._stored(value, below)
        try:
            encoded = encode_ordered(value)
        except TypeError:
            encoded = None
        if encoded is not None and (len(encoded) < merkle.SMALL or type(value) not in (dict, list)):
            return merkle.leaf(encoded)
        if type(value) is dict:
            parts: list[bytes] = []
            for name, item in value.items():
                parts += (encode_ordered(name), self._code(item, below))
            return merkle.mapping(b"".join(parts))
        if type(value) is list:
            return merkle.sequence(b"".join([self._code(item, below) for item in value]))
        raise damaged("a stored value holds something unknown")

    def _stored(self, node: _Special, below: int) -> bytes:
        if node.code == REF:
            number = self._smaller(int.from_bytes(node.data, "big"), below)
            code = self._codes.get(number)
            if code is None:
                code = self._codes[number] = self._code(self._decode(self._source.blob(number)), number)
            return code
        if node.code == CAT:
            return merkle.sequence(self._joined(node.data, below))
        if node.code == JSON:
            return merkle.json(node.data[0], self._code(self._decode(node.data[1:]), below))
        number = int.from_bytes(node.data, "big")
        code = self._bigs.get((node.code, number))
        if code is None:
            data = self._source.big(number)
            head = (b"\xdb" if node.code == BIG_TEXT else b"\xc6") + len(data).to_bytes(4, "big")
            code = self._bigs[node.code, number] = merkle.long_leaf(head, data)
        return code

    def _joined(self, numbers: bytes, below: int) -> bytes:
        """The joined codes of the items of a rope."""
        return b"".join([self._piece(self._smaller(number, below)) for number in _decode_numbers(numbers)])

    def _piece(self, number: int) -> bytes:
        joined = self._items.get(number)
        if joined is None:
            piece = self._decode(self._source.blob(number))
            if type(piece) is _Special and piece.code == CAT:
                joined = self._joined(piece.data, number)
            elif type(piece) is list:
                joined = b"".join([self._code(item, number) for item in piece])
            else:
                raise damaged(f"blob {number} is not a piece of a list")
            self._items[number] = joined
        return joined

    @staticmethod
    def _smaller(number: int, below: int) -> int:
        if number >= below:
            raise damaged(f"blob {number} is referred to by an older blob")
        return number
