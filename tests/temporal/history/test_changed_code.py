"""Changed code against a history: each change is named, with what the SDK's own Replayer says of it beside."""

from pathlib import Path
from typing import Any

import kitchen_sink
import past
import pytest
from kitchen_sink import Steps
from live_server import committed

from lockstep.errors import Code, StoreError, TargetError
from lockstep_temporal.imported import Against
from lockstep_temporal.setup import Setup

ADD = "workflow.execute_activity(add, args=[number, list(done)], start_to_close_timeout=SOON)"

# What is changed; the step, code, field and words of ours; the words of the SDK's Replayer, None where it lets it pass.
CHANGES: dict[str, tuple[list[tuple[str, str]], int, Code, str, str, str | None]] = {
    "an argument": (
        [("args=[number, list(done)]", "args=[number, done[-1:]]")],
        2, Code.REQUEST, "arguments[1][0]", "an argument differs", None,
    ),
    "a timeout": (
        [(ADD, ADD.replace("SOON", "SOON * 2"))],
        0, Code.REQUEST, "start_to_close_timeout", "start_to_close_timeout differs", None,
    ),
    "a timeout that was not there": (
        [(ADD, ADD.replace("=SOON", "=SOON, heartbeat_timeout=SOON"))],
        0, Code.REQUEST, "heartbeat_timeout", "heartbeat_timeout differs", None,
    ),
    "a retry policy": (
        [(ADD, ADD.replace("=SOON", "=SOON, retry_policy=RetryPolicy(maximum_attempts=2)"))],
        0, Code.REQUEST, "retry_policy.maximum_attempts", "retry_policy differs", None,
    ),
    "a task queue": (
        [(ADD, ADD.replace("=SOON", "=SOON, task_queue='other'"))],
        0, Code.REQUEST, "task_queue", "task_queue differs", None,
    ),
    "a result": (
        [("        return done\n", "        return done[1:]\n")],
        5, Code.END, "result[0]", "returned something else", None,
    ),
    "an id": (
        [(ADD, ADD.replace("=SOON", "=SOON, activity_id=f'add-{number}'"))],
        0, Code.REQUEST, "activity_id", "activity_id differs",
        "Activity id of scheduled event '1' does not match activity id of activity command 'add-1'",
    ),
    "the kind of activity": (
        [(ADD, ADD.replace("(add,", "(undo,"))],
        0, Code.REQUEST, "", "activity undo stands where activity add was recorded",
        "Activity type of scheduled event 'add' does not match activity type of activity command 'undo'",
    ),
    "another kind of command": (
        [(ADD, "workflow.sleep(number)")],
        0, Code.REQUEST, "", "timer 1s stands where activity add was recorded",
        "Timer machine does not handle this event: HistoryEvent(id: 5, ActivityTaskScheduled)",
    ),
    "one more command": (
        [("range(1, count + 1)", "range(1, count + 2)")],
        5, Code.END, "", "the workflow goes on here, and returned when this was recorded",
        "Activity machine does not handle this event: HistoryEvent(id: 35, WorkflowExecutionCompleted)",
    ),
    "one command less": (
        [("range(1, count + 1)", "range(1, count)")],
        4, Code.END, "", "the workflow returns here, and went on when this was recorded",
        "Complete workflow machine does not handle this event: HistoryEvent(id: 29, ActivityTaskScheduled)",
    ),
    "how it ends": (
        [("        return done\n", "        raise ApplicationError('no')\n")],
        5, Code.END, "", "the workflow fails here, and returned when this was recorded",
        "Fail workflow machine does not handle this event: HistoryEvent(id: 35, WorkflowExecutionCompleted)",
    ),
    "code that raises": (
        [("        return done\n", "        return done[99]  # type: ignore[return-value]\n")],
        5, Code.END, "", "the workflow's code raised IndexError: list index out of range",
        "the workflow's code raised, which fails the workflow task",
    ),
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_named_whether_the_sdk_lets_it_pass_or_not(change: str, tmp_path: Path, monkeypatch: Any) -> None:
    edits, step, code, path, reason, sdk = CHANGES[change]
    module = past.changed(tmp_path, monkeypatch, f"changed_{list(CHANGES).index(change)}", *edits)
    events = past.events_of(committed("steps"))

    steps = past.steps_of(events)
    looked = Against(Setup(workflows=[module.Steps]), steps, workflow_id="steps")
    found = [looked.differs(number) for number in range(step + 1)]

    assert found[:-1] == [None] * step
    differs = found[-1]
    assert differs is not None
    assert (differs.found.code, differs.found.path) == (code, path)
    assert reason in differs.found.reason
    assert (looked.verdict.told if looked.verdict is not None else None) == sdk


def test_the_order_of_two_that_are_in_flight_is_named(tmp_path: Path, monkeypatch: Any) -> None:
    module = past.changed(
        tmp_path, monkeypatch, "other_order",
        ("for item in order.items)", "for item in reversed(order.items))"),
    )  # fmt: skip
    looked, differs = past.against(past.events_of(committed("kitchen_sink.1")), module)
    assert differs is not None
    assert differs.found.code is Code.ORDER
    assert differs.found.reason.startswith("activity price")
    assert looked.verdict is None  # both are of one type, so the SDK's Replayer lets it pass


@pytest.mark.parametrize("name", past.COMMITTED)
def test_the_code_of_then_is_the_same(name: str) -> None:
    looked, differs = past.against(past.events_of(committed(name)))
    assert differs is None
    assert looked.verdict is None


def test_a_local_activity_of_another_type_is_named(tmp_path: Path, monkeypatch: Any) -> None:
    module = past.changed(
        tmp_path, monkeypatch, "other_local", ("flaky_local, 2, start", "undo, 2, start"),
    )  # fmt: skip
    _, differs = past.against(past.events_of(committed("edges.1")), module)
    assert differs is not None
    assert differs.found.reason == "local_activity undo stands where local_activity flaky_local was recorded"


def test_a_patch_that_is_gone_is_named_and_one_that_is_deprecated_is_not(tmp_path: Path, monkeypatch: Any) -> None:
    events = past.events_of(committed("kitchen_sink.1"))
    deprecated = past.changed(
        tmp_path, monkeypatch, "deprecates",
        ('if workflow.patched("loyalty"):', 'workflow.deprecate_patch("loyalty")\n        if True:'),
    )  # fmt: skip
    assert past.against(events, deprecated)[1] is None
    gone = past.changed(tmp_path, monkeypatch, "forgets", ('if workflow.patched("loyalty"):', "if True:"))
    _, differs = past.against(events, gone)
    assert differs is not None
    assert "patch loyalty" in differs.found.reason


def test_a_workflow_that_the_target_lacks_is_told_before_anything_runs() -> None:
    events = past.events_of(committed("steps"))
    with pytest.raises(TargetError, match="LS402 the recorded workflow is Steps, and the target has no workflow of"):
        Against(Setup(workflows=[kitchen_sink.Unwinds]), past.steps_of(events), workflow_id="steps")


def test_a_history_that_goes_on_is_the_same_as_far_as_it_goes_at_each_end() -> None:
    events = past.events_of(committed("kitchen_sink.1"))
    ends = [event.event_id for event in events if event.HasField("workflow_task_scheduled_event_attributes")]
    for end in ends[1:]:
        looked, differs = past.against(events[: end - 1])
        assert differs is None, end
        assert looked.verdict is None, end


def test_core_that_panics_is_not_waited_for_without_end(monkeypatch: Any) -> None:
    from lockstep_temporal import walk

    monkeypatch.setattr(walk, "_PATIENCE", 1.0)
    events = past.events_of(committed("steps"))
    events[9].event_type = 0  # type: ignore[assignment]
    with pytest.raises(StoreError, match="LS202 the history of workflow steps cannot be replayed"):
        walk.walk(Setup(workflows=[Steps]), events, workflow_id="steps")


def test_the_walk_shows_what_the_code_would_do_next() -> None:
    from lockstep_temporal.setup import setup_of
    from lockstep_temporal.walk import walk

    events = past.events_of(committed("steps"))[:9]  # its second task was started
    walked = walk(setup_of(Steps), events, workflow_id="steps")
    assert len(walked.pairs) == 1
    (command,) = walked.beyond[0][1].successful.commands
    assert command.schedule_activity.activity_id == "2"
