"""With a good run: the smallest set of answers that cures the bad one.

The answers in which the two runs differ are numbered in the order in which the bad run got them. First the search over
cuts that every bisect has: with the first k of them kept and the good run's for the others it is bad, with k - 1 it is
not. So the good run's answers from number k on cure it, and number k must be among those that do. What else it takes is
delta debugging over the rest (`minimal`); mostly nothing, which one probe shows.

All of it without a live call first, as far as the two records have the answers; what they could not tell is tried last.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from lockstep.debugger import parting, trying, underway
from lockstep.debugger import search as searches
from lockstep.debugger import swaps as swapping
from lockstep.debugger.cuts import Cut
from lockstep.debugger.minimal import Chosen
from lockstep.debugger.search import GOOD, SKIP, Judged, Search
from lockstep.debugger.swaps import Swap
from lockstep.debugger.trying import Purse, Trial
from lockstep.debugger.verdict import Asking, Cure, Located, Wanted
from lockstep.log.timeline import Timeline

# Cuts in a row of which free probes say nothing, after which the others are not expected to be had for free either.
_MISSES = 3


def over(
    timeline: Timeline,
    swaps: Sequence[Swap],
    good: str,
    most: int | None,
    passes: Sequence[bool],
    jobs: int = 1,
) -> Asking[Located]:
    """Searches the answers that differ from those of the `good` run. `passes`: whether probes are free, for each time
    that all is tried."""
    cuts = swapping.cuts(timeline, swaps, good)
    count = len(swaps)
    every = frozenset(range(count))
    by_prefix = {frozenset(range(kept, count)): cuts[kept] for kept in range(count + 1)}

    def cut(chosen: Chosen) -> Cut:
        return by_prefix.get(chosen) or swapping.cut(timeline, [swaps[number] for number in sorted(chosen)], good)

    # Without any of them it is the recording, which is known to be bad.
    trial = Trial(every, {frozenset(): False}, cut, _cures)
    purse = Purse(most)
    known = searches.whole(count)
    for free in passes:
        known = yield from _parted(cuts, known, trial, purse, jobs, free=free)
        if known.found is not None or purse.spent:
            break
    if known.found is None or not 0 < known.found <= count:
        # Not to be told, or bad with each of the good run's answers, or never: nothing cures it, or nothing has to.
        return Located(known, cuts, made=purse.made, stopped=purse.stopped)
    trial.items = frozenset(range(known.good, count))
    found = trial.smallest()
    for free in passes:
        found = yield from trying.once(trial, purse, [known.good], free=free, jobs=jobs)
        if found.proven or purse.spent or not trial.open:
            break
    cure = Cure(tuple(swaps[number].at for number in found.items), found.proven, purse.stopped)
    return Located(known, cuts, made=purse.made, cure=cure)


def _cures(judged: Judged) -> bool | None:
    return None if judged == SKIP else judged == GOOD


def _parted(cuts: Sequence[Cut], known: Search, trial: Trial, purse: Purse, jobs: int, *, free: bool) -> Asking[Search]:
    """The search over cuts, of which each one's answer is known of its set of answers too."""
    count = len(cuts) - 1
    missed: set[int] = set()
    flying = underway.Flying(parting.level(count))
    while len(missed) < _MISSES and (wanted := flying.wanted(known, purse.room(jobs))):
        good = cuts[known.good].place if known.good >= 0 else ""
        bad = cuts[known.bad].place if known.bad <= count else ""
        told = yield tuple(
            Wanted(msgspec.structs.replace(cuts[at], free=free), searches.left(known), good, bad) for at in wanted
        )
        at, probe = cuts.index(msgspec.structs.replace(told.cut, free=cuts[0].free)), told.probe
        flying.ended(at, probe.found)
        purse.made += 1
        chosen = frozenset(range(at, count))
        if free and trying.wanting(probe):
            missed.add(at)
            trial.costly.add(chosen)
        elif chosen:
            trial.known[chosen] = _cures(probe.judged)
        if known.good < at < known.bad:
            known = searches.told(known, at, probe.judged)
    # What was not to be had for free is tried again.
    return msgspec.structs.replace(known, skipped=known.skipped - missed, in_row=0) if missed else known
