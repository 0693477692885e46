"""A recorded thread and state as plain JSON, and in new teams."""

from __future__ import annotations

import asyncio
import json
import logging
import subprocess
import sys
from pathlib import Path
from typing import Any

import kept
import pytest
import teams
from autogen_agentchat.conditions import MaxMessageTermination
from autogen_agentchat.messages import BaseChatMessage, HandoffMessage
from autogen_agentchat.teams import RoundRobinGroupChat

import lockstep
import lockstep_autogen
from lockstep.errors import Code
from lockstep.testing import Provider
from lockstep_autogen import exports, states


def command(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "lockstep", *words], capture_output=True, text=True, check=False, timeout=60
    )


LOADED = [teams.named(name) for name in ("round_robin", "swarm", "nested", "magentic", "user_proxy", "structured")]


@pytest.mark.parametrize("kind", [*LOADED, teams.KINDS[-1]], ids=teams.labelled)
def test_the_messages_of_a_run_are_those_that_it_returned(kind: teams.Kind, provider: Provider) -> None:
    recorded = kept.record(kind)
    with kept.place(recorded.run) as place:
        told = json.loads(exports.messages(place))
    known: Any = kind.make()
    loaded = [known._message_factory.create(each) for each in told]
    # Who asks a user says so to the stream alone. A text gets to be a message within each of those who hear it.
    returned = [each for each in recorded.result.messages if each.type != "UserInputRequestedEvent"]
    made = kind.task == teams.Kind.task
    assert teams.alike(loaded[0]) == teams.alike(returned[0])
    assert [each.model_dump() for each in loaded[made:]] == [each.model_dump() for each in returned[made:]]


def test_a_new_team_hears_the_messages_of_a_file(provider: Provider, tmp_path: Path) -> None:
    recorded = kept.record(teams.named("round_robin"))
    done = command("export", f"{recorded.run}:3", "--format", "messages", "--output", str(tmp_path / "thread.json"))
    assert (done.returncode, "exported" in done.stderr) == (0, True), done.stderr
    heard = lockstep_autogen.thread(str(tmp_path / "thread.json"))
    assert [each.source for each in heard] == ["user", "writer", "critic", "writer"]
    assert all(isinstance(each, BaseChatMessage) for each in heard)
    assert [each.id for each in heard] == [each.id for each in lockstep_autogen.thread(f"{recorded.run}:3")]
    other = RoundRobinGroupChat([teams.agent("planner")], max_turns=1)
    result = teams.run(other, heard)
    assert teams.speakers(result) == "user writer critic writer planner"
    assert "the order is fine" in str(provider.seen[-1].json["messages"])


def test_messages_of_types_of_a_teams_own_need_that_team(provider: Provider) -> None:
    recorded = kept.record(teams.named("structured"))
    with pytest.raises(lockstep.LockstepError, match=r"StructuredMessage.*give thread\(…, team=\)"):
        lockstep_autogen.thread(recorded.run)
    heard = lockstep_autogen.thread(recorded.run, team=teams.structured())
    assert heard[1].content == teams.Verdict(score=1, because="it is (1)")


def test_autogens_own_load_state_takes_an_exported_state(provider: Provider, tmp_path: Path) -> None:
    recorded = kept.record(teams.named("round_robin"))
    done = command(
        "export", f"{recorded.run}:2", "--format", "state", "--output", str(tmp_path / "state.json"), "--json"
    )
    assert json.loads(done.stdout)["format"] == "state", done.stderr
    state = json.loads((tmp_path / "state.json").read_text())

    async def loaded() -> Any:
        fresh: Any = teams.round_robin()
        await fresh.load_state(state)
        return await states.channels(fresh)

    channels = asyncio.run(loaded())
    assert channels["critic.context"] == recorded.steps[2].channels["critic.context"]
    assert channels["manager"] == recorded.steps[2].channels["manager"]


def test_messages_go_to_stdout(provider: Provider) -> None:
    recorded = kept.record(teams.named("round_robin"))
    done = command("export", recorded.run, "--format", "messages", "--output", "-")
    assert [each["source"] for each in json.loads(done.stdout)][-1] == "critic"


