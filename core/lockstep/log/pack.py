"""Values to bytes that share structure: what a stream has stored once, it refers to afterwards.

`Packer.pack` gives the packed form of a value and its content code (`lockstep.log.merkle`). Packed is
msgpack in which an extension may stand for

* REF   the value of a blob; subtrees that encode to `SHARE` bytes and more become blobs
* CAT   a list that is the lists of several blobs in a row: the rope of a long list. Its pieces end
        where the content says (a code whose checksum ends in four zero bits), so equal stretches of two
        lists are equal pieces, whatever came before them
* JSON  bytes that a known formatter makes of the packed value inside
* TEXT and BYTES in the table of big leaves

Blobs are numbered in a stream from 0 and refer to smaller numbers only, so there are no cycles.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Any
from zlib import crc32

import msgspec

from lockstep.errors import Code, StoreError
from lockstep.log import jsontext, merkle
from lockstep.log.canonical import encode_ordered as encode
from lockstep.log.canonical import inert, storable
from lockstep.log.model import Value

REF, CAT, JSON, BIG_TEXT, BIG_BYTES = range(32, 37)

TREE = 2048  # JSON text below this size stays text: a tree takes ten times as long, and saves a tenth
SHARE = 512  # measured: at 128 there are 3.5 times as many blobs and no fewer bytes
BIG = 1 << 16
PLAIN = 1 << 14  # values below this size are encoded to see how large they are
ROPE_ITEMS = 32  # lists longer than this, of items that average more than ROPE_WEIGHT bytes, are ropes
ROPE_WEIGHT = 32
ITEM = 64  # items of a rope from this size on are blobs of their own
PIECE_MASK = 15
PIECE_MAX = 64
ROOTS = 16
MEMO_BYTES = 16 << 20
KNOWN_MAX = 200_000

_CONTAINERS = frozenset({dict, list, tuple})
_SURELY_INLINE = merkle.INLINE // 4  # characters; none takes more than 4 bytes
_ext = msgspec.msgpack.Ext


class Packer:
    """Packs the values of one stream. Used by one thread.

    blobs, bigs   made since `take` was last called
    """

    def __init__(self) -> None:
        self.next_blob = 0
        self.next_big = 0
        self.blobs: list[bytes] = []
        self.bigs: list[tuple[int, bytes]] = []
        # What was stored, by content code: its reference. Forgetting costs bytes, never correctness.
        self._known: dict[bytes, tuple[bytes, int]] = {}
        # What list items became, by their encoding and never by identity: dicts are changed in place.
        self._memo: dict[bytes, tuple[bytes, bytes]] = {}
        self._memo_bytes = 0

    def pack(self, value: Value) -> tuple[bytes, bytes]:
        """Packed bytes and content code. Raises StoreError LS207 naming the path."""
        if storable(value):
            try:
                return self._node(value, 0)
            except (OverflowError, UnicodeEncodeError):
                pass
        return self._node(inert(value, ordered=True), 0)

    def forget(self, next_blob: int, next_big: int) -> None:
        """Takes back what was packed since those were the next numbers: it will not be stored."""
        self.next_blob, self.next_big = next_blob, next_big
        self.blobs, self.bigs = [], []
        self._known.clear()
        self._memo.clear()
        self._memo_bytes = 0

    def go_on(self, next_blob: int, next_big: int) -> None:
        """Others have stored blobs in the stream since: the next ones have these numbers. What is known stays known."""
        self.next_blob, self.next_big = next_blob, next_big

    def take(self) -> tuple[list[bytes], list[tuple[int, bytes]]]:
        """The blobs and big leaves that were made since the last call."""
        taken = self.blobs, self.bigs
        self.blobs, self.bigs = [], []
        if len(self._known) > KNOWN_MAX:
            self._known.clear()
        if self._memo_bytes > MEMO_BYTES:
            self._memo.clear()
            self._memo_bytes = 0
        return taken

    def _node(self, value: Any, most: int) -> tuple[bytes, bytes]:
        """`most`: no more bytes than this does the value encode to, as far as known; 0 where it is not."""
        kind = type(value)
        if kind in _CONTAINERS:
            # Large values are not encoded once a level; for small ones a look at each node costs more than that.
            if most < PLAIN or _room(value, merkle.SMALL) > 0:
                encoded = encode(value)
                most = len(encoded)
                if most < merkle.SMALL:
                    return encoded, merkle.leaf(encoded)
            return self._map(value, most) if kind is dict else self._list(value, most)
        if kind is bytes and len(value) >= SHARE:
            return self._bytes(value)
        if kind is str and len(value) > BIG:
            return self._big(BIG_TEXT, b"\xdb", value.encode())
        encoded = encode(value)
        return self._share(encoded, merkle.leaf(encoded))

    def _map(self, value: dict[str, Any], most: int) -> tuple[bytes, bytes]:
        packed = [_header(len(value), 0x80, b"\xde", b"\xdf")]
        codes: list[bytes] = []
        for name, item in value.items():
            encoded = encode(name)
            kind = type(item)
            if kind in merkle.NUMBERS or (kind is str and len(item) < _SURELY_INLINE):
                below = code = encode(item)
            else:
                below, code = self._node(item, most)
            packed += (encoded, below)
            codes += (encoded, code)
        return self._share(b"".join(packed), merkle.mapping(b"".join(codes)))

    def _list(self, value: list[Any], most: int) -> tuple[bytes, bytes]:
        if merkle.NUMBERS.issuperset(map(type, value)):
            encoded = encode(value)
            return self._share(encoded, merkle.numbers(encoded, len(value)))
        items: list[bytes] = []
        codes: list[bytes] = []
        memo = self._memo
        for item in value:
            if type(item) in _CONTAINERS:
                encoded = encode(item)
                found = memo.get(encoded)
                if found is None:
                    size = len(encoded)
                    found = (encoded, merkle.leaf(encoded)) if size < merkle.SMALL else self._node(item, size)
                    memo[encoded] = found
                    self._memo_bytes += size
            else:
                found = self._node(item, most)
            items.append(found[0])
            codes.append(found[1])
        code = merkle.sequence(b"".join(codes))
        if len(items) > ROPE_ITEMS and sum(map(len, codes)) > ROPE_WEIGHT * len(items):
            return self._rope(items, codes), code
        return self._share(_array(items), code)

    def _rope(self, items: list[bytes], codes: list[bytes]) -> bytes:
        for index, packed in enumerate(items):
            if len(packed) >= ITEM:
                items[index] = self._blob(packed, codes[index])[0]
        numbers: list[int] = []
        names: list[bytes] = []
        for start, stop in _pieces(codes):
            name = blake2b(b"".join(codes[start:stop]), digest_size=16, person=b"lockstep.piece").digest()
            numbers.append(self._blob(_array(items[start:stop]), name)[1])
            names.append(name)
        while len(numbers) > ROOTS:
            above: list[int] = []
            above_names: list[bytes] = []
            for start, stop in _pieces(names):
                name = blake2b(b"".join(names[start:stop]), digest_size=16, person=b"lockstep.pieces").digest()
                above.append(self._blob(encode(_ext(CAT, encode(numbers[start:stop]))), name)[1])
                above_names.append(name)
            numbers, names = above, above_names
        return encode(_ext(CAT, encode(numbers)))

    def _bytes(self, value: bytes) -> tuple[bytes, bytes]:
        parsed = jsontext.parse(value) if len(value) >= TREE else None
        if parsed is not None:
            formatter, tree = parsed
            try:
                packed, code = self._node(tree, len(value))
            except (OverflowError, UnicodeEncodeError):
                packed, code = self._node(inert(tree, ordered=True), len(value))
            return encode(_ext(JSON, bytes((formatter,)) + packed)), merkle.json(formatter, code)
        if len(value) > BIG:
            return self._big(BIG_BYTES, b"\xc6", value)
        encoded = encode(value)
        return self._share(encoded, merkle.leaf(encoded))

    def _big(self, ext: int, head: bytes, data: bytes) -> tuple[bytes, bytes]:
        if len(data) >= 1 << 30:
            raise StoreError(Code.UNSTORABLE, f"cannot store a text or bytes of {len(data)} bytes (1 GiB or more)")
        code = merkle.long_leaf(head + len(data).to_bytes(4, "big"), data)
        known = self._known.get(code)
        if known is None:
            number = self.next_big
            self.next_big += 1
            self.bigs.append((number, data))
            known = self._known[code] = encode(_ext(ext, _number(number))), number
        return known[0], code

    def _share(self, packed: bytes, code: bytes) -> tuple[bytes, bytes]:
        if len(packed) < SHARE:
            return packed, code
        return self._blob(packed, code)[0], code

    def _blob(self, packed: bytes, name: bytes) -> tuple[bytes, int]:
        known = self._known.get(name)
        if known is None:
            number = self.next_blob
            self.next_blob += 1
            self.blobs.append(packed)
            known = self._known[name] = encode(_ext(REF, _number(number))), number
        return known


def encode_plain(value: Value) -> bytes:
    """A small value packed without sharing anything. Raises StoreError LS207."""
    if storable(value):
        try:
            return encode(value)
        except (OverflowError, UnicodeEncodeError):
            pass
    return encode(inert(value, ordered=True))


def _pieces(names: list[bytes]) -> list[tuple[int, int]]:
    pieces = []
    start = 0
    for index, name in enumerate(names):
        if not crc32(name) & PIECE_MASK or index - start == PIECE_MAX - 1:
            pieces.append((start, index + 1))
            start = index + 1
    if start < len(names):
        pieces.append((start, len(names)))
    return pieces


def _room(value: Any, room: int) -> int:
    """What is left of `room` after the texts and nodes of a container: not positive once it is surely larger.
    Saves encoding large values once a level."""
    for item in value.values() if type(value) is dict else value:
        kind = type(item)
        if kind is str or kind is bytes:
            room -= len(item) + 1
        elif kind in _CONTAINERS:
            room = _room(item, room - 1)
        else:
            room -= 1
        if room <= 0:
            return 0
    return room


def _header(count: int, small: int, middle: bytes, large: bytes) -> bytes:
    if count < 16:
        return bytes((small | count,))
    if count < 1 << 16:
        return middle + count.to_bytes(2, "big")
    return large + count.to_bytes(4, "big")


def _array(items: list[bytes]) -> bytes:
    return _header(len(items), 0x90, b"\xdc", b"\xdd") + b"".join(items)


def _number(number: int) -> bytes:
    return number.to_bytes((number.bit_length() + 7) // 8 or 1, "big")
