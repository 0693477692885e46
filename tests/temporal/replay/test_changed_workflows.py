"""A workflow's run, replayed by other code: the first command that differs is told, with both beside each other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import replayed_workflows as flows
from scripted_workflow import scripted

import lockstep
from lockstep.errors import Code, Difference


@pytest.fixture
def store(tmp_path: Path) -> Path:
    store = tmp_path / "store.db"
    with scripted(store, flows.Orders) as script:
        script.start(4711)
        script.resolve(1, {"id": 4711})
        script.fire(1)
        script.resolve(2, 4000)
        script.resolve(3, -400)
    return store


def replayed(store: Path, target: Any, **options: Any) -> lockstep.Replay:
    done = lockstep.replay("temporal/order-7", target, store=store, **options)
    assert not done.identical
    assert done.divergence is not None
    return done


def differs(store: Path, target: Any, **options: Any) -> Difference:
    found = replayed(store, target, **options).report.difference
    assert found is not None
    return found


CHANGES: list[tuple[Any, Code, int, str, str, str]] = [
    (flows.OtherArgument, Code.REQUEST, 2, "arguments[1].number", "1881", "1882"),
    (flows.OtherTimeout, Code.REQUEST, 0, "start_to_close_timeout", '"20s"', '"20.001s"'),
    (flows.OtherRetries, Code.REQUEST, 0, "retry_policy", "(absent)", '{"initial_interval": "1s"'),
    (flows.OtherResult, Code.END, 4, "result.total", "3600", "3601"),
    (flows.OtherOrder, Code.ORDER, 2, "arguments[0]", "4711", "-4711"),
    (flows.LongerTimer, Code.REQUEST, 1, "start_to_fire_timeout", '"3s"', '"4s"'),
    (flows.OtherActivity, Code.REQUEST, 0, "", "activity look_up(4711)", "activity look_up_v2(4711)"),
    (flows.LocalNow, Code.REQUEST, 0, "", "activity look_up(4711)", "local_activity look_up(4711)"),
    (flows.OneMore, Code.EXTRA, 2, "", "activity charge(4711,", "activity audit(4711)"),
    (flows.OneLess, Code.MISSING, 2, "", "activity charge(-4711,", ""),
    (flows.NoTimer, Code.REQUEST, 1, "", "timer 3s", "activity charge(4711,"),
    (flows.EndsEarly, Code.END, 1, "", "timer 3s", 'result {"order": 4711, "total": 0}'),
    (flows.FailsNow, Code.END, 4, "", 'result {"order": 4711, "total": 3600}', "failure Closed: no receipt today"),
    (flows.Raises, Code.END, 4, "", "result", "failed: IndexError: list index out of range"),
    (flows.Exits, Code.END, 4, "", "result", "failed: SystemExit(0)"),
]


@pytest.mark.parametrize(("target", "code", "step", "path", "was", "now"), CHANGES, ids=lambda each: str(each)[:40])
def test_a_change_is_told_where_it_shows(
    store: Path, target: Any, code: Code, step: int, path: str, was: str, now: str
) -> None:
    found = differs(store, target)
    assert (found.code, found.step, found.path) == (code, step, path)
    assert found.expected.startswith(was)
    assert found.actual.startswith(now)
    assert bool(found.actual) == bool(now)
    assert found.same_until == (step - 1 if step else None)


def test_both_commands_stand_side_by_side(store: Path) -> None:
    text = replayed(store, flows.OtherArgument).divergence
    assert text is not None
    lines = text.splitlines()
    assert lines[0] == "✗ diverged at step 2  LS101 activity: an argument differs"
    assert "activity charge   arguments[1].number" in text
    (beside,) = (line for line in lines if "≠" in line)
    left, right = beside.split(" │ ")
    assert left.strip().startswith("≠ activity charge(4711, ")
    assert right.startswith("activity charge(4711, ")
    assert (
        lines[lines.index(beside) + 1].count("activity charge(-4711,") == 2
    )  # the next command, the same on both sides


@pytest.mark.parametrize(
    ("target", "function"),
    [
        (flows.OtherArgument, "both"),
        (flows.OtherTimeout, "OtherTimeout.found"),
        (flows.LongerTimer, "LongerTimer.wait"),
        (flows.Raises, "Raises.receipt"),
        (flows.OtherResult, "OtherResult.run"),
    ],
)
def test_the_line_of_the_workflow_is_told(store: Path, target: Any, function: str) -> None:
    found = differs(store, target)
    assert found.source.endswith(f" in {function}")
    file, _, number = found.source.removesuffix(f" in {function}").rpartition(":")
    assert file.endswith("replayed_workflows.py")
    source = Path(flows.__file__).read_text().splitlines()
    assert any(f"def {function.rpartition('.')[2]}(" in line for line in source[int(number) - 8 : int(number) + 2])


def test_what_the_code_raises_is_not_logged_beside_it(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = differs(store, flows.Raises)
    assert "which fails the workflow task" in found.reason
    assert capsys.readouterr().err == ""


def test_code_that_comes_to_no_stop_ends_the_replay(store: Path) -> None:
    found = differs(store, flows.NeverStops, deadline=0.3)
    assert found.code is Code.STUCK
    assert found.source.endswith(" in NeverStops.receipt")


def test_what_fails_the_workflow_task_is_told_with_its_cause(store: Path) -> None:
    found = differs(store, flows.WantsText)
    assert found.actual.startswith("failed: RuntimeError: Failed decoding arguments: ")
    assert "value was <class 'int'>" in found.actual


def test_a_chain_that_goes_on_otherwise_is_told(tmp_path: Path) -> None:
    store = tmp_path / "rounds.db"
    with scripted(store, flows.Rounds) as script:
        for left in (2, 1, 0):
            script.start(left)
            script.resolve(1, {})
    found = differs(store, flows.RoundsByTwo)
    assert (found.code, found.step, found.path) == (Code.END, 1, "arguments[0]")
    assert (found.expected, found.actual) == ("1", "0")


def test_only_the_turn_that_is_asked_for_can_differ(tmp_path: Path) -> None:
    store = tmp_path / "rounds.db"
    with scripted(store, flows.Rounds) as script:
        for left in (2, 1, 0):
            script.start(left)
            script.resolve(1, {})
    done = lockstep.replay("temporal/order-7", flows.RoundsByTwo, store=store, turn=3)
    assert done.identical
    found = differs(store, flows.RoundsByTwo, turn=2)
    assert found.step == 3
