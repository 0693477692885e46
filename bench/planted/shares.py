"""Shares with their intervals."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt


def wilson(hits: int, of: int) -> tuple[float, float]:
    """The 95 % interval of a share (Wilson 1927)."""
    if not of:
        return 0.0, 1.0
    z, share = 1.959964, hits / of
    middle = (share + z * z / (2 * of)) / (1 + z * z / of)
    half = z / (1 + z * z / of) * sqrt(share * (1 - share) / of + z * z / (4 * of * of))
    return middle - half, middle + half


def share(right: Sequence[bool]) -> str:
    """How many are right, with the interval, as in a table."""
    low, high = wilson(sum(right), len(right))
    return f"{sum(right) / len(right):.3f} ({low:.3f}–{high:.3f})" if right else "–"
