"""Bisect names the answer that made a workflow's run bad, without a server."""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
import sys
from collections.abc import Mapping, Sequence
from math import ceil, log2
from pathlib import Path
from typing import Any

import measuring
import pytest
import searched_workflows as searched
from scripted_workflow import resolved, scripted
from xor_codec import Xor, converter

import lockstep
from lockstep.debugger import render_preview
from lockstep.debugger.lines import plain
from lockstep.debugger.preview import preview
from lockstep.debugger.verdict import Verdict
from lockstep.errors import TargetError
from lockstep.log.store import open_store
from lockstep.log.timeline import Timeline
from lockstep.session.policy import Policy
from lockstep_temporal import history

FORTY = 40
MEASURING = [measuring.Measuring, measuring.measure]
BUYING = [searched.Buying, searched.look, searched.pay]


@pytest.fixture(autouse=True)
def _nothing_wrong() -> None:
    for done in (measuring.WRONG, measuring.DONE, searched.WRONG, searched.DONE):
        done.clear()


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


def measured(store: Path, count: int, wrong: Mapping[int, int], name: str = "measuring") -> str:
    """A run in which some measurements were answered with another number than their own."""
    with scripted(store, MEASURING, name) as script:
        script.start(count)
        for number in range(1, count + 1):
            script.resolve(number, wrong.get(number, number))
    return f"temporal/{name}"


def is_low(run: Any) -> bool:
    return run.result < 0


def bisect(store: Path, run: str, **options: Any) -> Verdict:
    given = {"bad": is_low, "live": ["measure"], **options}
    return lockstep.bisect(run, MEASURING, store=str(store), **given)


@pytest.mark.parametrize("culprit", [1, 17, FORTY])
def test_a_planted_bad_result_of_forty_is_found_in_seven_probes_at_most(store: Path, culprit: int) -> None:
    run = measured(store, FORTY, {culprit: measuring.BAD})
    found = bisect(store, run)
    assert (found.verdict, found.step, found.effect, found.name) == (
        "culprit", culprit, f"{culprit}.1", "activity measure",
    )  # fmt: skip
    assert found.probes <= 7
    assert found.live_calls == len(measuring.DONE) == sum(FORTY - int(probe.at) for probe in found.tried)
    assert [(change.a, change.b) for change in found.changes] == [(str(measuring.BAD), str(culprit))]
    assert found.edits == (f"{culprit}.1={culprit}",)


def test_any_culprit_of_any_number_of_activities_is_found_within_the_bound(store: Path) -> None:
    chance = random.Random(6)
    for count in (1, 2, 3, 5, 8, 13):
        culprit = chance.randint(1, count)
        run = measured(store, count, {culprit: measuring.BAD}, f"of-{count}")
        found = bisect(store, run)
        assert (found.verdict, found.step) == ("culprit", culprit)
        assert found.probes <= ceil(log2(count)) + 1


def test_probes_are_branches_that_are_kept_and_not_made_again(store: Path) -> None:
    run = measured(store, 8, {3: measuring.BAD})
    first = bisect(store, run)
    calls = len(measuring.DONE)
    again = bisect(store, run)
    assert (again.step, again.probes, again.live_calls) == (3, first.probes, 0)
    assert len(measuring.DONE) == calls and all(probe.found for probe in again.tried)
    assert bisect(store, run, again=True).live_calls == first.live_calls
    with open_store(str(store)) as opened:
        branches = [branch.name for branch in opened.run(run).branches]
    kept = [probe.address.partition("@")[2] for probe in first.tried]
    assert set(kept) <= set(branches)
    # Each is a run like any other.
    for probe in first.tried:
        assert lockstep.replay(probe.address, MEASURING, store=str(store)).identical


def test_a_run_that_is_bad_whatever_is_answered_is_in_the_code(store: Path) -> None:
    run = measured(store, 5, {})
    assert bisect(store, run, bad=lambda seen: seen.result == 15).verdict == "in-the-code"


