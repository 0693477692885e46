"""Content codes: a hash tree over a value, so that a list that grew by one item costs one item.

The *code* of a node is a self-delimiting piece of msgpack:

* what encodes to at most `INLINE` bytes is its own code
* other scalars, and containers that encode to less than `SMALL` bytes: an extension with the hash of
  the encoding
* larger lists: an extension with the hash of their items' codes in a row
* larger maps: an extension with the hash of encoded keys and codes of values, alternating

`INLINE` and `SMALL` belong to this definition and not to packing: packing may change, codes may not.
There are two forms. With sorted maps it is the identity of content (`canonical.digest`); with
maps in their own order it is what the chain covers, since a program sees that order.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b
from typing import Any

INLINE = 40
SMALL = 512

NUMBERS = frozenset({int, float, bool, type(None)})

# Heads of msgpack extensions with 32 bytes of payload; types 16 to 19 are never used inside values.
_LEAF = b"\xc7\x20\x10"
_LIST = b"\xc7\x20\x11"
_MAP = b"\xc7\x20\x12"
_JSON = b"\xc7\x20\x13"


def leaf(encoded: bytes) -> bytes:
    """The code of a scalar or small container, from its encoding."""
    if len(encoded) <= INLINE:
        return encoded
    return _LEAF + blake2b(encoded, digest_size=32, person=b"lockstep.leaf").digest()


def long_leaf(head: bytes, data: bytes) -> bytes:
    """The code of a long text or bytes, from the two parts of its encoding: saves joining them."""
    state = blake2b(head, digest_size=32, person=b"lockstep.leaf")
    state.update(data)
    return _LEAF + state.digest()


def sequence(codes: bytes) -> bytes:
    """The code of a large list, from the joined codes of its items."""
    return _LIST + blake2b(codes, digest_size=32, person=b"lockstep.list").digest()


def numbers(encoded: bytes, count: int) -> bytes:
    """The code of a large list of `NUMBERS`, from its encoding: such items are their own codes."""
    return sequence(encoded[1 if count < 16 else 3 if count < 1 << 16 else 5 :])


def mapping(codes: bytes) -> bytes:
    """The code of a large map, from its encoded keys and codes of values, joined."""
    return _MAP + blake2b(codes, digest_size=32, person=b"lockstep.map").digest()


def json(formatter: int, code: bytes) -> bytes:
    """The code of bytes that are JSON text, from the number of their formatter and the tree's code."""
    return _JSON + blake2b(bytes((formatter,)) + code, digest_size=32, person=b"lockstep.json").digest()


def root(code: bytes) -> bytes:
    """The 32 bytes that stand for a whole value."""
    return blake2b(code, digest_size=32, person=b"lockstep.value").digest()


def code(value: Any, encode: Callable[[Any], bytes], *, ordered: bool) -> bytes:
    """The code of a value that `encode` can encode."""
    encoded = encode(value)
    kind = type(value)
    if len(encoded) < SMALL or (kind is not dict and kind is not list and kind is not tuple):
        return leaf(encoded)
    if kind is dict:
        items = value.items() if ordered else sorted(value.items())
        parts: list[bytes] = []
        for name, item in items:
            parts.append(encode(name))
            parts.append(code(item, encode, ordered=ordered))
        return mapping(b"".join(parts))
    if NUMBERS.issuperset(map(type, value)):
        return numbers(encoded, len(value))
    return sequence(b"".join([code(item, encode, ordered=ordered) for item in value]))
