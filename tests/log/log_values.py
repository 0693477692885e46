"""Values that storage tends to get wrong, and a comparison that sees all of it."""

import json
import random
import struct
from typing import Any

INTEGERS = [0, -1, 1, 127, 128, 255, 2**31, -(2**63), 2**63, 2**64 - 1, 2**64, -(2**63) - 1, 10**400, -(10**400)]
FLOATS = [0.0, -0.0, 1.0, 1e308, 5e-324, float("inf"), float("-inf"), float("nan"), -float("nan"), 0.1]
TEXTS = ["", "a", "é", "\x00", "\ud800", "a\udfffb", "😀", "line\nline", "x" * 39, "y" * 600, "z" * 70_000]
BYTES = [b"", b"\x00", b"\xff" * 40, b"{", b"q" * 700, bytes(range(256)) * 300]


def value(rng: random.Random, depth: int = 4) -> Any:
    """Any value, mostly small, now and then large, long or deep."""
    kind = rng.randrange(11 if depth else 6)
    if kind == 0:
        return rng.choice([None, True, False])
    if kind == 1:
        return rng.choice([*INTEGERS, rng.getrandbits(rng.randrange(1, 200))])
    if kind == 2:
        return rng.choice([*FLOATS, rng.random()])
    if kind == 3:
        return rng.choice([*TEXTS, text(rng, rng.randrange(300))])
    if kind == 4:
        return rng.choice([*BYTES, rng.randbytes(rng.randrange(900))])
    if kind == 5:
        return json_text(rng)
    if kind == 6:
        return [rng.randrange(100) for _ in range(rng.randrange(400))]
    if kind == 7:
        return [{"role": "user", "content": text(rng, rng.randrange(200))} for _ in range(rng.randrange(120))]
    if kind == 8:
        return [value(rng, depth - 1) for _ in range(rng.randrange(6))]
    names = [rng.choice([*TEXTS[:8], text(rng, 8)]) for _ in range(rng.randrange(8))]
    rng.shuffle(names)
    return {name: value(rng, depth - 1) for name in names}


def text(rng: random.Random, size: int) -> str:
    return " ".join(f"w{rng.randrange(4000):x}" for _ in range(size // 5))


def json_text(rng: random.Random) -> bytes:
    """JSON as different libraries write it, and as none does."""
    rows = [{"id": n, "text": text(rng, 90), "x": rng.random(), "é": None} for n in range(rng.randrange(30))]
    separators = rng.choice([(",", ":"), (", ", ": "), (" ,", ":")])
    body = json.dumps(
        {"rows": rows, "n": 2**70},
        separators=separators,
        ensure_ascii=rng.random() < 0.5,
        indent=rng.choice([None, None, 2]),
    ).encode()
    return body + rng.choice([b"", b"", b"\n"])


def deep(levels: int) -> Any:
    found: Any = "end"
    for level in range(levels):
        found = [found] if level % 2 else {"in": found, "pad": "p" * 30}
    return found


def same(left: Any, right: Any) -> bool:
    """Equal in type, bits of floats, and order of keys."""
    if type(left) is not type(right):
        return False
    if isinstance(left, float):
        return struct.pack("d", left) == struct.pack("d", right)
    if isinstance(left, dict):
        return list(left) == list(right) and all(same(left[name], right[name]) for name in left)
    if isinstance(left, list):
        return len(left) == len(right) and all(map(same, left, right))
    return bool(left == right)
