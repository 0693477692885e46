"""How sequences are aligned: equal items in order, in time and memory that a long run can afford."""

from __future__ import annotations

import random
import tracemalloc
from collections.abc import Sequence
from itertools import pairwise

import pytest

from lockstep.debugger.alignment import alike, common, gaps


def checked(a: Sequence[object], b: Sequence[object]) -> list[tuple[int, int]]:
    """The pairs of two sequences, which are of equal items and rise in both."""
    pairs = common(a, b)
    assert all(a[i] == b[j] for i, j in pairs)
    assert all(one[0] < other[0] and one[1] < other[1] for one, other in pairwise(pairs))
    return pairs


def longest(a: Sequence[object], b: Sequence[object]) -> int:
    """How long a common subsequence can be, by the textbook."""
    best = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i in range(len(a) - 1, -1, -1):
        for j in range(len(b) - 1, -1, -1):
            best[i][j] = best[i + 1][j + 1] + 1 if a[i] == b[j] else max(best[i + 1][j], best[i][j + 1])
    return best[0][0]


def test_random_edits_are_found_nearly_as_well_as_can_be() -> None:
    chance = random.Random(3)
    missed = possible = 0
    for _ in range(400):
        letters = chance.choice((2, 3, 10, 50))
        a = [chance.randrange(letters) for _ in range(chance.randrange(30))]
        b = [item for item in a if chance.random() > 0.2]
        for _ in range(chance.randrange(5)):
            b.insert(chance.randrange(len(b) + 1), chance.randrange(letters))
        pairs = checked(a, b)
        holes = list(gaps(pairs, len(a), len(b)))
        assert sum(len(old) for old, _ in holes) == len(a) - len(pairs)
        assert sum(len(new) for _, new in holes) == len(b) - len(pairs)
        possible += longest(a, b)
        missed += longest(a, b) - len(pairs)
    assert missed < possible / 50


def test_unique_items_are_aligned_wholly() -> None:
    a = list(range(1000))
    b = [item for item in a if item % 7] + [-1]
    b[300:300] = [-2, -3]
    assert len(checked(a, b)) == 1000 - 143


LONG = 50_000


@pytest.mark.parametrize(
    ("a", "b", "least"),
    [
        (range(LONG), [x for n in range(LONG) for x in ((n, -n) if n % 1000 == 500 else (n,))], LONG),
        (range(LONG), range(LONG, 2 * LONG), 0),
        (range(LONG), range(LONG - 1, -1, -1), 1),
        ([n % 5 for n in range(LONG)], [n % 5 if n % 97 else 9 for n in range(LONG)], LONG * 9 // 10),
        ([n % 2 for n in range(LONG)], [n % 3 % 2 for n in range(LONG)], LONG // 4),
    ],
    ids=["some put in", "nothing in common", "turned round", "the same few again and again", "two keys"],
)
def test_long_sequences_never_take_memory_by_their_square(a: Sequence[int], b: Sequence[int], least: int) -> None:
    a, b = list(a), list(b)
    tracemalloc.start()
    try:
        pairs = common(a, b)
        assert tracemalloc.get_traced_memory()[1] < 60_000_000
    finally:
        tracemalloc.stop()
    assert len(pairs) >= least


def test_what_is_alike_is_paired_in_order_for_the_greatest_sum() -> None:
    scores = {(0, 0): 0.3, (0, 1): 0.9, (1, 1): 0.4, (1, 2): 0.8, (2, 0): 1.0}
    assert alike(range(3), range(3), lambda i, j: scores.get((i, j), 0.0)) == [(0, 1), (1, 2)]
    assert alike([4], [7], lambda i, j: 0.1) == [(4, 7)]
    assert alike([4], [7], lambda i, j: 0.0) == []
    assert alike([], [7], lambda i, j: 1.0) == []
