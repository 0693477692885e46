"""Nothing of a team is another for being recorded."""

from __future__ import annotations

import asyncio
import copy
from pathlib import Path
from typing import Any, ClassVar

import looking
import pytest
import teams
from autogen_agentchat.agents import BaseChatAgent
from autogen_agentchat.base import Response
from autogen_agentchat.messages import TextMessage
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_core import CancellationToken, DefaultInterventionHandler, SingleThreadedAgentRuntime
from autogen_core.models import ChatCompletionClient
from autogen_core.tools import StaticStreamWorkbench, StaticWorkbench, Workbench
from autogen_ext.models.openai import OpenAIChatCompletionClient

import lockstep_autogen
from lockstep.testing import Provider
from lockstep_autogen import canonical, layout


class _Loud(DefaultInterventionHandler):
    """A user's own handler, which has the critic shout."""

    def __init__(self, word: str) -> None:
        self.word = word

    async def on_publish(self, message: Any, *, message_context: Any) -> Any:
        response = getattr(message, "response", None)
        if response is None or response.chat_message.source != "critic":
            return message
        said = TextMessage(content=f"{self.word} {response.chat_message.content}", source="critic")
        return type(message)(response=type(response)(chat_message=said), name=message.name)


def _texts(channels: dict[str, Any]) -> list[str]:
    return [said["content"] for said in channels[layout.MESSAGES]]


def test_a_users_handlers_still_win_and_keep_their_order(provider: Provider) -> None:
    team: Any = lockstep_autogen.attach(teams.round_robin())
    handlers: list[Any] = [_Loud("FIRST"), _Loud("LAST")]
    team._runtime._intervention_handlers = handlers
    result = teams.run(team, "refund order 7")
    assert result.stop_reason == "Text 'APPROVE' mentioned"
    assert team._runtime._intervention_handlers is handlers
    with looking.run("autogen/desk") as seen:
        assert _texts(seen.state(2)) == ["LAST say more (2)"]
        request: Any = seen.timeline.request(seen.effects(3)[0])
        assert request["messages"][-1]["content"] == "LAST say more (2)"


def test_a_runtime_of_the_users_own_is_recorded_too(provider: Provider) -> None:
    async def run() -> Any:
        runtime = SingleThreadedAgentRuntime(ignore_unhandled_exceptions=False)
        writer, critic = teams.agent("writer", tools=[teams.look_up]), teams.agent("critic")
        team = lockstep_autogen.attach(
            RoundRobinGroupChat([writer, critic], name="desk", runtime=runtime, max_turns=2)
        )  # fmt: skip
        runtime.start()
        try:
            return await team.run(task="refund order 7")
        finally:
            await runtime.stop_when_idle()

    result = asyncio.run(run())
    assert teams.speakers(result) == "user writer critic"
    with looking.run("autogen/desk") as seen:
        assert seen.names == ["user", "writer", "critic"]


def test_what_stands_in_is_what_it_stands_for(provider: Provider) -> None:
    client = teams.client()
    writer = teams.agent("writer", tools=[teams.look_up], model_client=client)
    bench = writer._workbench[0]
    lockstep_autogen.attach(RoundRobinGroupChat([writer], name="desk", max_turns=1))
    held: Any = writer._model_client
    assert held is not client and held == client and hash(held) == hash(client) and {held: 1}[client] == 1
    assert isinstance(held, OpenAIChatCompletionClient) and isinstance(held, ChatCompletionClient)
    assert held.model_info is client.model_info and repr(held) == repr(client)
    assert held.dump_component() == client.dump_component()
    held.noted = 3
    assert client.noted == 3 and copy.copy(writer._workbench[0]).__class__ is StaticStreamWorkbench
    stand_in: Any = writer._workbench[0]
    assert isinstance(stand_in, (StaticStreamWorkbench, StaticWorkbench, Workbench)) and stand_in == bench
    assert not isinstance(stand_in, ChatCompletionClient)


def test_a_teams_component_and_state_are_as_ever(provider: Provider) -> None:
    without, with_us = teams.round_robin(), lockstep_autogen.attach(teams.round_robin())
    assert with_us.dump_component() == without.dump_component()
    assert type(with_us).load_component(with_us.dump_component()).name == "desk"

    async def state(team: Any) -> Any:
        await team.run(task="refund order 7")
        return await team.save_state()

    async def both() -> tuple[Any, Any]:
        saved = await state(with_us)
        await with_us.reset()
        await with_us.load_state(saved)
        return saved, await with_us.save_state()

    saved, loaded = asyncio.run(both())
    assert canonical.state(canonical.inert(saved)) == canonical.state(canonical.inert(loaded))
    assert list(saved["agent_states"]) == ["writer", "critic", "RoundRobinGroupChatManager"]
    with looking.run("autogen/desk") as seen:
        assert seen.turns() == [("run", "ok"), ("reset", "ok"), ("load_state", "ok")]
        assert [step.kind for step in seen.steps[-2:]] == ["reset", "update"]
        assert seen.state(6)["thread"] == seen.state(4)["thread"] != seen.state(5)["thread"]


