"""How often bisect's search names the planted step, where probes err: the search alone, without programs.

    python bench/planted/simulated.py --trials 2000

A culprit is drawn among n steps; a probe that keeps it is bad, unless it is rescued, and one that does not is good,
unless it is spoiled. Compared are the search that looks once at each cut (`lockstep bisect`), and the one that repeats
(`--confidence 0.95`), with a budget of 4 log2 n probes and with its own. Where a budget ends it, the likeliest step
counts as the answer. `drawn` cells draw both rates anew in each trial, from what the search expects: there a stated
number must be the share that is right. Intervals are Wilson's, of 95 %.

`--limit` computes what no search of 4 log2 n probes can exceed, where the rate is known and nothing is spoiled: by
trying all choices for n = 8, and by Fano's inequality from the capacity of the channel (a Z-channel: only bad runs
err); and what this search reaches where it is told the rates.

`--prior` measures what it does that bisect looks first where the outcome was said (`lockstep.debugger.prior`): half of
the weight is on one step, which is the culprit ("right"), or one of the three that follow it ("after": the step that
said what the culprit had led to). "even" is a search that is told nothing.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator, Sequence
from functools import cache
from math import floor, log2

import msgspec
from shares import share

from lockstep.debugger import belief as beliefs
from lockstep.debugger import search as searches
from lockstep.debugger.belief import RESCUE, SPOIL, Rate
from lockstep.debugger.search import BAD, GOOD, Judged

STEPS = (8, 16, 52, 200)
RESCUES = (0.0, 0.2, 0.35, 0.5)
CONFIDENCE = 0.95
DRAWN = "drawn"


class Cell(msgspec.Struct, frozen=True):
    """Rates of None are drawn from what the search expects. `search`: once, budget or own; known has the budget and is
    told the rates. `prior`: even, right or after."""

    steps: int
    rescue: float | None
    spoil: float | None
    search: str
    prior: str = "even"


class Trial(msgspec.Struct, frozen=True):
    """`stated`: the probability that the search gives its answer; `sure`: it reached what was asked for."""

    right: bool
    stated: float
    sure: bool
    probes: int


def trial(cell: Cell, chance: random.Random) -> Trial:
    culprit = chance.randint(1, cell.steps)
    rescue = drawn(RESCUE, chance) if cell.rescue is None else cell.rescue
    spoil = drawn(SPOIL, chance) if cell.spoil is None else cell.spoil

    def judge(cut: int) -> Judged:
        if cut == cell.steps:
            return BAD  # the recorded run itself
        flipped = chance.random() < (rescue if cut >= culprit else spoil)
        return BAD if (cut >= culprit) != flipped else GOOD

    if cell.search == "once":
        known, probes = searches.whole(cell.steps), 0
        while (cut := searches.following(known)) is not None:
            known, probes = searches.told(known, cut, judge(cut)), probes + 1
        return Trial(known.found == culprit, 1.0, True, probes)
    budget = floor(4 * log2(cell.steps)) if cell.search != "own" else beliefs.most(cell.steps)
    belief, probes, feared = beliefs.begun(cell.steps, weights(cell, culprit, chance)), 0, beliefs.FEARED
    if cell.search == "known":
        feared = exactly(rescue), exactly(spoil)
        belief = msgspec.structs.replace(belief, rescue=feared[0], spoil=feared[1])
    while beliefs.settled(belief, CONFIDENCE if cell.search != "known" else 1.0) is None and probes < budget:
        for cut in beliefs.following(belief, feared=feared):
            belief = beliefs.told(belief, cut, judge(cut), certain=cut == cell.steps)
        probes += 1
    chances = beliefs.posterior(belief)
    found = beliefs.likeliest(chances)
    return Trial(found == culprit, chances[found], chances[found] >= CONFIDENCE, probes)


def weights(cell: Cell, culprit: int, chance: random.Random) -> list[float] | None:
    """What bisect thinks of each step before the first probe."""
    if cell.prior == "even":
        return None
    said = culprit if cell.prior == "right" else min(cell.steps, culprit + chance.randint(1, 3))
    return [0.5 / cell.steps + (0.5 if step == said else 0.0) for step in range(1, cell.steps + 1)]


def drawn(rate: Rate, chance: random.Random) -> float:
    return 0.0 if chance.random() < rate.never else chance.betavariate(rate.often, rate.seldom)


def exactly(rate: float) -> Rate:
    """A rate that is known beforehand."""
    return Rate(0.0, rate * 1e6, (1 - rate) * 1e6) if rate else Rate(1.0, 1.0, 1.0)


def cells(steps: Sequence[int]) -> Iterator[Cell]:
    for n in steps:
        for rescue in RESCUES:
            yield from (Cell(n, rescue, 0.0, search) for search in ("once", "budget", "own"))
        yield from (Cell(n, 0.2, 0.05, search) for search in ("budget", "own"))
        yield from (Cell(n, None, None, search) for search in ("budget", "own"))


def run(cell: Cell, trials: int, seed: int) -> list[Trial]:
    return [trial(cell, random.Random(f"{seed} {cell} {number}")) for number in range(trials)]


def row(cell: Cell, made: Sequence[Trial]) -> str:
    exact = share([one.right for one in made])
    stated = share([one.right for one in made if one.sure])
    rates = [DRAWN if rate is None else f"{rate:g}" for rate in (cell.rescue, cell.spoil)]
    probes = [one.probes for one in made]
    mean = f"{sum(one.stated for one in made) / len(made):.3f}"
    once = cell.search == "once"
    return " | ".join([
        f"| {cell.steps}", *rates, cell.search, exact, "–" if once else mean,
        "–" if once else f"{sum(one.sure for one in made) / len(made):.2f}", "–" if once else stated,
        f"{sum(probes) / len(probes):.1f}", f"{max(probes)} |",
    ])  # fmt: skip


# What no search can exceed.


def best(steps: int, probes: int, rescue: float) -> float:
    """How often the best of all searches is right: every choice of cuts is tried. Bad outcomes leave only the steps up
    to the cut; good ones make these less likely, each by the factor `rescue`."""

    @cache
    def weight(goods: tuple[int, ...], left: int) -> float:
        if not left or len(goods) == 1:
            return rescue ** min(goods)
        found = 0.0
        for cut in range(1, min(len(goods), steps - 1) + 1):
            good = tuple(count + 1 for count in goods[:cut]) + goods[cut:]
            ways = ((1.0, good), (1 - rescue, goods[:cut]))
            found = max(
                found,
                sum(
                    share * rescue ** min(each) * weight(tuple(count - min(each) for count in each), left - 1)
                    for share, each in ways
                ),
            )
        return found

    return weight((0,) * steps, probes) / steps


def capacity(rescue: float) -> float:
    """Bits that one probe can tell at most, of a Z-channel (Tallini, Al-Bassam and Bose 2002 give the form)."""
    return log2(1 + (1 - rescue) * rescue ** (rescue / (1 - rescue))) if rescue else 1.0


def fano(steps: int, probes: int, rescue: float) -> float:
    """The share that is right at most, if the probes tell all that the channel lets through."""
    told = probes * capacity(rescue)

    def lost(wrong: float) -> float:
        return (entropy(wrong) + wrong * log2(steps - 1)) if wrong else 0.0

    wrong = 0.0
    while wrong < 1 and log2(steps) - lost(wrong) > told:
        wrong += 1e-4
    return 1 - wrong


def entropy(share: float) -> float:
    return -share * log2(share) - (1 - share) * log2(1 - share) if 0 < share < 1 else 0.0


def limits(trials: int, seed: int) -> None:
    print("| n | rescue | probes | bits a probe | at most: Fano | all searches tried | this one, rates known |")
    print("|" + " --- |" * 7)
    for steps in STEPS:
        for rescue in RESCUES[1:]:
            probes = floor(4 * log2(steps))
            exact = f"{best(steps, probes, rescue):.4f}" if steps == 8 else "–"
            print(
                f"| {steps} | {rescue:g} | {probes} | {capacity(rescue):.3f} "
                f"| {fano(steps, probes, rescue):.4f} | {exact} "
                f"| {share([one.right for one in run(Cell(steps, rescue, 0.0, 'known'), trials, seed)])} |",
                flush=True,
            )


def priors(trials: int, seed: int) -> None:
    print("| n | rescue | spoil | prior | exact | sure | of these right | probes |")
    print("|" + " --- |" * 8)
    kept: dict[str, list[Trial]] = {}
    for steps in STEPS:
        for rescue in (0.0, 0.5, None):
            for prior in ("even", "right", "after"):
                cell = Cell(steps, rescue, None if rescue is None else 0.0, "own", prior)
                made = run(cell, trials, seed)
                sure = [one.right for one in made if one.sure]
                rates = [DRAWN if rate is None else f"{rate:g}" for rate in (cell.rescue, cell.spoil)]
                probes = f"{sum(one.probes for one in made) / len(made):.1f}"
                told = [f"{len(sure) / len(made):.2f}", share(sure), probes]
                print("| " + " | ".join([f"{steps}", *rates, prior, share([one.right for one in made]), *told]) + " |")
                if rescue is None:
                    kept.setdefault(prior, []).extend(made)
    for name, made in kept.items():
        print(f"\n{name}: a stated 95 % is right in {share([one.right for one in made if one.sure])}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=2000, help="in each cell")
    parser.add_argument("--steps", type=int, nargs="*", default=STEPS)
    parser.add_argument("--seed", type=int, default=10)
    parser.add_argument("--limit", action="store_true", help="what no search can exceed, and nothing else")
    parser.add_argument("--prior", action="store_true", help="what it does where to look first, and nothing else")
    asked = parser.parse_args()
    if asked.prior:
        priors(asked.trials, asked.seed)
        return
    if asked.limit:
        limits(asked.trials, asked.seed)
        return
    print("| n | rescue | spoil | search | exact | stated on average | sure | of these right | probes | most |")
    print("|" + " --- |" * 10)
    kept: dict[str, list[Trial]] = {}
    for cell in cells(asked.steps):
        made = run(cell, asked.trials, asked.seed)
        print(row(cell, made), flush=True)
        if cell.search != "once":
            kept.setdefault(DRAWN if cell.rescue is None else f"spoil {cell.spoil:g}", []).extend(made)
    for name, made in kept.items():
        print(f"\n{name}: a stated 95 % is right in {share([one.right for one in made if one.sure])}")


if __name__ == "__main__":
    main()
