"""However a program goes on where its answers are new, a bisect takes no more probes than it says."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache
from math import ceil, log2
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import workflow_runs

from lockstep.debugger import bisect, cuts, search
from lockstep.debugger.search import BAD, GOOD
from lockstep.debugger.verdict import Located, Probe, Told
from lockstep.log.store import open_store
from lockstep.log.timeline import Timeline

# How far a probe that left at a step is the recorded run again: at most up to where its answers could be the same.
type Reach = Callable[[int, int, random.Random], int]


@cache
def workflow(answers: int) -> Timeline:
    """A workflow that asks one activity after the other."""
    with TemporaryDirectory() as folder, open_store(str(Path(folder) / "store.db"), create=True) as opened:
        made = workflow_runs.opened(opened)
        turn = made.turn("Forty", answers)
        made.step("start", "", ["start Forty"], ["activity measure(1)"])
        for number in range(1, answers + 1):
            asked = made.asks("activity", "measure", number)
            made.answers(asked, number)
            made.step("activity", "measure", ["activity measure answered"], [f"activity measure({number + 1})"])
        made.end(turn, 0)
        timeline = Timeline(opened.run(workflow_runs.RUN))
        assert timeline.is_native and len(timeline.steps) == answers + 1
        cuts.of_run(timeline)  # all of it is read while the store is there
        return timeline


def found(answers: int, culprit: int, reach: Reach, chance: random.Random) -> tuple[Located, list[int]]:
    """Bisects: a probe is bad from the culprit on. Past the last answer: the recording cannot be had again."""
    timeline = workflow(answers)
    places = _places(answers)
    searching = bisect._over_checkpoints(timeline, places, search.whole(len(places) - 1))
    tried: list[int] = []
    try:
        wanted = next(searching)
        while True:
            cut = wanted[0].cut
            at = cut.step
            tried.append(at)
            bad = at >= culprit
            reached = reach(at, answers if bad else min(culprit - 1, answers), chance)
            probe = Probe(
                "", cut.at, BAD if bad else GOOD, "", answers - at, 0.0, False, reach=reached, asked=answers - at
            )
            wanted = searching.send(Told(cut, probe))
    except StopIteration as ended:
        return ended.value, tried


@cache
def _places(answers: int) -> list[cuts.Cut]:
    return [cuts.Cut(str(number), number) for number in range(answers + 1)]


def steady(at: int, most: int, chance: random.Random) -> int:
    """It is answered as it was, but for the culprit."""
    return most


def anew(at: int, most: int, chance: random.Random) -> int:
    """Every answer is another one."""
    return at


def sometimes(at: int, most: int, chance: random.Random) -> int:
    """Some answers are the recorded ones again."""
    return chance.randint(at, most)


# A program that does only by chance what it did misleads two probes.
@pytest.mark.parametrize(("reach", "misled"), [(steady, 0), (anew, 0), (sometimes, 2)])
def test_a_culprit_is_found_in_no_more_probes_than_the_logarithm_says_and_one(reach: Reach, misled: int) -> None:
    for answers in [*range(1, 41), 63, 64, 65, 100]:
        bound = ceil(log2(answers)) + 1 + misled
        for culprit in range(1, answers + 1):
            located, tried = found(answers, culprit, reach, random.Random(answers * 1000 + culprit))
            assert located.cut is not None and located.cut.step == culprit, (answers, culprit, tried)
            assert len(tried) <= bound and len(set(tried)) == len(tried), (answers, culprit, tried)


@pytest.mark.parametrize(("reach", "misled"), [(steady, 0), (anew, 0), (sometimes, 2)])
def test_a_run_that_is_bad_whatever_is_answered_and_one_that_is_never_bad_again_are_told_in_as_many(
    reach: Reach, misled: int
) -> None:
    for answers in range(2, 41):
        bound = ceil(log2(answers)) + 1 + misled
        for culprit in (0, answers + 1):
            located, tried = found(answers, culprit, reach, random.Random(answers))
            assert located.cut is None and located.known.found == culprit, (answers, culprit, tried)
            assert len(tried) <= bound, (answers, culprit, tried)


def test_every_step_with_an_answer_is_a_place_where_a_probe_may_leave(tmp_path: Path) -> None:
    with open_store(str(tmp_path / "store.db"), create=True) as opened:
        workflow_runs.order(opened)
        # Not the signal, which every probe is given again, nor the beginning of the second execution.
        assert [cut.at for cut in cuts.of_run(Timeline(opened.run(workflow_runs.RUN)))] == ["0", "1", "3", "4", "6"]
