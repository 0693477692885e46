"""A fork is the same whether the driver plays the server or Temporal's own server does."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import tails
from live_server import Ran, Server, run
from temporalio.exceptions import CancelledError

import lockstep
from lockstep.errors import TargetError
from lockstep.log.store import open_store
from lockstep_temporal import LockstepPlugin, Setup, worker
from lockstep_temporal.commands import commands_of
from lockstep_temporal.recorded import Recorded

TARGET = Setup(workflows=tails.WORKFLOWS, activities=tails.ACTIVITIES)
EDIT = {"1.1": 41}

# By kind, what a fork returns whose first activity is edited to have answered 41 instead of 1.
EDITED: dict[str, Any] = {
    "together": 410,
    "local": 82,
    "tries": "Never: not with 41",
    "timers": 82,
    "signals": 106,
    "updates": 258,
    "children": [83, "ChildWorkflowError"],
    "cancels": [-41, "ActivityError", "CancelledError"],
    "is_cancelled": None,
    "again": 24600,
}


@pytest.fixture
def recorded(temporal_server: Server, tmp_path: Path) -> Any:
    def record(kind: str) -> tuple[str, str, Ran]:
        store = str(tmp_path / "store.db")
        ran = run(
            temporal_server,
            tails.Tail.run,
            kind,
            drive=partial(tails.serve, kind),
            workflows=tails.WORKFLOWS,
            activities=tails.ACTIVITIES,
            plugins=[LockstepPlugin(store)],
        )
        return f"temporal/{ran.workflow_id}", store, ran

    return record


@pytest.mark.parametrize("kind", EDITED)
def test_a_fork_with_an_edit_commands_the_same_on_a_server(kind: str, recorded: Any, temporal_server: Server) -> None:
    name, store, _ = recorded(kind)

    driven = lockstep.fork(f"{name}:1", TARGET, edits=EDIT, live=["*"], store=store)
    hosted = lockstep.fork(f"{name}:1", TARGET, edits=EDIT, live=["*"], store=store, server=temporal_server.address)

    assert driven.result == hosted.result == EDITED[kind]
    assert commanded(store, hosted.branch, name) == commanded(store, driven.branch, name)
    for branch in (driven, hosted):
        replay = lockstep.replay(branch.address, TARGET, store=store)
        assert replay.identical, (branch.address, replay.divergence)
    if kind == "is_cancelled":
        assert isinstance(driven.error, CancelledError) and isinstance(hosted.error, CancelledError)


@pytest.mark.parametrize("kind", ["together", "children", "cancels", "draws"])
def test_what_the_record_answers_is_not_run_there(kind: str, recorded: Any, temporal_server: Server) -> None:
    name, store, ran = recorded(kind)

    driven = lockstep.fork(f"{name}:1", TARGET, store=store)
    hosted = lockstep.fork(f"{name}:1", TARGET, store=store, server=temporal_server.address)

    assert driven.result == hosted.result == ran.result
    assert (
        commanded(store, hosted.branch, name) == commanded(store, driven.branch, name) == commanded(store, "main", name)
    )
    assert hosted.live == driven.live


def test_a_fork_from_the_start_runs_there_too(recorded: Any, temporal_server: Server) -> None:
    name, store, ran = recorded("together")

    hosted = lockstep.fork(f"{name}:0", TARGET, live=["*"], store=store, server=temporal_server.address)

    assert hosted.result == ran.result
    assert hosted.live == 4


def test_a_server_of_its_own_skips_what_is_only_waited_for(recorded: Any) -> None:
    name, store, _ = recorded("sleeps")
    wait = 3_600_000 if worker.SKIPS else 40

    hosted = lockstep.fork(f"{name}:1", TARGET, edits={"1.1": wait}, store=store, server="local")

    assert hosted.result is True
    assert lockstep.replay(hosted.address, TARGET, store=store).identical


def test_activities_have_a_client_there_and_may_be_completed_by_others(recorded: Any, temporal_server: Server) -> None:
    name, store, _ = recorded("elsewhere")

    with pytest.raises(lockstep.Refused, match="--server local"):
        lockstep.fork(f"{name}:1", TARGET, edits=EDIT, live=["*"], store=store)
    hosted = lockstep.fork(f"{name}:1", TARGET, edits=EDIT, live=["*"], store=store, server=temporal_server.address)

    assert hosted.result == 1041


def test_what_may_not_run_is_refused_there_too(recorded: Any, temporal_server: Server) -> None:
    name, store, _ = recorded("together")

    with pytest.raises(lockstep.Refused, match="doubled") as refused:
        lockstep.fork(f"{name}:1", TARGET, edits=EDIT, store=store, server=temporal_server.address)

    assert refused.value.run.state == "refused"


def test_code_that_fails_its_task_ends_the_fork(recorded: Any, temporal_server: Server) -> None:
    name, store, _ = recorded("together")

    hosted = lockstep.fork(
        f"{name}:1", TARGET, edits={"1.1": "no number"}, live=["*"], store=store, server=temporal_server.address
    )

    assert hosted.state == "failed"
    assert hosted.error is not None


@pytest.mark.parametrize("server", ["temporal.example:7233", "10.0.0.1:7233", "locally", 7233])
def test_only_a_development_server_on_loopback_is_taken(server: Any, recorded: Any) -> None:
    name, store, _ = recorded("draws")

    with pytest.raises(TargetError, match="LS402"):
        lockstep.fork(f"{name}:1", TARGET, store=store, server=server)

    with open_store(store) as opened:
        assert [each.branch for each in opened.runs() if each.name == name] == ["main"]


def commanded(store: str, branch: str, name: str) -> list[tuple[str, str, str]]:
    """All that the code commanded, in its order; in which tasks is another matter."""
    with open_store(store) as opened:
        recorded = Recorded(opened.run(name, branch))
        return [
            (command.kind, command.name, json.dumps(command.request, sort_keys=True))
            for step in recorded.steps
            for _, completion in step.tasks()
            for command in commands_of(completion)
        ]


@pytest.mark.parametrize("kind", ["together", "local", "children", "signals", "again"])
def test_a_server_that_tells_all_once_more_hears_the_same(
    kind: str, recorded: Any, temporal_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, store, _ = recorded(kind)
    monkeypatch.setattr(worker, "Worker", partial(worker.Worker, max_cached_workflows=0))

    hosted = lockstep.fork(f"{name}:1", TARGET, edits=EDIT, live=["*"], store=store, server=temporal_server.address)

    assert hosted.result == EDITED[kind]
    assert lockstep.replay(hosted.address, TARGET, store=store).identical


def test_a_fork_at_the_end_has_nothing_left_for_a_server(recorded: Any, temporal_server: Server) -> None:
    name, store, ran = recorded("local")  # its second task is the last one

    hosted = lockstep.fork(f"{name}:1", TARGET, store=store, server=temporal_server.address)

    assert (hosted.state, hosted.result, hosted.live) == ("complete", ran.result, 0)
