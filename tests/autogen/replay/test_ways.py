"""Ways to replay: under a loop and without one, up to a step, turn by turn; and what no replay can begin with."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import runs
import teams
from autogen_agentchat.messages import HandoffMessage, TextMessage
from autogen_agentchat.teams import RoundRobinGroupChat

import lockstep
import lockstep_autogen
from lockstep.errors import Code, TargetError
from lockstep.testing import Provider


def test_a_running_loop_awaits_a_replay_that_leaves_nothing_in_it(provider: Provider) -> None:
    kind = teams.named("graph")
    run, result = runs.recorded(kind)
    runs.is_again(runs.alone(lambda: lockstep.areplay(run, kind.make)), result)


def test_one_that_diverges_leaves_nothing_in_it_either(provider: Provider, capfd: Any) -> None:
    kind = teams.named("parallel")
    run, _ = runs.recorded(kind)
    changed = runs.with_prompt(kind.make, "scout", "You are spy.")
    capfd.readouterr()
    replay: Any = runs.alone(lambda: lockstep.areplay(run, changed))
    assert replay.report.difference.path == "messages[0].content"
    assert capfd.readouterr().err == ""


def test_under_a_running_loop_a_replay_has_to_be_awaited(provider: Provider) -> None:
    kind = teams.named("single")
    run, _ = runs.recorded(kind)

    async def blocking() -> None:
        lockstep.replay(run, kind.make)

    with pytest.raises(TargetError, match=r"await lockstep\.areplay"):
        asyncio.run(blocking())


def test_a_factory_may_be_a_coroutine_function(provider: Provider) -> None:
    kind = teams.named("round_robin")
    run, result = runs.recorded(kind)

    async def make() -> Any:
        await asyncio.sleep(0)
        return kind.make()

    runs.is_again(lockstep.replay(run, make), result)


@pytest.mark.parametrize("step", [0, 2, 4])
def test_a_replay_stops_after_the_step_that_is_asked_for(step: int, provider: Provider) -> None:
    kind = teams.named("round_robin")
    run, _ = runs.recorded(kind)
    replay = lockstep.replay(run, kind.make, until=step)
    assert (replay.report.cut, replay.identical, replay.report.steps) == (True, True, step + 1)


def test_a_step_that_there_is_not_is_refused(provider: Provider) -> None:
    kind = teams.named("round_robin")
    run, _ = runs.recorded(kind)
    with pytest.raises(TargetError, match="has no step 9: its last is 4") as raised:
        lockstep.replay(run, kind.make, until=9)
    assert raised.value.code is Code.BAD_TARGET


def test_all_turns_of_a_team_are_made_again_and_one_gives_its_own_result(
    provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = teams.named("handing_to_user")
    team: Any = lockstep_autogen.attach(kind.make())
    answer = HandoffMessage(content="it is order 7", source="user", target="clerk")
    results = asyncio.run(runs.turns(team, ["refund me", answer]))
    runs.silence(provider, monkeypatch)
    replay = lockstep.replay("autogen/counter", kind.make)
    assert replay.identical, replay.divergence
    assert [teams.messages(one) for one in replay.results] == [teams.messages(one) for one in results]
    second = lockstep.replay("autogen/counter", kind.make, turn=2)
    assert [teams.messages(one) for one in second.results] == [teams.messages(results[1])]


def test_a_team_that_was_reset_between_its_turns_is_reset_again(
    provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = teams.named("capped")

    async def run() -> list[Any]:
        team: Any = lockstep_autogen.attach(kind.make())
        first = await teams.running(team, "one")
        await team.reset()
        return [first, await teams.running(team, "two")]

    results = asyncio.run(run())
    runs.silence(provider, monkeypatch)
    replay = lockstep.replay("autogen/capped", kind.make)
    assert replay.identical, replay.divergence
    said = [one for one in replay.results if one is not None]
    assert [teams.messages(one) for one in said] == [teams.messages(one) for one in results]


def test_a_task_of_messages_is_made_again(provider: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
    kind = teams.KINDS[-1]
    run, result = runs.recorded(kind)
    runs.silence(provider, monkeypatch)
    replay = lockstep.replay(run, kind.make)
    runs.is_again(replay, result)
    assert [type(message) for message in replay.result.messages[:2]] == [type(each) for each in kind.asked()]


def test_an_agent_whose_method_was_called_is_called_so_again(
    provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    from autogen_core import CancellationToken

    kind = teams.named("single")
    agent: Any = lockstep_autogen.attach(kind.make())
    said = TextMessage(content="refund order 7", source="user")
    response = asyncio.run(agent.on_messages([said], CancellationToken()))
    runs.silence(provider, monkeypatch)
    replay = lockstep.replay("autogen/loner", kind.make)
    assert replay.identical, replay.divergence
    assert teams.alike(replay.result.chat_message) == teams.alike(response.chat_message)


# What no replay can begin with.


def refused(run: str, target: Any) -> str:
    with pytest.raises(TargetError) as raised:
        lockstep.replay(run, target)
    assert raised.value.code is Code.BAD_TARGET
    return raised.value.message


def test_a_live_team_is_refused_with_the_reason(provider: Provider) -> None:
    kind = teams.named("round_robin")
    run, _ = runs.recorded(kind)
    assert "the function that makes it" in refused(run, kind.make())


def test_a_factory_that_gives_the_same_team_again_is_refused(provider: Provider) -> None:
    kind = teams.named("round_robin")
    run, _ = runs.recorded(kind)
    team = kind.make()
    assert lockstep.replay(run, lambda: team).identical
    assert "which has run already" in refused(run, lambda: team)


def test_a_new_team_of_agents_that_have_run_is_refused(provider: Provider) -> None:
    kind = teams.named("capped")
    run, _ = runs.recorded(kind)
    agents = kind.make()._participants  # type: ignore[attr-defined]

    def make() -> Any:
        team: Any = kind.make()
        return type(team)(agents, name="capped", max_turns=3)

    assert lockstep.replay(run, make).identical
    assert "an agent writer, which has run already" in refused(run, make)


def test_another_kind_of_team_is_refused(provider: Provider) -> None:
    run, _ = runs.recorded(teams.named("round_robin"))
    assert "made a Swarm" in refused(run, teams.swarm)


def test_a_team_of_other_agents_is_refused(provider: Provider) -> None:
    run, _ = runs.recorded(teams.named("round_robin"))
    assert "capped of writer, critic in place of desk of writer, critic" in refused(run, teams.capped)


def test_what_makes_no_team_is_refused(provider: Provider) -> None:
    run, _ = runs.recorded(teams.named("round_robin"))
    assert "made a str" in refused(run, lambda: "a team")


def test_the_command_line_replays_with_a_target(
    provider: Provider, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    kind = teams.named("round_robin")
    run, _ = runs.recorded(kind)
    monkeypatch.setenv("PYTHONPATH", str(Path(teams.__file__).parent), prepend=os.pathsep)
    done = subprocess.run(
        [sys.executable, "-m", "lockstep", "replay", run, "--target", "teams:round_robin"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "identical" in done.stderr


def test_a_key_in_a_task_is_given_the_team_again(provider: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
    key = "a1b2-shop-c3d4-of-tea-e5f6"
    monkeypatch.setenv("SHOP_API_KEY", key)

    def make() -> Any:
        return RoundRobinGroupChat([teams.agent("helper")], name="shop", max_turns=1)

    *_, result = asyncio.run(runs.turns(lockstep_autogen.attach(make()), ["what is it?", f"pay with {key}"]))
    fork = lockstep.fork("autogen/shop:0", make)  # the second turn begins past the cut
    assert not any(key.encode() in each.read_bytes() for each in Path(".lockstep").glob("store.db*"))
    runs.silence(provider, monkeypatch)
    for run, then in (("autogen/shop", result), (fork.address, fork.result)):
        assert then.messages[0].content == f"pay with {key}"
        runs.is_again(lockstep.replay(run, make), then)
