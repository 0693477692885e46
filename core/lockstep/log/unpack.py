"""Packed bytes back to values, and to the content codes that the chain was made of.

Both read blobs through a `Source` and trust nothing: a reference must point to a smaller blob than the
one that holds it, expansion has a budget of nodes, and what does not decode is LS202.
"""

from __future__ import annotations

import _thread
from collections.abc import Callable
from typing import Any, Protocol

import msgspec

from lockstep.errors import Code, StoreError
from lockstep.log import canonical, jsontext, merkle, untapped
from lockstep.log.canonical import encode_ordered
from lockstep.log.model import Value
from lockstep.log.pack import BIG_BYTES, BIG_TEXT, CAT, JSON, REF

# For one value: bytes of the pieces that its references lead to, each with some bytes more for following it, and
# bytes of long texts.
EXPANDED = 256 << 20
FOLLOWED = 128
LEAVES = 2 << 30

# For one piece of a value, also when it is written: its bytes, and containers in it.
LARGEST = 32 << 20
MOST_CONTAINERS = 2_000_000

# Nesting that is safe in a stack of 512 kB, with the decoder's callbacks between (1,000 levels of the decoder alone
# were; 5,000 crashed a thread with 1 MB). Each level needs a byte, so a short piece is not looked at.
SAFE = 500
SHALLOW = 100
ROOM = 64 << 20

# Codes of the items of one list: 7 million items.
JOINED = 256 << 20

# Bytes of msgpack that begin a map or a list.
_HEADS = bytes((*range(0x80, 0xA0), *range(0xDC, 0xE0)))

# And those that begin a map of less than 16 fields, whose names are there as they are.
_SHORT_MAPS = frozenset(bytes((head,)) for head in range(0x80, 0x90))

_decode_numbers = msgspec.msgpack.Decoder(list[int]).decode


class Source(Protocol):
    """Where the blobs and big leaves of one stream come from. Both raise StoreError LS202 when absent."""

    def blob(self, number: int) -> bytes: ...

    def big(self, number: int) -> bytes: ...


def damaged(what: str) -> StoreError:
    return StoreError(Code.DAMAGED, what)


class _Deep(Exception):
    """A value may nest too deep for this thread's stack."""


class _Decoder:
    """Decodes stored pieces of values. What might nest deep is refused by `_Deep`, unless there is `room` for it: C
    decoders crash the process on deep input in threads with small stacks, where no exception can be raised."""

    def __init__(self, extension: Callable[[int, memoryview], Any]) -> None:
        self._decode = msgspec.msgpack.Decoder(ext_hook=extension).decode
        self._depth = 0
        self.room = False

    def begin(self) -> None:
        """Before each value: an error leaves the depth as it was where that happened."""
        self._depth = 0

    def __call__(self, data: bytes | memoryview) -> Any:
        heads = len(data)
        if heads > SHALLOW:
            size, heads = heads, heads_in(data)
            if size > LARGEST or heads > MOST_CONTAINERS:
                raise damaged("a stored value is larger than any that is written")
        depth = self._depth + heads
        if depth > SAFE and not self.room:
            raise _Deep
        self._depth = depth
        value = self._decode(data)
        self._depth = depth - heads
        return value


def heads_in(data: bytes | memoryview) -> int:
    """How many containers a piece of msgpack may hold: counted are bytes that may begin one, wherever they stand."""
    return len(data) - len(bytes(data).translate(None, _HEADS))


def fits(packed: bytes) -> bool:
    """Whether a piece of a value may be stored: what a reader would refuse is not written."""
    return len(packed) <= LARGEST and (len(packed) <= MOST_CONTAINERS or heads_in(packed) <= MOST_CONTAINERS)


def _in_room(decoder: _Decoder, function: Callable[[], Any]) -> Any:
    """Calls a function in a thread with a stack that is larger than CPython's own limit on recursion in C needs."""
    done = untapped.allocate_lock()
    done.acquire()
    found: list[Any] = []

    def run() -> None:
        decoder.room = True
        try:
            found.append((True, function()))
        except Exception as error:
            found.append((False, error))
        finally:
            decoder.room = False
            done.release()

    before = _thread.stack_size()
    try:
        _thread.stack_size(ROOM)
        untapped.start_new_thread(run, ())
    except (RuntimeError, ValueError) as error:
        raise damaged(f"a stored value nests too deep to be read here: {error}") from error
    finally:
        _thread.stack_size(before)
    done.acquire()
    fine, result = found[0]
    if not fine:
        raise result
    return result


