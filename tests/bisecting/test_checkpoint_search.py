"""The search over the checkpoints of a framework's run: no more probes than any other search."""

import random
from collections.abc import Sequence
from itertools import cycle

import pytest

from lockstep.debugger import bisect as bisects
from lockstep.debugger import search
from lockstep.debugger.cuts import Cut
from lockstep.debugger.search import BAD, GOOD
from lockstep.debugger.verdict import Probe, Told

LASTS = [2, 3, 8, 16, 17, 52, 63, 64, 200]


@pytest.mark.parametrize("last", LASTS)
def test_it_takes_no_more_probes_than_a_search_that_halves(last: int) -> None:
    """However far its states are the recorded ones, as long as its answers are others."""
    for culprit in range(1, last + 1):
        for seed in range(6):
            chance = random.Random(f"{last} {culprit} {seed}")
            parts = chance.randint(0, culprit - 1)
            found, probes = _searched(
                last, culprit, [parts] if seed > 2 else [chance.randint(0, culprit - 1) for _ in range(5)]
            )
            assert found == culprit
            assert probes <= search.budget(last)


@pytest.mark.parametrize("last", LASTS)
def test_of_a_program_that_does_again_what_it_did_the_first_other_answer_is_found_in_four(last: int) -> None:
    for culprit in range(1, last + 1):
        found, probes = _searched(last, culprit, [culprit - 1], again=True)
        assert found == culprit
        assert probes <= min(search.budget(last), 4)


@pytest.mark.parametrize("last", LASTS)
def test_where_it_does_only_some_of_it_again_that_is_two_probes_more_at_most(last: int) -> None:
    for culprit in range(1, last + 1):
        for seed in range(6):
            parts = random.Random(f"{last} {culprit} {seed}").randint(0, culprit - 1)
            found, probes = _searched(last, culprit, [parts], again=True)
            assert found == culprit
            assert probes <= search.budget(last) + 2


def _searched(
    last: int, culprit: int, parts: Sequence[int], *, again: bool = False
) -> tuple[int | None, int]:  # fmt: skip
    """`parts`: where the probes, one after another, go another way by themselves, if not before."""
    cuts = [Cut(str(number), number) for number in range(last + 1)]
    timeline = type("Timeline", (), {"steps": [type("Step", (), {"effects": (1,)})()]})()
    course = bisects._over_checkpoints(timeline, cuts, search.whole(last))
    (wanted,), probes, going = next(course), 0, cycle(parts)
    try:
        while True:
            probes += 1
            at = wanted.cut.step
            judged, reach = (BAD, last) if at >= culprit else (GOOD, max(at, next(going)))
            told = Probe("run@b", str(at), judged, "", 1, 0.0, False, reach=reach, asked=1, again=again)
            (wanted,) = course.send(Told(wanted.cut, told))
    except StopIteration as ended:
        return ended.value.known.found, probes