def test_with_a_good_run_the_answer_that_matters_is_named_and_nothing_is_called(store: Path) -> None:
    bad = measured(store, 12, {2: 3, 5: measuring.BAD, 9: 8}, "bad")
    good = measured(store, 12, {}, "good")
    found = bisect(store, bad, good=good, live=[])
    assert (found.verdict, found.effect, found.other) == ("culprit", "5.1", "temporal/good:5.1")
    assert found.live_calls == 0 and measuring.DONE == []
    assert [(change.a, change.b) for change in found.changes] == [(str(measuring.BAD), "5")]


@pytest.mark.parametrize("pair", [(1, 2), (4, 9), (1, 12)])
def test_a_pair_of_answers_of_which_either_spoils_it_is_found_and_nothing_is_called(
    store: Path, pair: tuple[int, int]
) -> None:
    bad = measured(store, 12, {6: 7, **dict.fromkeys(pair, measuring.BAD)}, "bad")
    good = measured(store, 12, {}, "good")
    found = bisect(store, bad, good=good, shrink=True)
    assert (found.verdict, found.causes, found.minimal) == ("culprit", tuple(f"{at}.1" for at in pair), True)
    assert (found.live_calls, measuring.DONE, found.shrunk) == (0, [], {"": measuring.BAD})
    again = bisect(store, bad, good=good, shrink=True)
    assert again.causes == found.causes and all(probe.found for probe in again.tried)


def test_calls_that_nothing_allows_to_run_have_the_recorded_answers_and_that_is_said(store: Path) -> None:
    run = measured(store, 4, {2: measuring.BAD})
    found = bisect(store, run, live=[])
    assert found.verdict == "ambiguous" and "activity measure" in found.why
    assert measuring.DONE == []


def bought(store: Path, wrong: Sequence[str], name: str = "buying") -> str:
    """A run of `Buying`, in which two of the looks were answered with one workflow task."""
    answers = {thing: "wrong" if thing in wrong else thing for thing in ("lamp", "rug", "sofa")}
    with scripted(store, BUYING, name) as script:
        script.start([*answers])
        script.several(resolved(1, answers["lamp"]), resolved(2, answers["rug"]))
        script.signal("approve", "bob")
        script.resolve(3, answers["sofa"])
        script.fire(1)
        if wrong:
            script.fail(4, "cannot pay")
        else:
            script.resolve(4, "paid")
    return f"temporal/{name}"


@pytest.mark.parametrize(("wrong", "effect"), [("lamp", "1.1"), ("rug", "1.2"), ("sofa", "3.1")])
def test_one_of_the_answers_that_came_together_is_named_by_how_a_workflow_failed(
    store: Path, wrong: str, effect: str
) -> None:
    run = bought(store, [wrong])
    # Without a predicate, bad is what fails again as the recording did.
    found = lockstep.bisect(run, BUYING, live=["look", "pay"], store=str(store))
    assert (found.verdict, found.effect, found.name) == ("culprit", effect, "activity look")


# Says a run is bad whose workflow returned less than nothing.
JUDGE = """
import os, sys
from lockstep.log import address
from lockstep.log.model import Kind
from lockstep.errors import TargetError
from lockstep.log.store import open_store
from lockstep_temporal import history
place = address.parse(os.environ["LOCKSTEP_RUN"])
with open_store(os.environ["LOCKSTEP_STORE"]) as store:
    reader = store.run(place.path, place.branch)
    ends = [seq for seq, event in reader.heads(reader.main) if event.kind is Kind.END]
    sys.exit(reader.body(reader.main, ends[-1]) < 0)
"""


def test_the_command_says_what_it_would_call_before_it_probes_and_how_to_mend_the_culprit(
    store: Path, tmp_path: Path
) -> None:
    run = measured(store, 6, {4: measuring.BAD})
    (tmp_path / "judge.py").write_text(JUDGE)

    def bisect(*more: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "lockstep", "bisect", "--target", "measuring", *more, run]
        places = [str(Path(measuring.__file__).parent), os.environ.get("PYTHONPATH", "")]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, places)), "LOCKSTEP_STORE": str(store)}
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)

    found = bisect("--live", "measure", "--bad", f"{sys.executable} judge.py")
    assert found.returncode == 0, found.stderr
    said = [line.strip() for line in found.stderr.splitlines()]
    assert said[0] == "would call live: activity measure ×6"
    assert said[1] == "✗ culprit  temporal/measuring:4.1  activity measure"
    assert f"its answer  {measuring.BAD}   where a live call says  4" in said
    assert any(line.endswith("lockstep fork temporal/measuring:4 --set 4.1=4 --target measuring") for line in said), (
        found.stderr
    )


