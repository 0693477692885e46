"""Runs that were imported from a history, replayed by the code of then and by that of today."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import kitchen_sink
import pytest
import stepped_workflows as stepped
from live_server import committed
from temporalio.api.common.v1 import Payload
from xor_codec import Xor, converter

import lockstep
from lockstep.errors import Code, TargetError
from lockstep.log.store import open_store
from lockstep_temporal import Setup
from lockstep_temporal.drift import SOURCE
from lockstep_temporal.history import imports


def imported(store: Path, *histories: str) -> str:
    """The run that they are."""
    with open_store(str(store), create=True) as opened:
        return [imports(opened, history.encode()) for history in histories][-1]


@pytest.mark.parametrize(
    "files", [["kitchen_sink.1", "kitchen_sink.2"], ["edges.1", "edges.2"], ["steps"], ["unwinds"]]
)
def test_the_code_of_then_makes_the_same_run(store: Path, files: list[str]) -> None:
    run = imported(store, *map(committed, files))
    setup = Setup(workflows=kitchen_sink.WORKFLOWS, sandboxed=files == ["steps"])
    done = lockstep.replay(run, setup, store=store)
    assert (done.identical, done.divergence) == (True, None)
    last = lockstep.replay(run, setup, store=store, turn=len(files))
    assert (last.identical, last.results) == (True, done.results[-1:])


@pytest.mark.parametrize(
    ("target", "code", "step", "path", "was", "now", "line"),
    [
        (stepped.OtherArguments, Code.REQUEST, 2, "arguments[1][0]", "1", "3", "OtherArguments.run"),
        (stepped.OtherTimeouts, Code.REQUEST, 4, "start_to_close_timeout", '"20s"', '"21s"', "OtherTimeouts.run"),
        (stepped.OtherResult, Code.END, 5, "result[0]", "1", "15", "OtherResult.run"),
        (stepped.Fewer, Code.END, 4, "", "activity add(5, [1, 3, 6, 10])", "result [1, 3, 6, 10]", "Fewer.run"),
        (stepped.Exits, Code.END, 1, "", "activity add", "failed: SystemExit(0)", "Exits.run"),
        (
            stepped.Raising,
            Code.END,
            3,
            "",
            "activity add",
            "failed: IndexError: list index out of range",
            "Raising.run",
        ),
    ],
)
def test_a_change_is_told_where_it_shows(
    store: Path, target: Any, code: Code, step: int, path: str, was: str, now: str, line: str
) -> None:
    run = imported(store, committed("steps"))
    done = lockstep.replay(run, target, store=store)
    found = done.report.difference
    assert found is not None
    assert (found.code, found.step, found.same_until, found.path) == (code, step, step - 1, path)
    assert found.expected.startswith(was)
    assert found.actual.startswith(now)
    assert found.source.endswith(f" in {line}")
    assert "stepped_workflows.py:" in found.source
    assert lockstep.replay(run, target, store=store, until=step - 1).identical


def test_inputs_that_are_drawn_anew_are_drift(store: Path) -> None:
    run = imported(store, committed("steps"))
    done = lockstep.replay(run, stepped.Drifting, store=store)
    assert done.identical
    assert [(entry.source, entry.count) for entry in done.coverage if entry.how == "differs"] == [(SOURCE, 5)]


def test_code_that_comes_to_no_stop_ends_the_replay(store: Path) -> None:
    run = imported(store, committed("steps"))
    found = lockstep.replay(run, stepped.NeverStops, store=store, deadline=0.3).report.difference
    assert found is not None
    assert (found.code, found.step) == (Code.STUCK, 3)
    assert found.source.endswith(" in NeverStops.run")


def test_an_execution_that_goes_on_is_identical_up_to_its_end(store: Path) -> None:
    history = json.loads(committed("steps"))
    history["events"] = history["events"][:17]
    run = imported(store, json.dumps(history))
    done = lockstep.replay(run, kitchen_sink.Steps, store=store)
    assert (done.identical, done.report.cut, done.results) == (True, True, [])


def encoded(history: str) -> str:
    """The history as it is where a codec is on."""
    return json.dumps(_encoded(json.loads(history)))


def _encoded(value: Any) -> Any:
    if isinstance(value, list):
        return [_encoded(each) for each in value]
    if not isinstance(value, dict):
        return value
    if set(value) != {"metadata", "data"}:
        return {key: _encoded(each) for key, each in value.items()}
    metadata = {key: base64.b64decode(each) for key, each in value["metadata"].items()}
    made = Xor()._crypt(Payload(metadata=metadata, data=base64.b64decode(value["data"])).SerializeToString())
    return {
        "metadata": {"encoding": base64.b64encode(b"binary/xor").decode()},
        "data": base64.b64encode(made).decode(),
    }


def test_an_encoded_history_needs_its_codec(store: Path) -> None:
    run = imported(store, encoded(committed("steps")))
    done = lockstep.replay(run, kitchen_sink.Steps, store=store, data_converter=converter())
    assert (done.identical, done.result) == (True, [1, 3, 6, 10, 15])
    changed = lockstep.replay(run, stepped.OtherTimeouts, store=store, data_converter=converter())
    assert changed.report.difference is not None
    assert changed.report.difference.path == "start_to_close_timeout"
    with pytest.raises(
        TargetError, match=r"has payloads of encoding binary/xor, and the target's data converter knows"
    ):
        lockstep.replay(run, kitchen_sink.Steps, store=store)
    with pytest.raises(TargetError, match=r"LS402 the data converter's codec cannot decode"):
        lockstep.replay(run, kitchen_sink.Steps, store=store, data_converter=converter(key=12))


def test_a_branch_that_left_an_imported_execution_replays_from_its_start(store: Path) -> None:
    run = imported(store, committed("steps"))
    setup = Setup(workflows=[kitchen_sink.Steps], activities=[kitchen_sink.add])
    forked = lockstep.fork(f"{run}:3", setup, edits={"3.1": 100}, live=["*"], store=store)
    assert forked.result == [1, 3, 100, 104, 109]
    done = lockstep.replay(forked.address, kitchen_sink.Steps, store=store)
    assert (done.identical, done.result, done.report.steps) == (True, forked.result, 6)
    for target, step in ((stepped.OtherArguments, 2), (stepped.OtherTimeouts, 4), (stepped.OtherResult, 5)):
        found = lockstep.replay(forked.address, target, store=store).report.difference
        assert found is not None
        assert found.step == step
        assert found.source.endswith(f" in {target.__name__}.run")
