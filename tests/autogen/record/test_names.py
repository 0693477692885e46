"""What runs and lanes are called."""

from __future__ import annotations

import asyncio
from typing import Any

import looking
import pytest
import teams
from autogen_agentchat.teams import RoundRobinGroupChat

import lockstep_autogen
from lockstep.errors import AdapterError, TargetError
from lockstep.testing import Provider
from lockstep_autogen import fitting


def test_a_name_that_is_taken_gets_a_number_and_that_is_said(
    provider: Provider, told: pytest.LogCaptureFixture
) -> None:
    for _ in range(3):
        teams.run(lockstep_autogen.attach(teams.capped()), "refund order 7")
    assert sorted(looking.runs()) == ["autogen/capped", "autogen/capped-2", "autogen/capped-3"]
    assert [record.getMessage() for record in told.records] == [
        "the run of this team is called autogen/capped-2", "the run of this team is called autogen/capped-3",
    ]  # fmt: skip


def test_a_run_can_be_given_a_name(provider: Provider, told: pytest.LogCaptureFixture) -> None:
    teams.run(lockstep_autogen.attach(teams.capped(), run="ticket 4711/a"), "refund order 7")
    assert list(looking.runs()) == ["autogen/ticket%204711%2Fa"]
    assert told.records == []


async def _twice(team: Any) -> None:
    await teams.running(team, "refund order 7")
    await teams.running(team)


def test_a_team_that_runs_again_goes_on_in_its_run(provider: Provider) -> None:
    team = lockstep_autogen.attach(teams.capped())
    asyncio.run(_twice(team))
    assert list(looking.runs()) == ["autogen/capped"]
    with looking.run("autogen/capped") as seen:
        assert seen.turns() == [("run_stream", "ok")] * 2
        assert seen.names == ["user", "writer", "critic", "writer", "input", "critic", "writer", "critic"]


def test_teams_of_one_name_beside_each_other_are_told_apart(provider: Provider) -> None:
    def inner() -> RoundRobinGroupChat:
        return RoundRobinGroupChat([teams.agent("first")], name="inner", max_turns=1)

    mind = teams.SocietyOfMindAgent("inner_", inner(), teams.client(), instruction="You are mind.")
    other = teams.SocietyOfMindAgent("manager", inner(), teams.client(), instruction="You are mind.")
    team = RoundRobinGroupChat([mind, other], name="two/teams", max_turns=2)
    teams.run(lockstep_autogen.attach(team), "count")
    with looking.run("autogen/two%2Fteams") as seen:
        assert [lane for lane, _, _ in seen.calls()] == [
            "two%2Fteams/inner_/inner/first", "two%2Fteams/inner_",
            "two%2Fteams/manager~2/inner/first", "two%2Fteams/manager~2",
        ]  # fmt: skip


def test_what_is_no_team_and_what_is_attached_already_is_refused(provider: Provider) -> None:
    with pytest.raises(TargetError, match="LS402 attach takes a team or an agent of autogen_agentchat, not a str"):
        lockstep_autogen.attach("desk")
    team = lockstep_autogen.attach(teams.capped())
    with pytest.raises(TargetError, match="LS402 capped is attached already"):
        lockstep_autogen.attach(team)


def test_a_team_may_be_attached_after_its_first_run(provider: Provider) -> None:
    async def run() -> None:
        team = teams.capped()
        await teams.running(team, "refund order 7")
        await teams.running(lockstep_autogen.attach(team), "once more")

    asyncio.run(run())
    with looking.run("autogen/capped") as seen:
        assert seen.names == ["user", "critic", "writer", "critic"]
        assert len(seen.state(0)["thread"]) == 6


def test_a_version_that_lacks_what_is_needed_is_told(provider: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
    fitting.probe.cache_clear()
    monkeypatch.delattr(fitting.BaseGroupChatManager, "_apply_termination_condition")
    with pytest.raises(AdapterError, match=r"LS410 BaseGroupChatManager has no '_apply_termination_condition' in this"):
        lockstep_autogen.attach(teams.capped())