def test_what_is_no_state_or_no_format_is_said_so(provider: Provider, tmp_path: Path) -> None:
    recorded = kept.record(teams.named("round_robin"))
    early = command("export", f"{recorded.run}:0", "--format", "state", "--output", str(tmp_path / "x"))
    assert (early.returncode, "LS215 the state was not whole" in early.stderr) == (2, True)
    other = command("export", recorded.run, "--format", "yaml", "--output", str(tmp_path / "x"))
    assert "LS215 'yaml' is no format" in other.stderr and "tape, jsonl, messages, state" in other.stderr


def test_a_team_that_is_given_a_state_goes_on_counting(settled: Provider) -> None:
    kind = teams.named("round_robin")
    recorded = kept.record(kind)

    async def go() -> Any:
        fresh: Any = lockstep_autogen.attach(kind.make(), run="loaded")
        return await teams.running(await lockstep_autogen.load(f"{recorded.run}:2", fresh))

    assert teams.messages(asyncio.run(go())) == recorded.messages[-2:]
    assert lockstep.replay("autogen/loaded", kind.make).identical


def test_a_swarm_that_waits_for_its_user_says_whom_to_answer_as(
    provider: Provider, caplog: pytest.LogCaptureFixture
) -> None:
    kind = teams.named("handing_to_user")
    recorded = kept.record(kind)

    async def go() -> Any:
        fresh: Any = kind.make()
        with caplog.at_level(logging.WARNING, logger="lockstep"):
            await lockstep_autogen.load(recorded.run, fresh)
        answer = HandoffMessage(source="user", target="clerk", content="yes")
        return await teams.running(fresh, answer)

    result = asyncio.run(go())
    assert "It waits for user: its next task is a HandoffMessage(source='user'" in caplog.text
    assert "to one of clerk" in caplog.text
    assert teams.speakers(result) == "user clerk"
    with pytest.raises(lockstep.LockstepError, match="It waits for user") as raised:
        lockstep.fork(f"{recorded.run}:2", kind.make, by="state")
    assert raised.value.code is Code.UNSUPPORTED


def test_a_state_that_says_too_little_is_not_loaded(provider: Provider) -> None:
    kind = teams.named("society")
    recorded = kept.record(kind)
    with pytest.raises(lockstep.LockstepError, match="says too little to load it: mind saves only"):
        asyncio.run(lockstep_autogen.load(recorded.run, kind.make()))


def test_a_team_that_has_run_forgets_that(settled: Provider) -> None:
    kind = teams.named("round_robin")
    recorded = kept.record(kind)

    async def go() -> Any:
        used: Any = kind.make()
        used._termination_condition = MaxMessageTermination(5)
        await teams.running(used, "something else")
        return await teams.running(await lockstep_autogen.load(f"{recorded.run}:2", used))

    # Three of the five messages that end it had been said.
    assert teams.messages(asyncio.run(go())) == recorded.messages[-2:]


def test_an_agent_without_a_team_is_given_its_context(settled: Provider) -> None:
    kind = teams.named("single")
    recorded = kept.record(kind)

    async def go() -> Any:
        fresh: Any = await lockstep_autogen.load(recorded.run, kind.make())
        return await teams.running(fresh, "and now?")

    asyncio.run(go())
    assert "look_up" in str(settled.seen[-1].json["messages"])


def test_what_is_no_step_and_no_team_is_said_so(provider: Provider) -> None:
    recorded = kept.record(teams.named("round_robin"))
    with pytest.raises(lockstep.LockstepError, match="is a call: what a team remembers is that of a step"):
        asyncio.run(lockstep_autogen.load(f"{recorded.run}:1.1", teams.round_robin()))
    with pytest.raises(lockstep.LockstepError, match="load takes a team or an agent, not a str"):
        asyncio.run(lockstep_autogen.load(recorded.run, "team"))
    with pytest.raises(lockstep.LockstepError, match="the recorded team had no planner"):
        asyncio.run(lockstep_autogen.load(recorded.run, teams.selector()))
