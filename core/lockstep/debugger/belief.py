"""What probes say of a run that is not sure to go the same way twice: a posterior over its steps. Pure.

A probe keeps the recorded answers up to a cut and takes new ones after it, and what is new is a sample. So a probe that
kept the culprit may end well all the same (it was *rescued*), and one that did not may end badly (it was *spoiled*).
How often either happens is not known beforehand, and is learnt together with the place of the culprit:

    k        the first cut that keeps the culprit: 0 is bad without any recorded answer, last + 1 is good with all of
             them. A prior over them is given, or all steps are alike
    rescue   P(good | the culprit is kept), the same for every such probe
    spoil    P(bad | it is not kept), likewise

Both rates have a prior of their own: a point at zero, for what never happens, and a Beta beside it. Given k, the probes
split into those that kept it and those that did not, and each rate is only seen in its own half. So what k makes of
all that was seen is a product of two Beta functions, and nothing is sampled or put on a grid:

    P(seen | k) = E[r^g (1-r)^b] over the probes that kept k  ×  E[s^b (1-s)^g] over those that did not

The next probe is the one that tells most about k: the expected information gain, with the rates integrated out
(Lindley 1956; MacKay, "Information-based objective functions", 1992). It is chosen for a feared rate of rescues and not
for the likely one: a search that trusts its first good probes loses more where they were rescued than one that doubts
them loses where they were not. What is said in the end is by the likely one.

Why a search that means to be sure must cost more than bisection, also where nothing is ever rescued: bisection never
probes a cut twice, and so any outcomes at all fit one culprit. With rescues of one in two, what it sees is what it
would see in a steady run with another culprit; to stop there for the one is to stop there for the other. Repeats tell
them apart, and nothing else does (docs/benchmarks.md has the figures).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import accumulate
from math import ceil, exp, lgamma, log, log2

import msgspec

from lockstep.debugger.search import BAD, GOOD, SKIP, Judged

# Times that a probe at one cut may come to nothing, after which nothing can be known there.
LOST = 2
# Bits that a probe has to tell to be worth making.
TELLING = 1e-6
_GRID = 200  # places from 0 to 1 at which a rate's density is taken
_MASS = 0.95  # of the intervals in which rates are told


class Rate(msgspec.Struct, frozen=True):
    """What is thought of a rate before anything was seen: `never` is the probability that it is zero, otherwise it is
    Beta(`often`, `seldom`)."""

    never: float
    often: float
    seldom: float


# What is likely: rescues are as ordinary as not (a model that is asked again may well find its mistake each second
# time), nearly certain ones are not, since then no bad run could be told from a good one. What fails by itself now and
# then is rarer: of such a run nobody asks for the one bad answer.
RESCUE = Rate(0.2, 2.0, 3.0)
SPOIL = Rate(0.7, 1.0, 6.0)
# What is feared, where the next probe is chosen: rescues of one in two.
FEARED = Rate(0.0, 20.0, 20.0), Rate(0.8, 1.0, 9.0)


class Belief(msgspec.Struct, frozen=True):
    """What is known after some probes.

    bad, good  how many probes at each cut 0 to last were judged so
    lost       how many could not be judged
    prior      of each k from 0 to last + 1; need not sum to one
    """

    bad: tuple[int, ...]
    good: tuple[int, ...]
    lost: tuple[int, ...]
    prior: tuple[float, ...]
    rescue: Rate = RESCUE
    spoil: Rate = SPOIL

    @property
    def last(self) -> int:
        return len(self.bad) - 1


class Chance(msgspec.Struct, frozen=True):
    """How likely something is that happens at a rate, and the interval that holds the rate with probability 0.95."""

    mean: float
    low: float
    high: float


def most(last: int) -> int:
    """How many probes a search over so many steps makes at most where nobody says: twice 4 log2 n, which rescues of one
    in two need."""
    return max(12, 8 * ceil(log2(max(last, 2))))


def begun(last: int, prior: Sequence[float] | None = None) -> Belief:
    """Before the first probe. `prior`: weights of the steps 1 to `last`; None: all are alike.

    That no answer is to blame (it is in the code, or in what was not recorded) is held to be as likely as one more step
    would be, each.
    """
    steps = [1.0] * last if prior is None else [float(weight) for weight in prior]
    if len(steps) != last or any(weight < 0 for weight in steps) or not any(steps):
        raise ValueError(f"a prior has a weight of at least 0 for each of {last} steps, and not only zeros")
    mean = sum(steps) / last
    none = (0,) * (last + 1)
    return Belief(none, none, none, (mean, *steps, mean))


def told(belief: Belief, cut: int, judged: Judged, *, certain: bool = False) -> Belief:
    """With one more probe. `certain`: it asked nothing anew, so that it was no sample and would always go that way."""
    if certain and judged != SKIP:
        kept = [(k <= cut) == (judged == BAD) for k in range(belief.last + 2)]
        left = tuple(weight if fits else 0.0 for weight, fits in zip(belief.prior, kept, strict=True))
        return msgspec.structs.replace(belief, prior=left) if any(left) else belief
    field = {BAD: "bad", GOOD: "good", SKIP: "lost"}[judged]
    counts = list(getattr(belief, field))
    counts[cut] += 1
    return msgspec.structs.replace(belief, **{field: tuple(counts)})


def posterior(belief: Belief) -> tuple[float, ...]:
    """The probability of each k from 0 to last + 1."""
    weights = [
        weight and weight * _marginal(belief.rescue, kept_good, kept_bad) * _marginal(belief.spoil, out_bad, out_good)
        for weight, (kept_good, kept_bad, out_bad, out_good) in zip(belief.prior, _split(belief), strict=True)
    ]
    total = sum(weights)
    return tuple(weight / total for weight in weights)


def likeliest(chances: Sequence[float]) -> int:
    """The k that is most likely, the first of several."""
    return max(range(len(chances)), key=lambda k: chances[k])


def span(chances: Sequence[float], confidence: float) -> tuple[int, int]:
    """The shortest stretch of k, both ends included, that holds the culprit with that probability."""
    sums = [0.0, *accumulate(chances)]
    wide = len(chances)
    for width in range(1, wide + 1):
        first = max(range(wide - width + 1), key=lambda at: sums[at + width] - sums[at])
        if sums[first + width] - sums[first] >= confidence - 1e-12:
            return first, first + width - 1
    return 0, wide - 1


def settled(belief: Belief, confidence: float) -> tuple[int, int] | None:
    """Where the search has nothing more to find: the k that are known with that confidence, both ends included. Several
    are one answer where the cuts between them cannot be judged. None while it is not known."""
    chances = posterior(belief)
    at = 0
    while at < len(chances):
        end = at
        while end <= belief.last and belief.lost[end] >= LOST:
            end += 1
        if sum(chances[at : end + 1]) >= confidence:
            return at, end
        at = end + 1
    return None


def _after(rate: Rate, times: int, others: int) -> Rate:
    seen = _marginal(rate, times, others)
    never = rate.never / seen if seen and not times else 0.0
    return Rate(never, rate.often + times, rate.seldom + others)


def bad(belief: Belief) -> tuple[Chance, ...]:
    """For each cut from 0 to last: how likely a probe that leaves there is bad."""
    # The mixture moves by one k from cut to cut: from those that are left out to those that are kept.
    mixed = [0.0] * (_GRID + 1)
    pairs = list(zip(posterior(belief), _densities(belief), strict=True))
    for chance, (_, out) in pairs:
        mixed = [sum_ + chance * each for sum_, each in zip(mixed, out, strict=True)]
    found: list[Chance] = []
    for chance, (kept, out) in pairs[:-1]:
        mixed = [max(0.0, sum_ + chance * (a - b)) for sum_, a, b in zip(mixed, kept, out, strict=True)]
        found.append(_told(mixed))
    return tuple(found)


def rates(belief: Belief) -> tuple[Chance, Chance]:
    """Of rescues and of spoiled probes, whichever answer is to blame."""
    chances = posterior(belief)
    kept, out = zip(*_densities(belief), strict=True)
    mixed = [
        [sum(chance * each[k][at] for k, chance in enumerate(chances)) for at in range(_GRID + 1)]
        for each in (kept, out)
    ]
    return _told(mixed[0][::-1]), _told(mixed[1])


def _densities(belief: Belief) -> Iterator[tuple[Sequence[float], Sequence[float]]]:
    """For each k the distribution of P(bad) over a grid from 0 to 1: of probes that kept it, and that did not."""
    for kept_good, kept_bad, out_bad, out_good in _split(belief):
        yield _density(belief.rescue, kept_good, kept_bad)[::-1], _density(belief.spoil, out_bad, out_good)


@lru_cache(maxsize=1 << 12)
def _density(rate: Rate, times: int, others: int) -> tuple[float, ...]:
    after = _after(rate, times, others)
    scale = _log_beta(after.often, after.seldom)
    inner = [
        exp((after.often - 1) * log(at / _GRID) + (after.seldom - 1) * log(1 - at / _GRID) - scale)
        for at in range(1, _GRID)
    ]
    total = sum(inner)
    return after.never, *((1 - after.never) * each / total for each in inner), 0.0


def _told(density: Sequence[float]) -> Chance:
    total = sum(density)
    sums = list(accumulate(density))
    low = next(at for at, up_to in enumerate(sums) if up_to > total * (1 - _MASS) / 2)
    high = next(at for at, up_to in enumerate(sums) if up_to >= total * (1 + _MASS) / 2 - 1e-12)
    return Chance(sum(at * each for at, each in enumerate(density)) / _GRID / total, low / _GRID, high / _GRID)


# Which probe is next.


def following(
    belief: Belief, count: int = 1, feared: tuple[Rate, Rate] = FEARED, under_way: Sequence[int] = ()
) -> tuple[int, ...]:
    """The cuts of the `count` probes that tell most when made at once, the most telling first; fewer, or none, where no
    more of them would tell anything. One cut may be named more than once. `feared`: rescues and spoiled probes for
    which they are chosen; `under_way`: cuts of probes whose outcomes are not known yet."""
    chosen: list[int] = []
    judgeable = _judgeable(belief)
    worlds = [(1.0, msgspec.structs.replace(belief, rescue=feared[0], spoil=feared[1]))]
    for cut in under_way:
        worlds = [each for weight, world in worlds for each in _outcomes(weight, world, cut)]
    while len(chosen) < count:
        gains = [0.0] * (belief.last + 1)
        for weight, world in worlds:
            for cut, gain in enumerate(_gains(world)):
                gains[cut] += weight * gain
        worth = [gain * share for gain, share in zip(gains, judgeable, strict=True)]
        # Of two that tell the same the later one, which asks less.
        best = max(range(belief.last + 1), key=lambda cut: (round(worth[cut], 9), cut))
        if worth[best] < TELLING:
            break
        chosen.append(best)
        if len(chosen) < count:
            worlds = [each for weight, world in worlds for each in _outcomes(weight, world, best)]
    return tuple(chosen)


def _judgeable(belief: Belief) -> list[float]:
    """How likely a probe at each cut can be judged. What stopped one (a refused call, a crash) is likely to stop its
    neighbours, and less so what is further away than the stretch is long."""
    if not any(belief.lost):
        return [1.0] * (belief.last + 1)
    tried = [cut for cut in range(belief.last + 1) if belief.lost[cut] or belief.bad[cut] or belief.good[cut]]
    failed = [not belief.bad[cut] and not belief.good[cut] for cut in tried]
    found: list[float] = []
    for cut in range(belief.last + 1):
        nearest = min(range(len(tried)), key=lambda at: (abs(tried[at] - cut), not failed[at]))
        low, high = nearest, nearest
        while low > 0 and failed[low - 1]:
            low -= 1
        while high + 1 < len(tried) and failed[high + 1]:
            high += 1
        lost = sum(belief.lost[at] for at in tried[low : high + 1]) if failed[nearest] else belief.lost[tried[nearest]]
        away = abs(tried[nearest] - cut) + 0.5
        within = tried[low] <= cut <= tried[high] if failed[nearest] else False
        share = away / (away + lost) if failed[nearest] or tried[nearest] == cut else 1.0
        found.append(0.0 if belief.lost[cut] >= LOST else share / (1 + lost) if within else share)
    return found


def _outcomes(weight: float, belief: Belief, cut: int) -> Iterator[tuple[float, Belief]]:
    bad = _expected(belief, cut)
    yield weight * bad, told(belief, cut, BAD)
    yield weight * (1 - bad), told(belief, cut, GOOD)


def _expected(belief: Belief, cut: int) -> float:
    chances = posterior(belief)
    rates = list(_rates(belief))
    return sum(chance * rates[k][0 if k <= cut else 1] for k, chance in enumerate(chances))


def _gains(belief: Belief) -> list[float]:
    """Bits that a probe at each cut is expected to tell about k."""
    chances = posterior(belief)
    kept = [(0.0, 0.0)]
    left = [(0.0, 0.0)]
    for chance, (held, out) in zip(chances, _rates(belief), strict=True):
        kept.append((kept[-1][0] + chance * held, kept[-1][1] + chance * _entropy(held)))
        left.append((left[-1][0] + chance * out, left[-1][1] + chance * _entropy(out)))
    rest, doubt = left[-1]
    return [
        _entropy(kept[cut + 1][0] + rest - left[cut + 1][0]) - kept[cut + 1][1] - (doubt - left[cut + 1][1])
        for cut in range(belief.last + 1)
    ]


def _entropy(chance: float) -> float:
    return -chance * log2(chance) - (1 - chance) * log2(1 - chance) if 0.0 < chance < 1.0 else 0.0


def _rates(belief: Belief) -> Iterator[tuple[float, float]]:
    """For each k how likely it is that the next probe is bad: one that keeps the culprit, and one that does not."""
    before: tuple[int, ...] = ()
    found = 0.0, 0.0
    for counts in _split(belief):
        if counts != before:
            kept_good, kept_bad, out_bad, out_good = before = counts
            found = 1 - _mean(belief.rescue, kept_good, kept_bad), _mean(belief.spoil, out_bad, out_good)
        yield found


def _split(belief: Belief) -> Iterator[tuple[int, int, int, int]]:
    """For each k: the good and the bad probes that kept the culprit, the bad and the good ones that did not."""
    good, bad = sum(belief.good), sum(belief.bad)
    kept_good, kept_bad = good, bad
    yield kept_good, kept_bad, 0, 0
    for more_good, more_bad in zip(belief.good, belief.bad, strict=True):
        kept_good, kept_bad = kept_good - more_good, kept_bad - more_bad
        yield kept_good, kept_bad, bad - kept_bad, good - kept_good


@lru_cache(maxsize=1 << 16)
def _marginal(rate: Rate, times: int, others: int) -> float:
    """How likely it was that it happened so many times and did not so many others."""
    often, seldom = rate.often, rate.seldom
    beta = _log_beta(often + times, seldom + others) - _log_beta(often, seldom)
    return (rate.never if not times else 0.0) + (1 - rate.never) * exp(beta)


def _mean(rate: Rate, times: int, others: int) -> float:
    """The rate that is expected after that."""
    seen = _marginal(rate, times, others)
    return _marginal(rate, times + 1, others) / seen if seen else 0.0


def _log_beta(a: float, b: float) -> float:
    return lgamma(a) + lgamma(b) - lgamma(a + b)
