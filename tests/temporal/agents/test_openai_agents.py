"""Agents of OpenAI's SDK on Temporal: each model and tool call is an effect of its name, which is replayed, forked and
bisected."""

from __future__ import annotations

from typing import Any

import live_server
import order_agents as agents
import pytest
from live_server import Ran, Server

import lockstep
from lockstep.debugger import listing
from lockstep.log.store import open_store
from lockstep.log.timeline import resolve
from lockstep.testing import Provider
from lockstep_temporal import LockstepPlugin, Setup, history

CALLS = [
    ("model", "gpt-4o", "inference"),
    ("activity", "get_order", "read"),
    ("activity", "get_policy", "read"),
    ("model", "gpt-4o", "inference"),
    ("model", "gpt-4o-mini", "inference"),
    ("activity", "issue_refund", "mutating"),
    ("model", "gpt-4o-mini", "inference"),
]


@pytest.fixture
def desk(temporal_server: Server, model: Provider) -> Ran:
    """One ticket, recorded."""
    ran = _desk(temporal_server, [LockstepPlugin(), agents.plugin()])
    agents.ran.clear()
    return ran


def _desk(server: Server, plugins: list[Any]) -> Ran:
    ran = live_server.run(
        server, agents.Desk.run, "Refund order 452", workflows=[agents.Desk], activities=agents.ACTIVITIES,
        plugins=plugins,
    )  # fmt: skip
    assert ran.error is None, ran.error
    assert ran.result.startswith("Refunded 4000.")
    return ran


def _log(run: str) -> listing.Log:
    with open_store(None) as store:
        return listing.log(run, resolve(store, run).timeline)


def _calls(run: str) -> list[tuple[str, str, str]]:
    """Kind, name and class of each effect, tools that were called at once by name."""
    return [(effect.kind, effect.name, effect.effect_class) for step in _log(run).steps for effect in step.effects]


@pytest.mark.parametrize("first", [True, False], ids=["before", "after"])
def test_each_call_is_an_effect_of_its_name_whichever_plugin_comes_first(
    first: bool, temporal_server: Server, model: Provider
) -> None:
    plugins = [LockstepPlugin(), agents.plugin()]
    ran = _desk(temporal_server, plugins if first else plugins[::-1])
    assert sorted(_calls(f"temporal/{ran.workflow_id}")) == sorted(CALLS)
    replay = lockstep.replay(f"temporal/{ran.workflow_id}", agents.setup())
    assert replay.identical, replay.divergence
    assert replay.result == ran.result


def test_a_replay_asks_no_model_and_runs_no_tool(desk: Ran, model: Provider) -> None:
    model.stop()
    asked = model.requests
    replay = lockstep.replay(f"temporal/{desk.workflow_id}", agents.setup())
    assert replay.identical, replay.divergence
    assert (model.requests, agents.ran) == (asked, [])


def test_what_the_model_is_told_otherwise_diverges_by_its_path(desk: Ran) -> None:
    setup = Setup(workflows=[agents.HarshDesk], plugins=[agents.plugin()])
    replay = lockstep.replay(f"temporal/{desk.workflow_id}", setup)
    assert not replay.identical
    assert replay.divergence is not None
    assert "system_instructions" in replay.divergence and "Refuse all" in replay.divergence


def test_its_history_is_the_same_run(desk: Ran) -> None:
    run = f"temporal/{desk.workflow_id}"
    with open_store(None) as store:
        history.imports(store, desk.history.encode(), "copy")
    assert sorted(call[:2] for call in _calls("copy")) == sorted(call[:2] for call in CALLS)
    assert lockstep.diff(run, "copy").same
    replay = lockstep.replay("copy", agents.setup())
    assert replay.identical, replay.divergence


def test_a_fork_tells_the_model_another_answer_and_pays_nothing(desk: Ran, model: Provider) -> None:
    run = f"temporal/{desk.workflow_id}"
    step, effect = _address(run, "get_order")
    setup = agents.setup()
    before = model.requests
    with pytest.raises(lockstep.Refused) as refused:
        lockstep.fork(f"{run}:{step}", setup, edits={f"{effect}:total": 100}, branch="cheap")
    assert "issue_refund" in str(refused.value)
    assert model.requests > before
    assert not _paid()

    forked = lockstep.fork(f"{run}:{step}", setup, edits={f"{effect}:total": 100}, branch="paid", live=["issue_refund"])
    assert forked.state == "complete", forked.error
    assert forked.result.startswith("Refunded 100.")
    assert _paid() == ["issue_refund(452, 100)"]
    assert lockstep.replay(f"{run}@paid", setup).identical


def test_bisect_finds_the_tool_that_told_the_wrong_price(
    temporal_server: Server, model: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as wrong:
        wrong.setitem(agents.PAID, 452, 99_000)
        ran = live_server.run(
            temporal_server, agents.Desk.run, "Refund order 452", workflows=[agents.Desk],
            activities=agents.ACTIVITIES, plugins=[LockstepPlugin(), agents.plugin()],
        )  # fmt: skip
    run = f"temporal/{ran.workflow_id}"
    verdict = lockstep.bisect(run, agents.setup(), bad=lambda view: "99000" in str(view.result), live=["issue_refund"])
    assert (verdict.verdict, verdict.effect) == ("culprit", _address(run, "get_order")[1])


def _paid() -> list[str]:
    return [each for each in agents.ran if each.startswith("issue_refund")]


def _address(run: str, name: str) -> tuple[str, str]:
    """Step and effect of the first call of that name."""
    found = next(effect for step in _log(run).steps for effect in step.effects if effect.name == name)
    effect = found.address.rpartition(":")[2]
    return effect.partition(".")[0], effect