def test_clients_and_workbenches_may_be_shared(provider: Provider) -> None:
    client, bench = teams.client(), StaticStreamWorkbench([])
    shared: dict[str, Any] = {"model_client": client, "workbench": bench}
    team = RoundRobinGroupChat(
        [teams.agent("first", **shared), teams.agent("second", **shared)], name="two", max_turns=2
    )
    teams.run(lockstep_autogen.attach(team), "count")
    with looking.run("autogen/two") as seen:
        assert [lane for lane, _, _ in seen.calls()] == ["two/first", "two/second"]
    assert client.total_usage().prompt_tokens > 0
    assert team._participants[0]._model_client.total_usage() == client.total_usage()


def test_a_fault_of_ours_leaves_the_run_unharmed_and_is_on_the_log(
    provider: Provider, monkeypatch: pytest.MonkeyPatch, told: pytest.LogCaptureFixture
) -> None:
    def broken(*_: Any, **__: Any) -> Any:
        raise ZeroDivisionError("a fault of ours")

    monkeypatch.setattr("lockstep_autogen.models.question", broken)
    monkeypatch.setattr("lockstep_autogen.layout.body_of", broken)
    team = lockstep_autogen.attach(teams.round_robin())
    result = teams.run(team, "refund order 7")
    assert teams.speakers(result) == "user writer critic writer critic"
    assert provider.requests == 4 and teams.ran == ["look_up"]
    where = ("a model call", "a step of a team", "a team's state")
    faults = [f"{each}: ZeroDivisionError: a fault of ours" for each in where]
    assert sorted(record.args[0] for record in told.records if isinstance(record.args, tuple)) == faults
    with looking.run("autogen/desk") as seen:
        assert sorted(set(seen.faults())) == faults
        assert seen.calls() == [("desk/writer", "tool", "look_up")]
    assert looking.runs() == {"autogen/desk": "complete"}


def test_a_state_that_cannot_be_saved_is_no_fault_of_the_teams(provider: Provider) -> None:
    team: Any = teams.round_robin()

    class Forgetful(type(team._participants[1])):  # type: ignore[misc]
        async def save_state(self) -> Any:
            raise LookupError("no state")

    team._participants[1].__class__ = Forgetful
    result = teams.run(lockstep_autogen.attach(team), "refund order 7")
    assert result.stop_reason == "Text 'APPROVE' mentioned"
    with looking.run("autogen/desk") as seen:
        assert seen.names == ["user", "writer", "critic", "writer", "critic"]
        assert [seen.body(number).get(layout.CONSISTENT, True) for number in range(1, 5)] == [False] * 4
        assert _texts(seen.state(4)) == ["APPROVE (4)"]
        assert seen.faults() == ["a team's state: LookupError: no state"] * len(seen.faults()) != []


def test_a_store_that_cannot_be_opened_is_told_once_and_the_team_runs(
    provider: Provider, tmp_path: Path, told: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "no.db").write_bytes(b"this is no store " * 100)
    team = lockstep_autogen.attach(teams.round_robin(), store=tmp_path / "no.db")
    assert teams.speakers(teams.run(team, "refund order 7")) == "user writer critic writer critic"
    assert [record.message[:55] for record in told.records] == [
        "lockstep could not record: the run of a team: StoreErro"
    ]


class _Listed(BaseChatAgent):
    """Streams by an iterator that is no generator, and so cannot be closed."""

    @property
    def produced_message_types(self) -> Any:
        return (TextMessage,)

    async def on_messages(self, messages: Any, cancellation_token: CancellationToken) -> Response:
        return Response(chat_message=TextMessage(content="listed", source=self.name))

    def on_messages_stream(self, messages: Any, cancellation_token: CancellationToken) -> Any:
        class _Once:
            left: ClassVar[list[Any]] = [Response(chat_message=TextMessage(content="listed", source=self.name))]

            def __aiter__(self) -> Any:
                return self

            async def __anext__(self) -> Any:
                if not self.left:
                    raise StopAsyncIteration
                return self.left.pop()

        return _Once()

    async def on_reset(self, cancellation_token: CancellationToken) -> None: ...


def test_a_stream_that_cannot_be_closed_is_read_all_the_same(provider: Provider) -> None:
    agent = lockstep_autogen.attach(_Listed("lister", "lists"))

    async def run() -> list[Any]:
        stream = agent.on_messages_stream([TextMessage(content="go", source="user")], CancellationToken())
        return [item async for item in stream]

    (response,) = asyncio.run(run())
    assert response.chat_message.content == "listed"
    with looking.run("autogen/lister") as seen:
        assert seen.turns() == [("on_messages_stream", "ok")]
        assert seen.names == ["user", "lister"]
