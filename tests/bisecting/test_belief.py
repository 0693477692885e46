"""The search that repeats probes, alone: what it makes of outcomes, what it asks next, and how often it is right."""

import random
from collections.abc import Sequence
from itertools import product
from math import ceil, log2

import pytest

from lockstep.debugger import belief as beliefs
from lockstep.debugger import noisy
from lockstep.debugger.belief import LOST, RESCUE, SPOIL, Belief, Rate
from lockstep.debugger.cuts import Cut
from lockstep.debugger.search import BAD, GOOD, SKIP, Judged
from lockstep.debugger.verdict import Probe, Told


def seen(last: int, outcomes: Sequence[tuple[int, Judged]]) -> Belief:
    belief = beliefs.begun(last)
    for cut, judged in outcomes:
        belief = beliefs.told(belief, cut, judged)
    return belief


def test_the_posterior_is_what_summing_over_both_rates_gives() -> None:
    """Beside a sum over a fine grid of rates, which knows no Beta function."""
    outcomes: list[tuple[int, Judged]] = [(2, GOOD), (3, BAD), (1, GOOD), (3, GOOD), (1, BAD), (2, GOOD)]
    places = [(number + 0.5) / 400 for number in range(400)]

    def weights(rate: Rate) -> list[tuple[float, float]]:
        beta = [place ** (rate.often - 1) * (1 - place) ** (rate.seldom - 1) for place in places]
        inner = [(place, (1 - rate.never) * each / sum(beta)) for place, each in zip(places, beta, strict=True)]
        return [(0.0, rate.never), *inner]

    def likelihood(k: int) -> float:
        kept = [judged for cut, judged in outcomes if k <= cut]
        left = [judged for cut, judged in outcomes if k > cut]
        rescued = sum(w * r ** kept.count(GOOD) * (1 - r) ** kept.count(BAD) for r, w in weights(RESCUE))
        spoiled = sum(w * s ** left.count(BAD) * (1 - s) ** left.count(GOOD) for s, w in weights(SPOIL))
        return rescued * spoiled

    expected = [likelihood(k) for k in range(5 + 1)]
    found = beliefs.posterior(seen(4, outcomes))
    assert found == pytest.approx([each / sum(expected) for each in expected], rel=1e-3)


def test_probes_come_in_any_order() -> None:
    outcomes: list[tuple[int, Judged]] = [(4, GOOD), (6, BAD), (4, BAD), (2, GOOD)]
    one, other = seen(8, outcomes), seen(8, outcomes[::-1])
    assert one == other


def test_a_good_probe_speaks_against_the_steps_it_kept_and_a_bad_one_more_against_the_others() -> None:
    chances = beliefs.posterior(seen(8, [(4, GOOD)]))
    assert chances[5] > chances[4] > 0
    bad = beliefs.posterior(seen(8, [(4, BAD)]))
    assert bad[4] / bad[5] > chances[5] / chances[4]


def test_what_asked_nothing_anew_is_no_sample() -> None:
    belief = beliefs.told(beliefs.begun(8), 8, BAD, certain=True)
    assert beliefs.posterior(belief)[9] == 0
    belief = beliefs.told(beliefs.begun(8), 8, GOOD, certain=True)
    assert beliefs.posterior(belief)[9] == 1
    assert beliefs.settled(belief, 0.95) == (9, 9)


def test_what_could_not_be_judged_says_nothing() -> None:
    assert beliefs.posterior(seen(8, [(4, SKIP)])) == pytest.approx(beliefs.posterior(beliefs.begun(8)))


def test_steps_between_which_nothing_can_be_judged_are_one_answer() -> None:
    belief = seen(8, [*[(4, SKIP)] * LOST, *[(3, GOOD)] * 12, *[(5, BAD)] * 6])
    assert beliefs.settled(belief, 0.95) == (4, 5)
    assert 4 not in beliefs.following(belief, 3)


def test_a_stretch_that_cannot_be_judged_is_left_behind() -> None:
    belief, tried = beliefs.begun(200), []
    for _ in range(40):
        (cut,) = beliefs.following(belief)
        tried.append(cut)
        belief = beliefs.told(belief, cut, SKIP if cut < 140 else BAD if cut >= 150 else GOOD)
        if beliefs.settled(belief, 0.95):
            break
    assert beliefs.settled(belief, 0.95) == (150, 150)
    assert sum(cut < 140 for cut in tried) <= 12


def test_a_prior_of_the_steps_is_where_it_begins() -> None:
    told = [0.0, 0.0, 8.0, 1.0]
    belief = beliefs.begun(4, told)
    assert beliefs.posterior(belief)[1:5] == pytest.approx([0, 0, 8 / 13.5, 1 / 13.5])
    assert beliefs.following(belief) in ((2,), (3,))
    for wrong in ([1.0], [0.0] * 4, [1, 1, 1, -1]):
        with pytest.raises(ValueError, match="a prior has a weight of at least 0 for each of 4 steps"):
            beliefs.begun(4, wrong)


