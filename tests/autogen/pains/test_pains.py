"""What users of AutoGen asked for or tripped over, by the issue of microsoft/autogen; others are told by the tests of
recording, replay, forks and exports."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime
from typing import Any

import pytest
import runs
import scripted_agents
import teams
from autogen_agentchat.conditions import MaxMessageTermination
from autogen_agentchat.messages import StructuredMessage, TextMessage
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_core import InMemoryStore
from autogen_core.models import CreateResult
from autogen_ext.models.cache import ChatCompletionCache
from pydantic import BaseModel

import lockstep
import lockstep_autogen
from lockstep.log.checkpoints import States
from lockstep.log.store import open_store
from lockstep.log.timeline import resolve
from lockstep.testing import Answer, Provider, Request
from lockstep_autogen import exports, restoring


def command(*words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "lockstep", *words], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def counting() -> Any:
    return RoundRobinGroupChat(
        [teams.agent("author"), teams.agent("reviewer")],
        name="counting",
        termination_condition=MaxMessageTermination(5),
    )


COUNTING = teams.Kind(counting, "user author reviewer author reviewer", "Maximum number of messages 5 reached", 4)


@pytest.mark.parametrize("by", ["code", "state"])
def test_4100_a_condition_goes_on_counting_where_it_was(by: str, provider: Provider) -> None:
    run, _ = runs.recorded(COUNTING)
    fork = lockstep.fork(f"{run}:2", counting, by=by)
    assert fork.result.stop_reason == "Maximum number of messages 5 reached, current message count: 5"
    assert len(exported(fork.address)) == 5


def exported(address: str) -> list[dict[str, Any]]:
    with open_store(None) as store:
        found: list[dict[str, Any]] = json.loads(exports.messages(resolve(store, address)))
    return found


def test_7043_a_graph_whose_state_says_that_it_is_done_is_not_gone_on_with(provider: Provider) -> None:
    run, _ = runs.recorded(teams.named("looping"))
    channels = runs.timeline(run, lambda timeline: _state(timeline, 2))
    assert not restoring.refusal(teams.looping(), channels)
    emptied = {**channels, "manager": {**channels["manager"], "ready": []}}
    assert "says that it is done, and it was not" in restoring.refusal(teams.looping(), emptied)


def _state(timeline: Any, number: int) -> dict[str, Any]:
    steps = [event for _, event in timeline.reader.heads(timeline.reader.main) if event.kind.name == "STEP"]
    return States(timeline.reader).at(steps[number].pos)


def test_5034_one_call_loads_and_runs_so_that_no_await_can_be_forgotten(provider: Provider) -> None:
    run, _ = runs.recorded(teams.named("round_robin"))
    assert lockstep.fork(f"{run}:3", teams.round_robin, by="state").state == "complete"


class When(BaseModel):
    """Something with a time in it, which JSON has no word for."""

    at: datetime


def dated() -> Any:
    return RoundRobinGroupChat(
        [teams.agent("critic")], name="dated", max_turns=1, custom_message_types=[StructuredMessage[When]]
    )


def test_6793_messages_with_times_in_them_are_kept_and_loaded(provider: Provider) -> None:
    told = [
        TextMessage(content="when?", source="user", metadata={"since": "2026"}),
        StructuredMessage[When](content=When(at=datetime(2026, 11, 30, tzinfo=UTC)), source="user"),
    ]
    kind = teams.Kind(dated, "", "", 1, task=lambda: told)
    run, _ = runs.recorded(kind)
    assert lockstep.replay(run, dated).identical
    heard = lockstep_autogen.thread(run, team=dated())
    assert [each.model_dump() for each in heard[:2]] == [each.model_dump() for each in told]


def test_570_each_call_says_when_it_began_and_how_long_it_took(provider: Provider) -> None:
    run, _ = runs.recorded(teams.named("round_robin"))
    shown = json.loads(command("show", f"{run}:1.1", "--json"))
    assert shown["began"] > 0
    assert shown["duration"] > 0


def failing(request: Request) -> Answer | None:
    if scripted_agents.asker(request) == "critic":
        return Answer("the model is overloaded", status=503)
    return scripted_agents.answered(request)


def test_6484_the_first_error_is_shown_and_not_what_hides_it(provider: Provider) -> None:
    provider.script = failing
    with pytest.raises(RuntimeError):
        runs.recorded(teams.named("round_robin"))
    log = command("log", "autogen/desk")
    assert "the model is overloaded" in log
    assert "interrupted" in log
    assert "Unhandled message in agent container" not in log
    provider.script = scripted_agents.answered
    mended = lockstep.fork("autogen/desk:1", teams.round_robin)
    assert (mended.state, mended.result.stop_reason) == ("complete", "Text 'APPROVE' mentioned")


def cached() -> Any:
    store: Any = InMemoryStore[list[str | CreateResult] | CreateResult]()
    cache = ChatCompletionCache(teams.client(), store)
    same = [teams.agent("author", model_client=cache), teams.agent("reviewer")]
    return RoundRobinGroupChat(same, name="cached", max_turns=2)


def test_2377_a_cache_of_the_users_is_seen_through(provider: Provider) -> None:
    kind = teams.Kind(cached, "", "", 2)
    run, _ = runs.recorded(kind)
    assert len(runs.calls(run, "model")) == 2
    assert lockstep.replay(run, cached).identical


def test_3164_a_tool_call_without_its_result_is_named_before_a_provider_refuses_it(provider: Provider) -> None:
    run, _ = runs.recorded(teams.named("round_robin"))
    channels = runs.timeline(run, lambda timeline: _state(timeline, 2))
    told = [each for each in channels["writer.context"] if each["type"] != "FunctionExecutionResultMessage"]
    why = restoring.refusal(teams.round_robin(), {**channels, "writer.context": told})
    assert why == "writer was told of the tool call call_1_0 and not of its result, which a model would refuse"
