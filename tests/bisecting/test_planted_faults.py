"""A small sample of the trials of `bench/planted`: all is seeded, so that it comes out the same each time."""

from pathlib import Path

import pytest
from bench.planted import faults, trial
from bench.planted.agents import Plain
from bench.planted.framed import Framed
from bench.planted.provider import Dice
from bench.planted.trial import BUDGET, ONCE, Trial


def searched(folder: Path, steps: int, trials: int, dice: Dice, way: str) -> list[Trial]:
    agent = Plain()
    found = []
    for number in range(trials):
        bad = trial.planted(agent, steps, number, str(folder / f"{number}.db"))
        found += trial.searched(agent, bad, dice, [way])
    return found


@pytest.mark.parametrize(("steps", "trials"), [(8, 10), (16, 5)])
def test_where_no_probe_ends_well_each_fault_is_named_in_as_many_probes_as_halving_takes(
    steps: int, trials: int, tmp_path: Path
) -> None:
    found = searched(tmp_path, steps, trials, Dice(), ONCE)
    assert {one.kind for one in found} == {*faults.KINDS}
    assert len({one.at for one in found}) >= 4
    assert [one.right for one in found] == [True] * trials
    assert max(one.probes for one in found) <= trial.enough(steps)


def test_where_every_other_probe_ends_well_nearly_all_are_named_all_the_same(tmp_path: Path) -> None:
    """Taken at their word, probes of such runs name the fault in one of three."""
    found = searched(tmp_path, 8, 6, Dice(rescue=0.5), BUDGET)
    assert sum(one.right for one in found) >= 5
    assert all(one.right for one in found if one.sure)
    assert max(one.probes for one in found) <= trial.budget(8)


def test_a_probe_that_breaks_down_is_never_a_culprit(tmp_path: Path) -> None:
    """What is named is what was planted; where too many break down, nothing is."""
    found = searched(tmp_path, 8, 8, Dice(breaks=0.3), ONCE)
    assert sum(one.broken for one in found) >= 8
    named = [one for one in found if one.verdict == "culprit"]
    assert named
    assert all(one.right for one in named)
    assert all(one.verdict == "ambiguous" for one in found if one not in named)


def test_each_kind_is_named_where_the_model_says_what_comes_next(tmp_path: Path) -> None:
    """The agent that asks its model and its tools over loopback."""
    assert [one.right for one in trial.each_kind(Framed("plain-http"), 3, str(tmp_path))] == [True] * len(faults.KINDS)
