"""The search alone: every length up to 70, every culprit, and probes that cannot be judged."""

import random
from collections.abc import Callable
from math import ceil, log2

import pytest

from lockstep.debugger import search
from lockstep.debugger.search import BAD, GOOD, PATIENCE, SKIP, Judged, Search

LENGTHS = range(1, 71)


def run(begun: Search, judge: Callable[[int], Judged]) -> tuple[Search, list[int]]:
    """Drives a search to its end: what it knows then, and what it probed."""
    probed: list[int] = []
    while (cut := search.following(begun)) is not None:
        probed.append(cut)
        begun = search.told(begun, cut, judge(cut))
    return begun, probed


def first_bad(at: int) -> Callable[[int], Judged]:
    return lambda cut: BAD if cut >= at else GOOD


@pytest.mark.parametrize("last", LENGTHS)
def test_every_culprit_is_found_within_its_bound(last: int) -> None:
    for culprit in range(1, last + 1):
        ended, probed = run(search.whole(last), first_bad(culprit))
        assert ended.found == culprit
        assert len(probed) <= ceil(log2(last)) + 1
        assert len(set(probed)) == len(probed)


@pytest.mark.parametrize("last", LENGTHS)
def test_a_run_that_is_bad_with_new_answers_only_is_told_from_one_whose_first_answer_is_bad(last: int) -> None:
    ended, probed = run(search.whole(last), first_bad(0))
    assert (ended.found, probed[-1]) == (0, 0)
    assert len(probed) <= ceil(log2(last)) + 1


@pytest.mark.parametrize("last", LENGTHS[1:])
def test_a_run_that_is_good_with_all_recorded_answers_is_told_from_one_whose_last_answer_is_bad(last: int) -> None:
    ended, probed = run(search.whole(last), first_bad(last + 1))
    assert (ended.found, probed[-1]) == (search.beyond(ended), last)
    assert len(probed) <= ceil(log2(last)) + 1


@pytest.mark.parametrize("last", LENGTHS)
def test_what_is_left_is_never_more_than_said(last: int) -> None:
    for culprit in range(last + 2):
        known, said = search.whole(last), search.left(search.whole(last))
        while (cut := search.following(known)) is not None:
            known = search.told(known, cut, first_bad(culprit)(cut))
            assert search.left(known) <= said - 1
            said = search.left(known)


@pytest.mark.parametrize("last", LENGTHS)
def test_with_probes_that_cannot_be_judged_the_range_holds_the_culprit_and_nothing_that_was_not_tried(
    last: int,
) -> None:
    chance = random.Random(last)
    for culprit in range(1, last + 1):
        for share in (0.1, 0.5, 0.9):
            lost = {cut for cut in range(last + 1) if chance.random() < share}

            def judge(cut: int, lost: set[int] = lost, culprit: int = culprit) -> Judged:
                return SKIP if cut in lost else first_bad(culprit)(cut)

            ended, probed = run(search.whole(last), judge)
            assert ended.good < culprit <= ended.bad
            assert len(set(probed)) == len(probed)
            untried = set(range(ended.good + 1, ended.bad)) - ended.skipped
            assert not untried or ended.in_row == PATIENCE
            assert ended.skipped <= lost


@pytest.mark.parametrize("last", LENGTHS)
def test_one_probe_that_cannot_be_judged_costs_no_more_than_a_neighbour_unless_it_is_at_the_culprit(
    last: int,
) -> None:
    for culprit in range(1, last + 1):
        for lost in range(last + 1):

            def judge(cut: int, lost: int = lost, culprit: int = culprit) -> Judged:
                return SKIP if cut == lost else first_bad(culprit)(cut)

            ended, probed = run(search.whole(last), judge)
            if lost in (culprit - 1, culprit):
                assert ended.good < culprit <= ended.bad <= ended.good + 2
            else:
                assert ended.found == culprit
            assert len(probed) <= ceil(log2(last)) + 3


def test_a_stretch_that_cannot_be_judged_is_left_behind_within_a_few_probes() -> None:
    ended, probed = run(search.whole(200), lambda cut: SKIP if 60 < cut < 140 else first_bad(150)(cut))
    assert ended.found == 150
    assert len(probed) <= ceil(log2(200)) + 1 + 2 * PATIENCE


def test_a_search_in_which_nothing_can_be_judged_gives_up_and_knows_nothing() -> None:
    ended, probed = run(search.whole(200), lambda cut: SKIP)
    assert (ended.good, ended.bad, len(probed)) == (-1, 201, PATIENCE)


def test_verdicts_of_cuts_that_are_not_in_question_are_refused() -> None:
    known = search.told(search.whole(8), 4, GOOD)
    with pytest.raises(ValueError, match="cut 3 is not between 4 and 9"):
        search.told(known, 3, BAD)


def cheaply(last: int, culprit: int) -> list[int]:
    """The probes of a search that prefers late cuts, each of which is judged."""
    known, left, made = search.whole(last), search.budget(last), []
    while (cut := search.cheapest(known, left)) is not None:
        made.append(cut)
        left -= 1
        known = search.told(known, cut, BAD if cut >= culprit else GOOD)
    assert known.found == culprit
    return made


@pytest.mark.parametrize("last", [1, 2, 3, 5, 8, 31, 62, 63, 64, 65, 100])
def test_a_search_that_prefers_late_cuts_takes_no_more_probes_than_it_may(last: int) -> None:
    for culprit in range(last + 2):
        if last > 1 or 0 <= culprit <= 1:
            assert len(cheaply(last, culprit)) <= search.budget(last) + (last == 1)


def test_late_cuts_cost_less_in_all() -> None:
    def cost(cuts: list[int]) -> int:
        return sum(64 - cut for cut in cuts)

    def halving(culprit: int) -> list[int]:
        known, made = search.whole(64), []
        while (cut := search.following(known)) is not None:
            made.append(cut)
            known = search.told(known, cut, BAD if cut >= culprit else GOOD)
        return made

    for culprit in (1, 32, 64):
        assert cost(cheaply(64, culprit)) < cost(halving(culprit))
