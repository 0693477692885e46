"""Which items of two sequences belong together: the same ones first, then the ones that are alike.

    pairs = common(old, new)                     # equal items, in order: a long common subsequence
    for olds, news in gaps(pairs, len(old), len(new)): ...
    alike(olds, news, score)                     # of what is left in a gap, the pairs that fit best

`common` is patience diff (items that occur once on both sides are anchors) with Myers' O(ND) search between
anchors, both within a budget: where a stretch would cost more than its share, it is matched greedily, which
still gives equal items in order, only fewer of them. Memory grows with the length, never with its square.

Patience diff: Bram Cohen, 2008. O(ND): Eugene W. Myers, "An O(ND) Difference Algorithm and Its Variations", 1986.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterator, Sequence

type Pair = tuple[int, int]

_EDITS = 200  # that Myers' search looks for in one stretch: its memory grows with their square
_PASSES = 30  # times that the items are looked at in all, before the rest is matched greedily
_AHEAD = 200  # items that greedy matching may leave out at once
_PRODUCT = 40_000  # pairs that are scored in one gap: 0.2 s


def common(a: Sequence[Hashable], b: Sequence[Hashable]) -> list[Pair]:
    """Pairs (index in `a`, index in `b`) of equal items, rising in both."""
    found: list[Pair] = []
    budget = _PASSES * (len(a) + len(b)) + 10_000
    stretches = [(0, len(a), 0, len(b))]
    while stretches:
        low_a, high_a, low_b, high_b = stretches.pop()
        while low_a < high_a and low_b < high_b and a[low_a] == b[low_b]:
            found.append((low_a, low_b))
            low_a, low_b = low_a + 1, low_b + 1
        while low_a < high_a and low_b < high_b and a[high_a - 1] == b[high_b - 1]:
            high_a, high_b = high_a - 1, high_b - 1
            found.append((high_a, high_b))
        if low_a == high_a or low_b == high_b:
            continue
        stretch = low_a, high_a, low_b, high_b
        budget -= high_a - low_a + high_b - low_b
        if budget < 0:
            found += _greedy(a, b, stretch)
            continue
        anchors = _anchors(a, b, stretch)
        if anchors:
            for at_a, at_b in anchors:
                stretches.append((low_a, at_a, low_b, at_b))
                low_a, low_b = at_a + 1, at_b + 1
            stretches.append((low_a, high_a, low_b, high_b))
            found += anchors
            continue
        between, spent = _myers(a, b, stretch, budget)
        budget -= spent
        found += _greedy(a, b, stretch) if between is None else between
    found.sort()
    return found


def gaps(pairs: Sequence[Pair], a: int, b: int) -> Iterator[tuple[range, range]]:
    """What lies between the pairs: the stretches of both sequences, of lengths `a` and `b`, that have no partner."""
    low_a = low_b = 0
    for at_a, at_b in [*pairs, (a, b)]:
        if at_a > low_a or at_b > low_b:
            yield range(low_a, at_a), range(low_b, at_b)
        low_a, low_b = at_a + 1, at_b + 1


def alike(a: Sequence[int], b: Sequence[int], score: Callable[[int, int], float]) -> list[Pair]:
    """Of two gaps the pairs, rising in both, with the greatest sum of scores; 0 never makes a pair.

    Where there would be too many to score, each is only tried with the one at the same place.
    """
    if not a or not b:
        return []
    if len(a) == len(b) == 1:
        return [(a[0], b[0])] if score(a[0], b[0]) > 0 else []
    if len(a) * len(b) <= _PRODUCT:
        return _best(a, b, score)
    return [pair for pair in zip(a, b, strict=False) if score(*pair) > 0]


def _anchors(a: Sequence[Hashable], b: Sequence[Hashable], stretch: tuple[int, int, int, int]) -> list[Pair]:
    """Items that occur once on both sides, as far as their order is the same."""
    low_a, high_a, low_b, high_b = stretch
    places: dict[Hashable, int] = {}
    for index in range(low_a, high_a):
        places[a[index]] = -1 if a[index] in places else index
    once: dict[Hashable, int] = {}
    for index in range(low_b, high_b):
        if places.get(b[index], -1) >= 0:
            once[b[index]] = -1 if b[index] in once else index
    candidates = [(places[item], index) for item, index in once.items() if index >= 0]
    candidates.sort(key=lambda pair: pair[1])
    return _rising(candidates)


def _rising(candidates: list[Pair]) -> list[Pair]:
    """The longest run of pairs, sorted by their second, that also rises in their first."""
    tails: list[int] = []  # smallest first index that ends a run of each length
    ends: list[int] = []  # which candidate that is
    before = [-1] * len(candidates)
    for number, (at_a, _) in enumerate(candidates):
        length = bisect_left(tails, at_a)
        before[number] = ends[length - 1] if length else -1
        if length == len(tails):
            tails.append(at_a)
            ends.append(number)
        else:
            tails[length], ends[length] = at_a, number
    found: list[Pair] = []
    number = ends[-1] if ends else -1
    while number >= 0:
        found.append(candidates[number])
        number = before[number]
    return found[::-1]


def _myers(
    a: Sequence[Hashable], b: Sequence[Hashable], stretch: tuple[int, int, int, int], budget: int
) -> tuple[list[Pair] | None, int]:
    """The pairs of a shortest edit script and what finding it cost; None where it has too many edits."""
    low_a, high_a, low_b, high_b = stretch
    size_a, size_b = high_a - low_a, high_b - low_b
    # furthest[k]: how far in `a` one comes on diagonal k (index in a - index in b) with so many edits
    furthest: dict[int, int] = {1: 0}
    trace: list[dict[int, int]] = []
    spent = 0
    for edits in range(min(_EDITS, size_a + size_b) + 1):
        trace.append(dict(furthest))
        for k in range(-edits, edits + 1, 2):
            down = k == -edits or (k != edits and furthest[k - 1] < furthest[k + 1])
            x = furthest[k + 1] if down else furthest[k - 1] + 1
            y = start = x - k
            while x < size_a and 0 <= y < size_b and a[low_a + x] == b[low_b + y]:
                x, y = x + 1, y + 1
            spent += 1 + y - start
            furthest[k] = x
            if x >= size_a and y >= size_b:
                return _walked(trace, size_a, size_b, low_a, low_b), spent
        if spent > budget:
            break
    return None, spent


def _walked(trace: list[dict[int, int]], x: int, y: int, low_a: int, low_b: int) -> list[Pair]:
    found: list[Pair] = []
    for edits in range(len(trace) - 1, -1, -1):
        furthest = trace[edits]
        k = x - y
        down = k == -edits or (k != edits and furthest[k - 1] < furthest[k + 1])
        k = k + 1 if down else k - 1
        before_x = furthest[k]
        before_y = before_x - k
        while x > before_x and y > before_y and x > 0 and y > 0:
            x, y = x - 1, y - 1
            found.append((low_a + x, low_b + y))
        x, y = before_x, before_y
    return found


def _greedy(a: Sequence[Hashable], b: Sequence[Hashable], stretch: tuple[int, int, int, int]) -> list[Pair]:
    """Each item of `b` with the next equal one of `a`, where that is near."""
    low_a, high_a, low_b, high_b = stretch
    places: dict[Hashable, list[int]] = {}
    for index in range(low_a, high_a):
        places.setdefault(a[index], []).append(index)
    found: list[Pair] = []
    next_a = low_a
    for index in range(low_b, high_b):
        at = places.get(b[index])
        if at is None:
            continue
        place = bisect_left(at, next_a)
        if place < len(at) and at[place] < next_a + _AHEAD:
            found.append((at[place], index))
            next_a = at[place] + 1
    return found


def _best(a: Sequence[int], b: Sequence[int], score: Callable[[int, int], float]) -> list[Pair]:
    """By dynamic programming over all pairs."""
    scores = [[score(one, other) for other in b] for one in a]
    best = [[0.0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i in range(len(a) - 1, -1, -1):
        for j in range(len(b) - 1, -1, -1):
            paired = scores[i][j] + best[i + 1][j + 1] if scores[i][j] > 0 else 0.0
            best[i][j] = max(paired, best[i + 1][j], best[i][j + 1])
    found: list[Pair] = []
    i = j = 0
    while i < len(a) and j < len(b):
        if scores[i][j] > 0 and best[i][j] == scores[i][j] + best[i + 1][j + 1]:
            found.append((a[i], b[j]))
            i, j = i + 1, j + 1
        elif best[i][j] == best[i + 1][j]:
            i += 1
        else:
            j += 1
    return found
