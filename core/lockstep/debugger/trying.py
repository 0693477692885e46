"""Delta debugging with probes: sets are tried without a live call first, and with live calls only where that told
nothing.

A probe is `free` where nothing may run for real in it: what no record answers is refused, and then it says nothing.
Whether it can be had for free is not known before it was tried.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import msgspec

from lockstep.debugger import minimal, predicate, words
from lockstep.debugger.cuts import Cut
from lockstep.debugger.minimal import Chosen, Known, Smallest
from lockstep.debugger.search import PATIENCE, SKIP, Judged
from lockstep.debugger.verdict import Asking, Probe, Wanted


class Purse:
    """How many probes there may be, of all searches of a bisect together. `most`: None for as many as it takes."""

    def __init__(self, most: int | None = None) -> None:
        self.most = most
        self.made = 0

    @property
    def spent(self) -> bool:
        return self.most is not None and self.made >= self.most

    def room(self, jobs: int) -> int:
        """How many of so many probes there may still be at once."""
        return jobs if self.most is None else max(0, min(jobs, self.most - self.made))

    @property
    def stopped(self) -> str:
        """Why a search ended before it knew, "" where it did not for want of probes."""
        return f"the budget of {words.number(self.made, 'probe')} is reached" if self.spent else ""


class Trial(msgspec.Struct):
    """Sets of items, and what probes said of them.

    items  what together has the effect, as far as it is known
    known  of each set that was tried whether it has it; what was not to be judged is None
    cut    the probe of a set; None where no edit can make it, so that it has not
    has    whether a probe that was judged so has the effect, None where that says nothing
    costly sets of which a free probe said nothing
    misses free probes in a row that say nothing, after which no other is made
    early  probes of sets that have not been asked yet, but were likely to be
    """

    items: Chosen
    known: Known
    cut: Callable[[Chosen], Cut | None]
    has: Callable[[Judged], bool | None]
    costly: set[Chosen] = msgspec.field(default_factory=set)
    misses: int = PATIENCE
    early: dict[Chosen, Probe] = msgspec.field(default_factory=dict)

    @property
    def open(self) -> bool:
        """Whether there are sets of which only a probe with live calls can tell."""
        return not self.costly <= self.known.keys()

    def smallest(self) -> Smallest:
        """The smallest set so far that has it."""
        found = [chosen for chosen, has in self.known.items() if has]
        least = min(found, key=len) if found else self.items
        return Smallest(tuple(sorted(least)), proven=False)


def ask(trial: Trial, ahead: Sequence[Chosen], purse: Purse, *, free: bool) -> Asking[bool | None]:
    """Whether the first of these sets has the effect, by one probe where that is not known. None where it says
    nothing. The others are those that may be asked next: they are tried beside it."""
    chosen = ahead[0]
    cuts = {other: cut for other in ahead if other not in trial.early and (cut := trial.cut(other)) is not None}
    if chosen not in trial.early and chosen not in cuts:
        trial.known[chosen] = False
        return False
    asked = {other: msgspec.structs.replace(cut, free=free) for other, cut in cuts.items()}
    left = max(1, len(trial.smallest().items))
    while chosen not in trial.early:
        told = yield tuple(Wanted(cut, left, "", "") for cut in [*asked.values()][: max(1, purse.room(len(asked)))])
        purse.made += 1
        ended = next(other for other, cut in asked.items() if cut == told.cut)
        trial.early[ended] = told.probe
        del asked[ended]
    probe = trial.early.pop(chosen)
    if free and wanting(probe):
        trial.costly.add(chosen)
        return None
    trial.known[chosen] = has = trial.has(probe.judged)
    return has


def wanting(probe: Probe) -> bool:
    """Whether a free probe ended at a call that no record answers."""
    return probe.judged == SKIP and (bool(probe.refused) or probe.why == predicate.REFUSED)


def once(
    trial: Trial, purse: Purse, likely: Sequence[int] = (), *, free: bool, jobs: int = 1
) -> Asking[Smallest]:  # fmt: skip
    """The smallest set, by free probes alone or also by others. Ends early where the purse is empty, or where so many
    probes in a row said nothing that the next will not either.

    `jobs`: so many are tried at once: the one that is asked, and those that are asked next if it has not the effect, as
    most have not. What is found is what single tries find.
    """
    # What a free probe could not say is asked again by one that is not, and by no free one.
    known: Known = {**(dict.fromkeys(trial.costly) if free else {}), **trial.known}
    search = minimal.smallest(trial.items, known, likely)
    trial.early.clear()
    in_row = 0
    try:
        chosen = next(search)
        while True:
            if in_row >= (trial.misses if free else PATIENCE) or (purse.spent and chosen not in trial.early):
                search.close()
                return trial.smallest()
            if chosen in trial.known:
                has = trial.known[chosen]
            else:
                ahead = minimal.ahead(trial.items, known, likely, chosen, jobs)
                has = yield from ask(trial, ahead, purse, free=free)
            in_row = in_row + 1 if has is None else 0
            chosen = search.send(has)
    except StopIteration as ended:
        found: Smallest = ended.value
        return found


def both(trial: Trial, purse: Purse, passes: Iterable[bool], jobs: int = 1) -> Asking[Smallest]:
    """The smallest set: for free as far as that goes, and then as it has to be. `passes`: whether each is free."""
    found = trial.smallest()
    for free in passes:
        found = yield from once(trial, purse, free=free, jobs=jobs)
        trial.items = frozenset(found.items)
        if found.proven or purse.spent or not trial.open:
            break
    return found