class Expander:
    """Expands the values of one stream. Each value is fresh: the caller may change it."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._decode = _Decoder(self._extension)
        self._shallow = _Decoder(_special)
        self._below = 0
        self._bytes = 0
        self._leaves = 0

    def expand(self, packed: bytes) -> Value:
        """The value that was packed. Raises StoreError LS202."""
        try:
            return self._expand(packed)
        except (_Deep, RecursionError):
            pass
        try:
            value: Value = _in_room(self._decode, lambda: self._expand(packed))
        except RecursionError as error:
            raise damaged("a stored value nests deeper than any that is written") from error
        return value

    def field(self, packed: bytes, name: str) -> Value:
        """One field of a map that was packed, None where it has no such field. What the other fields refer to is
        not looked up: a chat's request may be a megabyte. Raises StoreError LS202."""
        if packed[:1] in _SHORT_MAPS and encode_ordered(name) not in packed:
            return None
        self._shallow.begin()
        try:
            value = self._shallow(packed)
        except (StoreError, _Deep, RecursionError, ValueError):
            value = None
        if type(value) is dict and canonical.storable(found := value.get(name)):
            return found
        whole = self.expand(packed)
        return whole.get(name) if isinstance(whole, dict) else None

    def _expand(self, packed: bytes) -> Value:
        self._decode.begin()
        self._below = 1 << 62
        self._bytes, self._leaves = EXPANDED, LEAVES
        try:
            value: Value = self._decode(packed)
        except (StoreError, _Deep, RecursionError):
            raise
        except Exception as error:  # whatever a decoder or formatter makes of something forged
            raise damaged(f"a stored value does not decode: {error or type(error).__name__}") from error
        return value

    def _extension(self, code: int, data: memoryview) -> Any:
        if code == REF:
            return self._blob(int.from_bytes(data, "big"))
        if code == CAT:
            joined: list[Any] = []
            for number in _decode_numbers(data):
                part = self._blob(number)
                if type(part) is not list:
                    raise damaged(f"blob {number} is not a piece of a list")
                joined += part
            return joined
        if code == JSON:
            return jsontext.text(data[0], self._decode(data[1:]))
        if code == BIG_TEXT:
            return self._big(data).decode()
        if code == BIG_BYTES:
            return self._big(data)
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
        blob = self._source.blob(number)
        self._bytes -= len(blob) + FOLLOWED
        if self._bytes < 0:
            raise damaged("a stored value expands to more than any that is written")
        before, self._below = self._below, number
        try:
            return self._decode(blob)
        finally:
            self._below = before

    def _big(self, number: memoryview) -> bytes:
        data = self._source.big(int.from_bytes(number, "big"))
        self._leaves -= len(data)
        if self._leaves < 0:
            raise damaged("a stored value expands to more than any that is written")
        return data


class _Special:
    """A node that stands for something stored elsewhere. Not encodable, which is how it is found."""

    __slots__ = ("code", "data")

    def __init__(self, code: int, data: bytes) -> None:
        self.code = code
        self.data = data


def _special(code: int, data: memoryview) -> Any:
    if code in (REF, CAT, JSON, BIG_TEXT, BIG_BYTES):
        return _Special(code, bytes(data))
    if code not in (canonical.INTEGER, canonical.TEXT, canonical.PAIRS):
        raise damaged(f"a stored value holds the unknown extension {code}")
    if code == canonical.PAIRS:
        flat = _decode_pairs(data)
        if len(flat) % 2 or not _inert(flat) or not all(type(name) is str or _is_text(name) for name in flat[::2]):
            raise damaged("a stored map has keys that are no text")
    return msgspec.msgpack.Ext(code, bytes(data))


_decode_pairs = msgspec.msgpack.Decoder(list, ext_hook=_special).decode


def _is_text(name: Any) -> bool:
    return type(name) is msgspec.msgpack.Ext and name.code == canonical.TEXT


_plain = msgspec.msgpack.Decoder().decode
_SCALARS = canonical.LEAVES | {_Special, msgspec.msgpack.Ext}  # the latter made by `_special` for known codes only