def test_where_the_target_has_not_what_would_run_that_is_said(store: Path) -> None:
    run = measured(store, 4, {2: measuring.BAD})
    found = lockstep.bisect(run, measuring.Measuring, bad=is_low, live=["measure"], store=str(store))
    assert found.verdict == "ambiguous"
    reasons = {probe.why.partition(") ")[2] for probe in found.judged("skip")}
    assert reasons == {"would run for real and the target has no activity of that name"}


def test_what_would_be_refused_is_named_with_the_flag_before_anything_runs(store: Path) -> None:
    run = bought(store, [])
    with open_store(str(store)) as opened:
        timeline = Timeline(opened.run(run))
        told = [plain(line).strip() for line in render_preview.preview(preview(timeline, 0, Policy(("look",))))]
    # Neither the signal, which is given again, nor the timer, whose time passes at once.
    assert told == [
        "would call live: activity look ×3",
        "would answer from the record, and refuse what is not there: activity pay   to let it run: --live pay",
    ]


def test_a_history_of_production_is_searched_as_a_recording_is(store: Path) -> None:
    with open_store(str(store), create=True) as opened:
        run = history.imports(opened, measuring.history(FORTY, {23: measuring.BAD}).encode())
    found = bisect(store, run)
    assert (found.verdict, found.effect) == ("culprit", "23.1") and found.probes <= 7


COUNTING = [searched.Counting, searched.look]


def counted(store: Path, wrong: str) -> str:
    """A chain of executions, in which one answer was wrong."""
    with scripted(store, COUNTING, "counting") as script:
        left, found = ["a", "b", "c"], list[str]()
        while True:
            script.start(left, found)
            if not left:
                break
            for number, thing in enumerate((left[0], f"{left[0]} again"), 1):
                found = [*found, "wrong" if thing == wrong else thing]
                script.resolve(number, found[-1])
            left = left[1:]
    return "temporal/counting"


@pytest.mark.parametrize(("wrong", "effect"), [("a", "1.1"), ("b", "4.1"), ("b again", "5.1"), ("c again", "8.1")])
def test_a_culprit_in_an_earlier_execution_of_a_chain_is_found(store: Path, wrong: str, effect: str) -> None:
    run = counted(store, wrong)
    found = lockstep.bisect(
        run, COUNTING, bad=lambda seen: "wrong" in seen.result, live=["look"], store=str(store)
    )  # fmt: skip
    assert (found.verdict, found.effect) == ("culprit", effect), [(one.at, one.why) for one in found.tried]


def test_under_a_running_loop_it_is_awaited(store: Path) -> None:
    run = measured(store, 6, {2: measuring.BAD})

    async def search() -> Verdict:
        return await lockstep.abisect(run, MEASURING, bad=is_low, live=["measure"], store=str(store))

    assert asyncio.run(search()).effect == "2.1"


def test_a_run_that_a_codec_has_encrypted_is_judged_by_what_its_workflow_had(store: Path) -> None:
    with scripted(store, MEASURING, "secret", codec=Xor()) as script:
        script.start(6)
        for number in range(1, 7):
            script.resolve(number, measuring.BAD if number == 4 else number)
    seen: list[tuple[Any, Any]] = []

    def bad(run: Any) -> bool:
        seen.append((run.calls[0].outcome, run.calls[0].request))
        return is_low(run)

    found = bisect(store, "temporal/secret", bad=bad, data_converter=converter())
    assert (found.verdict, found.effect) == ("culprit", "4.1")
    assert set(map(repr, seen)) == {"(1, {'arguments': [1]})"}
    with pytest.raises(TargetError, match="encoded by a codec, and the target has none"):
        bisect(store, "temporal/secret")
    with pytest.raises(TargetError, match="keeps its values encrypted"):
        bisect(store, "temporal/secret", good=measured(store, 6, {}), data_converter=converter())
