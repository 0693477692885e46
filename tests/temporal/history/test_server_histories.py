"""Histories of a real server, of workflows that leave to it what can be left: unchanged code is the same, whatever the
server has filled in, and what is rebuilt of them is what core makes of them."""

from datetime import timedelta
from typing import Any

import filled_workflows as filled
import past
import pytest
from live_server import Ran, Server, run
from temporalio.common import RetryPolicy

S = timedelta(seconds=1)

pytestmark = pytest.mark.filterwarnings("ignore:Dictionary-based search attributes are deprecated")


def ran(server: Server, workflow: Any, *args: Any, **start: Any) -> Ran:
    return run(server, workflow, *args, start=start, workflows=filled.WORKFLOWS, activities=filled.ACTIVITIES)


def is_same(history: str) -> None:
    looked, differs = past.against(past.events_of(history), filled)
    assert differs is None
    assert looked.verdict is None


@pytest.mark.parametrize(
    ("leaves", "start"),
    [
        ("plain", {"run_timeout": 55 * S, "task_timeout": 8 * S, "memo": {"a": 1}}),
        ("fails", {"execution_timeout": 500 * S}),
    ],
)
def test_what_the_server_fills_in_is_no_difference(
    leaves: str, start: dict[str, Any], temporal_server: Server
) -> None:  # fmt: skip
    done = ran(temporal_server, filled.Filled.run, leaves, **start)
    assert (done.error is None) is (leaves != "fails")
    assert len(done.histories) == (1 if leaves == "fails" else 2)
    for history in done.histories:
        is_same(history)


def test_what_is_said_is_no_difference(options_history: str) -> None:
    is_same(options_history)


def test_each_way_of_cancelling_is_the_same(temporal_server: Server) -> None:
    done = ran(temporal_server, filled.Cancels.run)
    assert len(done.result) == 13
    is_same(done.history)


def test_timeouts_and_local_activities_are_the_same(temporal_server: Server) -> None:
    is_same(ran(temporal_server, filled.TimesOut.run).history)


def test_a_workflow_that_is_tried_again_is_the_same_in_each_try(temporal_server: Server) -> None:
    done = ran(temporal_server, filled.Fails.run, 2, retry_policy=RetryPolicy(initial_interval=S / 100))
    assert len(done.histories) == 2
    for history in done.histories:
        is_same(history)


@pytest.mark.parametrize(
    ("old", "new", "path"),
    [
        ("run_timeout=50 * S", "run_timeout=51 * S", "workflow_run_timeout"),
        ("task_timeout=5 * S", "task_timeout=6 * S", "workflow_task_timeout"),
        ('memo={"new": 1}', 'memo={"new": 2}', "memo.new"),
        ('"kind": "child"', '"kind": "kid"', "memo.kind"),
        ("run_timeout=60 * S", "run_timeout=39 * S", "workflow_run_timeout"),
        ("task_timeout=500 * S", "task_timeout=29 * S", "workflow_task_timeout"),
        ("ParentClosePolicy.ABANDON", "ParentClosePolicy.TERMINATE", "parent_close_policy"),
        ('"by handle"', '"by hand"', "args[0]"),
        ('static_summary="small"', 'static_summary="tiny"', "user_metadata.summary"),
        ('value_set("filled")', 'value_set("full")', "search_attributes.indexed_fields.Stage"),
        ('"two": None', '"two": 2', "upserted_memo.fields.two"),
        ("priority_key=2", "priority_key=3", "priority.priority_key"),
        ("timedelta(seconds=33, milliseconds=5)", "timedelta(seconds=33)", "retry_policy.maximum_interval"),
        ('non_retryable_error_types=["No"]', "non_retryable_error_types=[]", "retry_policy.non_retryable_error_types"),
    ],
)
def test_what_the_code_says_is_a_difference(
    old: str, new: str, path: str, options_history: str, tmp_path: Any, monkeypatch: Any
) -> None:  # fmt: skip
    module = past.changed(tmp_path, monkeypatch, f"filled_{abs(hash(new))}", (old, new), of=filled)
    looked, differs = past.against(past.events_of(options_history), module)
    assert differs is not None
    assert differs.found.path == path
    assert looked.verdict is None  # the SDK's Replayer lets all of them pass


@pytest.fixture(scope="module")
def options_history(temporal_server: Server) -> str:
    """Of an execution that goes on as new with all options."""
    return ran(temporal_server, filled.Filled.run, "options").histories[0]
