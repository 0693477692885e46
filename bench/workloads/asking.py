"""The requests of the model calls that workloads make.

They follow from the call's number alone, so that every tool gets the same ones. Words are hexadecimal:
they compress worse than language does.
"""

from __future__ import annotations

import random
from typing import Any


def words(size: int, seed: int | str) -> str:
    """So many bytes of text."""
    rng = random.Random(seed)
    return " ".join([f"{rng.randrange(4096):03x}" for _ in range(size // 4)])


_SYSTEM = words(800, 0)


def body(number: int) -> dict[str, Any]:
    """About 1.3 kB of JSON: a system prompt of 0.8 kB that all share, and 0.35 kB of the call's own."""
    return {
        "model": "gpt-4o",
        "messages": [
            {"role": "system", "content": _SYSTEM},
            {"role": "user", "content": f"{number} {words(340, number)}"},
        ],
        "temperature": 0.2,
    }
