"""Which cuts are probed at once, where several probes can be under way. Pure.

What is looked for lies between a good cut and a bad one. Cuts between them part that range into sections, and when the
probes at both ends of a section have ended as they must, the search goes on in it. A probe costs what it asks anew, so
one at an early cut takes longest; and a section is known when the later of its two ends is. So the expected time is

    sum over sections of  P(it is in there) × (time until both ends are known + time that the search in it will take)

which is a sum over neighbours: the best places for some more cuts, between those that are under way already, are found
by dynamic programming. What a search in a section will take is estimated: as many probes one after
another as its entropy asks for, each of the cost that is to be expected there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from math import inf, log

import msgspec

from lockstep.debugger.search import Search, following

# Of a long range so many places are looked at: what lies between two of them makes little difference.
_PLACES = 48
# How much more than its entropy says a search takes: found by simulation, where a third more or less matters little.
_MORE = 2.0


class Course(msgspec.Struct, frozen=True):
    """What is known of probes before they are made.

    costs    of a probe at each cut 0 to last, how much it asks anew, in any unit
    weights  of each answer 1 to last, how likely it is to blame, in any unit; empty: all are alike
    """

    costs: Sequence[float]
    weights: Sequence[float] = ()


def level(last: int) -> Course:
    """Where each probe costs the same."""
    return Course([1.0] * (last + 1))


def falling(last: int, weights: Sequence[float] = ()) -> Course:
    """Where a probe costs what comes after its cut, and a little for itself."""
    return Course([last - cut + 0.5 for cut in range(last + 1)], weights)


def at_once(search: Search, flying: Mapping[int, float], jobs: int, course: Course) -> list[int]:
    """The cuts whose probes are to be under way, up to `jobs`: of those that are, what still can tell something, and
    then others. None where the answer is known, or cannot be.

    flying  by cut, how much of its cost is still to come
    """
    first = following(search)
    if first is None:
        return []
    kept = [cut for cut in flying if search.good < cut < search.bad]
    if jobs == 1 and not kept:
        return [first]
    free = jobs - len(kept)
    # Where some could not be judged, away from them first, as the search by single probes goes.
    away = [first] if free > 0 and search.skipped and first not in flying else []
    left = {cut: flying[cut] for cut in kept} | {cut: course.costs[cut] for cut in away}
    return [*kept, *away, *_added(search, left, free - len(away), course)]


def _added(search: Search, flying: Mapping[int, float], free: int, course: Course) -> list[int]:
    places = _places(search, flying)
    inner = len(places) - 2 - len(flying)
    free = min(free, inner)
    if free <= 0:
        return []
    last = len(places) - 1
    time = [0.0, *(flying.get(cut, course.costs[cut]) for cut in places[1:-1]), 0.0]
    parts = _Parts(search, places, course, max(2, len(flying) + free))
    # least[more][i]: the expected time from place i on, with so many more cuts behind it; `then`: the next of them.
    least = [[inf] * (last + 1) for _ in range(free + 1)]
    then = [[last] * (last + 1) for _ in range(free + 1)]
    least[0][last] = 0.0
    upto = last
    for i in range(last - 1, -1, -1):
        for j in range(i + 1, upto + 1):
            added = 0 if j == last or places[j] in flying else 1
            here = parts.expected(i, j, max(time[i], time[j]))
            for more in range(added, free + 1):
                told = here + least[more - added][j]
                if told < least[more][i]:
                    least[more][i], then[more][i] = told, j
        if places[i] in flying:
            upto = i
    found: list[int] = []
    i, more = 0, free
    while i < last:
        i = then[more][i]
        if i < last and places[i] not in flying:
            found.append(places[i])
            more -= 1
    # Of those that are chosen the cheapest first: where not all can begin, what it says is known soonest.
    return sorted(found, key=lambda cut: course.costs[cut])


def _places(search: Search, flying: Mapping[int, float]) -> list[int]:
    """The ends of the range and the cuts between them that come into question."""
    inside = [cut for cut in range(search.good + 1, search.bad) if cut not in search.skipped]
    if len(inside) > _PLACES:
        step = len(inside) / _PLACES
        inside = sorted({inside[int(number * step)] for number in range(_PLACES)} | {inside[-1]})
    return [search.good, *sorted({*inside, *flying}), search.bad]


class _Parts:
    """Sections of a range: how likely each is, and what a search in it would take."""

    def __init__(self, search: Search, places: Sequence[int], course: Course, jobs: int) -> None:
        last = search.last
        each = list(course.weights) or [1.0] * last
        # That no answer is to blame is as likely as one more step is, each: see `belief.begun`.
        mean = sum(each) / last if last else 1.0
        weights = [mean, *each, mean][search.good + 1 : search.bad + 1]
        sums = [0.0, *accumulate(weights)]
        logs = [0.0, *accumulate(weight * log(weight) if weight > 0 else 0.0 for weight in weights)]
        # Who is to blame is known by a probe at the cut before it.
        before = [course.costs[max(0, min(cut - 1, last))] for cut in range(search.good + 1, search.bad + 1)]
        dear = [0.0, *accumulate(weight * cost for weight, cost in zip(weights, before, strict=True))]
        at = [cut - search.good for cut in places]
        self._sums, self._logs, self._dear = ([each[i] for i in at] for each in (sums, logs, dear))
        self._places, self._often = places, log(jobs + 1)

    def expected(self, i: int, j: int, time: float) -> float:
        chance = self._sums[j] - self._sums[i]
        first, last = self._places[i], self._places[j]
        if last - first < 2 or chance <= 0:
            return chance * time
        entropy = log(chance) - (self._logs[j] - self._logs[i]) / chance
        cost = (self._dear[j] - self._dear[i]) / chance
        return chance * (time + _MORE * cost * max(1.0, entropy / self._often))