def _inert(value: Any) -> bool:
    """Whether a decoded piece is plain data: maps have keys of text, and there is nothing of other types."""
    kind = type(value)
    if kind is dict:
        return all(type(name) is str for name in value) and all(
            type(item) in _SCALARS or _inert(item) for item in value.values()
        )
    if kind is list:
        return all(type(item) in _SCALARS or _inert(item) for item in value)
    return kind in _SCALARS


class Coder:
    """Recomputes content codes from what is stored, each blob once: for `verify`."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._decode = _Decoder(_special)
        self._codes: dict[int, bytes] = {}
        self._bigs: dict[tuple[int, int], bytes] = {}
        self._items: dict[int, bytes] = {}
        self._sizes: dict[int, int] = {}  # what a blob takes of the reader's budget, with all that it refers to
        self._size = 0  # of the blob at hand

    def code(self, packed: bytes) -> bytes:
        """The content code of a packed value. Raises StoreError LS202."""
        try:
            return self._whole(packed)
        except (_Deep, RecursionError):
            pass
        try:
            code: bytes = _in_room(self._decode, lambda: self._whole(packed))
        except RecursionError as error:
            raise damaged("a stored value nests deeper than any that is written") from error
        return code

    def _whole(self, packed: bytes) -> bytes:
        self._decode.begin()
        try:
            self._size = len(packed)
            code = self._code(self._piece_of(packed), 1 << 62)
        except (StoreError, _Deep, RecursionError):
            raise
        except Exception as error:  # whatever a decoder makes of something forged
            raise damaged(f"a stored value does not decode: {error or type(error).__name__}") from error
        if self._size > EXPANDED:
            raise damaged("a stored value expands to more than any that is written")
        return code

    def _piece_of(self, packed: bytes) -> Any:
        """A decoded piece. It must be written in the one way in which we write it, so that there is one reading:
        another decoder might take the first of two equal keys where this one takes the last."""
        value = self._decode(packed)
        if encode_ordered(_plain(packed)) != packed:
            raise damaged("a stored value is written in another way than ours")
        if not _inert(value):
            raise damaged("a stored value holds something unknown")
        return value

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
                code = self._codes[number] = self._sized(number, lambda piece: self._code(piece, number))
            self._size += self._sizes[number]
            return code
        if node.code == CAT:
            return merkle.sequence(self._joined(node.data, below))
        if node.code == JSON:
            if not jsontext.known(node.data[0]):
                raise damaged(f"a JSON body names formatter {node.data[0]}, which does not exist")
            return merkle.json(node.data[0], self._code(self._piece_of(node.data[1:]), below))
        number = int.from_bytes(node.data, "big")
        code = self._bigs.get((node.code, number))
        if code is None:
            data = self._source.big(number)
            head = (b"\xdb" if node.code == BIG_TEXT else b"\xc6") + len(data).to_bytes(4, "big")
            code = self._bigs[node.code, number] = merkle.long_leaf(head, data)
        return code

    def _joined(self, numbers: bytes, below: int) -> bytes:
        """The joined codes of the items of a rope."""
        pieces = []
        size = 0
        for number in _decode_numbers(numbers):
            pieces.append(self._piece(self._smaller(number, below)))
            size += len(pieces[-1])
            if size > JOINED:
                raise damaged("a stored list is longer than any that is written")
        return b"".join(pieces)

    def _piece(self, number: int) -> bytes:
        joined = self._items.get(number)
        if joined is None:
            joined = self._items[number] = self._sized(number, lambda piece: self._codes_of(piece, number))
        self._size += self._sizes[number]
        return joined

    def _codes_of(self, piece: Any, number: int) -> bytes:
        if type(piece) is _Special and piece.code == CAT:
            return self._joined(piece.data, number)
        if type(piece) is list:
            return b"".join([self._code(item, number) for item in piece])
        raise damaged(f"blob {number} is not a piece of a list")

    def _sized(self, number: int, function: Callable[[Any], bytes]) -> bytes:
        """Does something with a blob, and notes what it takes to expand it."""
        blob = self._source.blob(number)
        outer, self._size = self._size, len(blob) + FOLLOWED
        result = function(self._piece_of(blob))
        if self._size > EXPANDED:
            raise damaged("a stored value expands to more than any that is written")
        self._sizes[number], self._size = self._size, outer
        return result

    @staticmethod
    def _smaller(number: int, below: int) -> int:
        if number >= below:
            raise damaged(f"blob {number} is referred to by an older blob")
        return number