def test_several_probes_at_once_are_chosen_for_what_they_tell_together() -> None:
    """Two at one cut would tell less than two that part the steps in three."""
    first, second = beliefs.following(beliefs.begun(30), 2)
    assert abs(first - second) >= 3
    assert beliefs.following(beliefs.begun(30), 1) == (first,)
    assert len(beliefs.following(beliefs.begun(30), 4)) == 4


def test_intervals_hold_what_they_say_and_narrow() -> None:
    """P(bad) of the cuts grows from step to step, and an interval of more probes is the smaller one."""
    few, many = (beliefs.bad(seen(4, [(1, GOOD), (2, BAD)] * times)) for times in (2, 20))
    for chances in (few, many):
        assert all(0 <= one.low <= one.mean <= one.high <= 1 for one in chances)
        assert [one.mean for one in chances] == sorted(one.mean for one in chances)
    assert many[2].high - many[2].low < few[2].high - few[2].low
    rescue, spoil = beliefs.rates(seen(4, [(1, GOOD)] * 20 + [(2, BAD), (2, GOOD)] * 20))
    assert rescue.low < 0.5 < rescue.high and rescue.high - rescue.low < 0.35
    assert spoil.mean < 0.05


def searched(culprit: int, last: int, rescue: float, spoil: float, chance: random.Random) -> tuple[int, float, int]:
    """The answer, how likely it says it is, and the probes."""
    belief, probes = beliefs.begun(last), 0
    while beliefs.settled(belief, 0.95) is None and probes < beliefs.most(last):
        (cut,) = beliefs.following(belief)
        kept = cut >= culprit
        bad = cut == last or kept != (chance.random() < (rescue if kept else spoil))
        belief = beliefs.told(belief, cut, BAD if bad else GOOD, certain=cut == last)
        probes += 1
    chances = beliefs.posterior(belief)
    return beliefs.likeliest(chances), max(chances), probes


@pytest.mark.parametrize("last", [1, 2, 3, 8, 16, 33])
def test_in_a_steady_run_every_culprit_is_named_exactly(last: int) -> None:
    spent = 0
    for culprit in range(1, last + 1):
        found, sure, probes = searched(culprit, last, 0.0, 0.0, random.Random(1))
        assert (found, sure >= 0.95) == (culprit, True)
        spent += probes
    assert spent / last <= ceil(log2(last)) + 12


def test_where_every_other_bad_probe_is_rescued_the_answer_is_right() -> None:
    chance = random.Random(10)
    right = 0
    for _, last in product(range(60), (8, 16)):
        culprit = chance.randint(1, last)
        right += searched(culprit, last, 0.5, 0.0, chance)[0] == culprit
    assert right >= 0.93 * 120  # of 2,000 in each cell 99 in 100 are, see docs/benchmarks.md


def test_a_stated_95_percent_is_right_that_often() -> None:
    """Over rates drawn from what the search expects, among them none at all."""
    chance = random.Random(11)

    def drawn(rate: Rate) -> float:
        return 0.0 if chance.random() < rate.never else chance.betavariate(rate.often, rate.seldom)

    stated, right, sums = 0, 0, 0.0
    for _ in range(250):
        culprit = chance.randint(1, 16)
        found, sure, _ = searched(culprit, 16, drawn(RESCUE), drawn(SPOIL), chance)
        sums += sure - (found == culprit)
        if sure >= 0.95:
            stated, right = stated + 1, right + (found == culprit)
    assert stated >= 120
    assert 0.92 <= right / stated <= 0.995
    assert abs(sums / 250) < 0.06  # also what is said where the budget ended it


def test_that_a_step_came_to_the_recorded_state_says_nothing_of_its_later_answers() -> None:
    """A probe that left inside of a step and was good: the culprit is one of the answers after it, of that step too."""
    cuts = [Cut("0", 0), *(Cut(f"{step}.{effect}", step, effect) for step in (1, 3) for effect in (1, 2, 3))]
    search = noisy.over(cuts, beliefs.begun(6), 0.95, 12)
    wanted = next(search)
    with pytest.raises(StopIteration) as ended:
        while True:
            cut = wanted[0].cut
            judged = BAD if cuts.index(cut) >= 2 else GOOD
            told = Told(cut, Probe("", cut.at, judged, "", 1, 0.0, False, reach=cut.step, asked=1))
            wanted = search.send(told)
    assert beliefs.likeliest(beliefs.posterior(ended.value.value.belief)) == 2
