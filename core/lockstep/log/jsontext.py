"""JSON bodies: bytes are the truth, but bytes that a known formatter makes again are packed as a tree.

A chat that grows sends its whole history each time; as a tree it shares structure with the request
before, as text it does not. Spaces, duplicate keys, float spellings or escapes that no formatter
reproduces keep a body as it is, byte for byte. Decode only where the stack is large (the writer's
thread): C decoders crash on deep input in threads with small stacks.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import msgspec

from lockstep.errors import Code, StoreError
from lockstep.log.canonical import storable

# A formatter's number is stored; released numbers keep their meaning.
COMPACT, SPACED_ASCII, COMPACT_ASCII, SPACED = range(4)

_compact = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


def _spaced_ascii(value: Any) -> bytes:
    return json.dumps(value).encode()


def _compact_ascii(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _spaced(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


_FORMATTERS: tuple[Callable[[Any], bytes], ...] = (_compact, _spaced_ascii, _compact_ascii, _spaced)


def parse(data: bytes) -> tuple[int, Any] | None:
    """The formatter that makes exactly these bytes, and its value; None when there is none."""
    if data[:1] not in (b"{", b"["):
        return None
    try:
        value = _decode(data)
    except (ValueError, RecursionError):
        return None
    if not storable(value):
        return None
    if _compact(value) == data:
        return COMPACT, value
    # Each try costs an encoding, so only the spellings whose marks show are tried.
    head = data[:256]
    candidates: tuple[int, ...]
    if b'": ' in head or b", " in head:
        candidates = (SPACED_ASCII, SPACED) if data.isascii() else (SPACED,)
    else:
        candidates = (COMPACT_ASCII,) if data.isascii() else ()
    for formatter in candidates:
        if _FORMATTERS[formatter](value) == data:
            return formatter, value
    return None


def known(formatter: int) -> bool:
    """Whether there is a formatter with that number."""
    return 0 <= formatter < len(_FORMATTERS)


def text(formatter: int, value: Any) -> bytes:
    """The bytes that were packed. Raises StoreError LS202 for an unknown formatter."""
    if not known(formatter):
        raise StoreError(Code.DAMAGED, f"a JSON body names formatter {formatter}, which does not exist")
    return _FORMATTERS[formatter](value)
