"""The canonical form of a value: what match keys and content digests are computed from.

Canonical bytes are msgpack with the keys of maps sorted. What msgpack cannot say has an extension
code of ours : integers beyond 64 bits, text with lone surrogates, maps with such keys. Floats
keep their bits, so NaN, infinities and -0.0 survive. Tuples are lists. Nothing is ever imported
or constructed from these bytes but plain data.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import msgspec

from lockstep.errors import Code, StoreError
from lockstep.log import merkle
from lockstep.log.model import Value

# Deeper values are refused: C decoders crash the process on deep input in threads with small stacks.
MAX_DEPTH = 200

KEY_SIZE = 16

LEAVES = frozenset({str, int, float, bool, bytes, type(None)})

encode_sorted = msgspec.msgpack.Encoder(order="deterministic").encode
encode_ordered = msgspec.msgpack.Encoder().encode


# Extensions that stand for values inside canonical bytes. Released codes keep their meaning.
INTEGER = 1  # signed, big endian
TEXT = 2  # UTF-8 in which lone surrogates are encoded too
PAIRS = 3  # a map some of whose keys need TEXT: [key, value, key, value, …]


def key(kind: str, name: str, value: Value) -> bytes:
    """The match key of an effect: 16 bytes, equal where kind, name and request are equal.

    The order of map keys does not count; that of lists does. Raises StoreError LS207.
    """
    try:
        record = encode_sorted((kind, name, value)) if storable(value) else None
    except (OverflowError, UnicodeEncodeError):
        record = None
    if record is None:
        record = encode_sorted((inert(kind, ordered=False), inert(name, ordered=False), inert(value, ordered=False)))
    return blake2b(record, digest_size=KEY_SIZE, person=b"lockstep.key").digest()


def digest(value: Value) -> bytes:
    """The identity of content: 32 bytes, equal where the values are equal, whatever their map order.

    Made bottom-up (`lockstep.log.merkle`), so that it does not depend on how a value is stored.
    Raises StoreError LS207.
    """
    if storable(value):
        try:
            return merkle.root(merkle.code(value, encode_sorted, ordered=False))
        except (OverflowError, UnicodeEncodeError):
            pass
    return merkle.root(merkle.code(inert(value, ordered=False), encode_sorted, ordered=False))


def canonical(value: Value) -> bytes:
    """Canonical bytes of a value, map keys sorted. Raises StoreError LS207 naming the path."""
    if storable(value):
        try:
            return encode_sorted(value)
        except (OverflowError, UnicodeEncodeError):
            pass
    return encode_sorted(inert(value, ordered=False))


def storable(value: Any, room: int = MAX_DEPTH) -> bool:
    """Whether a value consists of exactly the types of `Value` and is not too deep. Hot: no paths."""
    kind = type(value)
    if kind is dict:
        if not room:
            return False
        for name, item in value.items():
            if type(name) is not str:
                return False
            if type(item) not in LEAVES and not storable(item, room - 1):
                return False
        return True
    if kind is list or kind is tuple:
        if not room:
            return False
        for item in value:
            if type(item) not in LEAVES and not storable(item, room - 1):
                return False
        return True
    return kind in LEAVES


def inert(value: Any, *, ordered: bool, path: str = "", room: int = MAX_DEPTH) -> Any:
    """The slow, forgiving form: subclasses become their plain type, and what msgpack cannot say becomes
    an extension. `ordered` keeps the order of maps, where an extension has to decide it.

    Raises StoreError LS207 with the path of what cannot be stored.
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        plain = int(value)
        if -(1 << 63) <= plain < 1 << 64:
            return plain
        return msgspec.msgpack.Ext(INTEGER, plain.to_bytes(plain.bit_length() // 8 + 1, "big", signed=True))
    if isinstance(value, float):
        return float(value)
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    if not room:
        raise StoreError(Code.UNSTORABLE, f"value nests deeper than {MAX_DEPTH} at {path[:120]}…")
    if isinstance(value, dict):
        return _map(value, ordered, path, room)
    if isinstance(value, list | tuple):
        return [inert(v, ordered=ordered, path=f"{path}[{n}]", room=room - 1) for n, v in enumerate(value)]
    what = f"{type(value).__module__}.{type(value).__qualname__}"
    raise StoreError(Code.UNSTORABLE, f"cannot store a {what} at {path or 'the top of the value'}")


def _text(value: str) -> Any:
    plain = str.__str__(value)
    try:
        plain.encode()
    except UnicodeEncodeError:
        return msgspec.msgpack.Ext(TEXT, plain.encode("utf-8", "surrogatepass"))
    return plain


def _map(value: dict[Any, Any], ordered: bool, path: str, room: int) -> Any:
    pairs: list[tuple[Any, Any]] = []
    for name, item in value.items():
        if not isinstance(name, str):
            what = type(name).__qualname__
            raise StoreError(Code.UNSTORABLE, f"cannot store a map key of type {what} at {path or 'the top'}")
        shown = ascii(str.__str__(name))[1:-1]
        below = inert(item, ordered=ordered, path=f"{path}.{shown}" if path else shown, room=room - 1)
        pairs.append((_text(name), below))
    if all(type(name) is str for name, _ in pairs):
        return dict(pairs)
    encode = encode_ordered if ordered else encode_sorted
    if not ordered:
        pairs.sort(key=lambda pair: encode(pair[0]))
    return msgspec.msgpack.Ext(PAIRS, encode([part for pair in pairs for part in pair]))
