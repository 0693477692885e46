"""The search behind bisect: which cut to probe next, and what is known when nothing is left to probe. Pure.

Cuts are numbered 0 to `last`. A probe at cut k keeps the recorded answers up to it and takes new ones after it. What
is looked for is the first cut at which a run is bad: with the answers up to there it is bad, with those before it
is not. Three ends lie outside of the ordinary ones: bad already at cut 0, where no recorded answer is kept; and past
the last cut, when even keeping every answer does not make it bad.

    search = whole(52)
    while (cut := following(search)) is not None:
        search = told(search, cut, probe(cut))
    search.found        # 17, or None with the range (search.good, search.bad]

One verdict a probe is enough here: each is taken as certain. A search that repeats probes needs only another
`following`.
"""

from __future__ import annotations

from typing import Literal

import msgspec

type Judged = Literal["bad", "good", "skip"]

BAD: Judged = "bad"
GOOD: Judged = "good"
SKIP: Judged = "skip"

# Probes in a row that could not be judged, after which a range is the answer: what stops them all (a refused call, a
# crash) seldom ends at the next cut.
PATIENCE = 8


class Search(msgspec.Struct, frozen=True):
    """What the probes have told so far.

    last     number of the last cut: that of the recording itself
    good     the greatest cut that is known to be good; -1 while none is
    bad      the smallest cut that is known to be bad; last + 1 while not even the recording's answers are known to
             make a probe bad
    skipped  cuts that were probed and could not be judged
    in_row   how many of these in a row
    """

    last: int
    good: int
    bad: int
    skipped: frozenset[int] = frozenset()
    in_row: int = 0

    @property
    def found(self) -> int | None:
        """The first bad cut, 0 for bad without any recorded answer, last + 1 for none; None while it is a range."""
        return self.bad if self.bad - self.good == 1 else None


def beyond(search: Search) -> int:
    """What is found where not even all recorded answers make a probe bad."""
    return search.last + 1


def whole(last: int) -> Search:
    """Over a run with cuts 0 to `last`, whose recording is known to be bad. Nothing else is: not that a run with new
    answers can be good, nor that one with the recorded answers is bad again. Takes at most ceil(log2 last) + 1 probes
    where each can be judged.
    """
    # One cut leaves one probe: the recording's own word stands for the other.
    return Search(last, -1, last + 1 if last > 1 else last)


def following(search: Search) -> int | None:
    """The cut to probe next; None where the answer is known, or cannot be."""
    good, bad, skipped = search.good, search.bad, search.skipped
    if bad - good < 2 or search.in_row >= PATIENCE:
        return None
    # Of two in the middle the later one, which costs fewer live calls.
    middle = (good + bad + 1) // 2
    for cut in (middle, middle + 1, middle - 1):
        if good < cut < bad and cut not in skipped:
            return cut
    # A stretch where all fail, not one that failed by itself: towards the ends, where probes were judged.
    inside = [cut for cut in skipped if good < cut < bad]
    first, last = min(inside), max(inside)
    if bad - last >= max(2, first - good):
        return (last + bad + 1) // 2
    if first - good >= 2:
        return (good + first) // 2
    left_over = [cut for cut in range(first, last) if cut not in skipped]
    return min(left_over, key=lambda cut: (abs(cut - middle), -cut), default=None)


def budget(last: int) -> int:
    """How many probes a search over cuts 0 to `last` may take."""
    return max(1, (last - 1).bit_length() + 1)


def cheapest(search: Search, budget: int) -> int | None:
    """As `following`, where a probe costs what comes after its cut: the latest cut that leaves either side small enough
    for the probes that are left."""
    middle = following(search)
    if middle is None or any(search.good < cut < search.bad for cut in search.skipped):
        return middle
    latest = min(search.bad - 1, search.good + (1 << max(budget - 1, 0)))
    # The last but one, and not the last, which makes nothing anew: what is new is a sample of the rest.
    return max(middle, latest if latest < search.last or search.good == search.last - 1 else latest - 1)


def told(search: Search, cut: int, judged: Judged) -> Search:
    """What is known once a probe at `cut`, as `following` gave it, was judged."""
    if not search.good < cut < search.bad:
        raise ValueError(f"cut {cut} is not between {search.good} and {search.bad}")
    if judged == SKIP:
        return msgspec.structs.replace(search, skipped=search.skipped | {cut}, in_row=search.in_row + 1)
    if judged == GOOD:
        return msgspec.structs.replace(search, good=cut, in_row=0)
    return msgspec.structs.replace(search, bad=cut, in_row=0)


def left(search: Search) -> int:
    """How many more probes it takes at most where each can be judged: ceil(log2) of what is still possible."""
    return (search.bad - search.good - 1).bit_length()
