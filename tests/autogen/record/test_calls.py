"""What each call is on the log: of models, tools, servers of tools, humans and code."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import looking
import pytest
import teams
from autogen_agentchat.agents import BaseChatAgent, UserProxyAgent
from autogen_agentchat.base import Response
from autogen_agentchat.messages import BaseChatMessage, TextMessage
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_core import CancellationToken
from autogen_core.models import SystemMessage
from autogen_core.tools import FunctionTool

import lockstep
import lockstep_autogen
from lockstep.errors import TargetError
from lockstep.testing import Provider

_MODEL = "gpt-4o-2024-08-06"


def test_a_models_call_says_what_it_was_asked_and_what_it_answered(provider: Provider) -> None:
    teams.run(lockstep_autogen.attach(teams.structured()), "judge")
    with looking.run("autogen/court") as seen:
        model = seen.effects(1)[0]
        request: Any = seen.timeline.request(model)
        assert [message["type"] for message in request["messages"]] == ["SystemMessage", "UserMessage"]
        assert request["json_output"]["schema"]["properties"]["score"] == {"title": "Score", "type": "integer"}
        assert set(request) == {"messages", "json_output"}
        answer: Any = seen.timeline.outcome(model)
        assert answer["content"].startswith('{"score": 1')
        assert answer["finish_reason"] == "stop" and answer["usage"]["prompt_tokens"] > 0
        assert seen.timeline.effect_class(model) == "inference"


def test_tools_that_are_offered_and_chosen_are_part_of_what_a_model_is_asked(provider: Provider) -> None:
    teams.run(lockstep_autogen.attach(teams.reflecting()), "refund order 7")
    with looking.run("autogen/thinking") as seen:
        first, _, reflection = seen.effects(1)
        offered: Any = seen.timeline.request(first)
        assert [tool["name"] for tool in offered["tools"]] == ["look_up"]
        assert "tool_choice" not in offered
        words: Any = seen.timeline.request(reflection)
        assert words["tool_choice"] == "none" and "tools" not in words


def test_a_stream_is_recorded_piece_by_piece_and_ends_with_its_answer(provider: Provider) -> None:
    team = lockstep_autogen.attach(teams.streaming())
    events = asyncio.run(teams.streamed(team, "refund order 7"))
    pieces = [event["content"] for event in events if event["type"] == "ModelClientStreamingChunkEvent"]
    assert len(pieces) > 3
    with looking.run("autogen/live") as seen:
        models = [effect for effect in seen.effects() if effect.kind == "model"]
        assert [part for model in models for part in seen.timeline.parts(model)] == pieces
        ended: Any = [seen.timeline.reader.body(seen.timeline.reader.main, model.end_seq) for model in models]
        assert [type(answer["content"]) for answer in ended] == [list, str, str, str]


def test_parallel_tools_are_calls_of_their_own_in_the_order_they_ended(provider: Provider) -> None:
    teams.run(lockstep_autogen.attach(teams.parallel()), "the weather")
    with looking.run("autogen/scouts") as seen:
        tools = [effect for effect in seen.effects() if effect.kind == "tool"]
        requests: Any = [seen.timeline.request(tool) for tool in tools]
        assert len({request["call_id"] for request in requests}) == 3
        outcomes: Any = [seen.timeline.outcome(tool) for tool in tools]
        ended = sorted(zip(tools, outcomes, strict=True), key=lambda each: each[0].end.pos)
        said = [outcome["result"][0]["content"] for _, outcome in ended]
        assert [text.split("look ")[1] for text in said] == ["1", "2", "3"]


def test_an_agent_that_is_a_tool_is_recorded_by_what_it_asks_itself(provider: Provider) -> None:
    teams.run(lockstep_autogen.attach(teams.agent_tool()), "refund order 7")
    with looking.run("autogen/asking") as seen:
        assert seen.calls(1) == [
            ("asking/main", "model", _MODEL), ("asking/main/expert", "model", _MODEL),
            ("asking/main/expert", "tool", "look_up"), ("asking/main/expert", "model", _MODEL),
        ]  # fmt: skip


def test_selectors_and_orchestrators_are_lanes_of_their_own(provider: Provider) -> None:
    teams.run(lockstep_autogen.attach(teams.selector()), "refund order 7")
    with looking.run("autogen/office") as seen:
        assert {lane for lane, _, _ in seen.calls()} == {
            "office/manager", "office/planner", "office/searcher", "office/analyst",
        }  # fmt: skip
        assert [seen.state(number)["selected"] for number in (1, 2, 3)] == [["planner"], ["searcher"], ["analyst"]]
        assert seen.state(4)["stop"] == "Text 'DONE' mentioned"


def test_what_a_tool_may_do_is_said_by_a_mark(provider: Provider) -> None:
    def marked(order: int) -> str:
        """Looks an order up."""
        return "40.00"

    tool = FunctionTool(lockstep.mark(marked, effect="read"), name="look_up", description="looks up")
    writer = teams.agent("writer", tools=[tool])
    teams.run(lockstep_autogen.attach(RoundRobinGroupChat([writer], name="desk", max_turns=1)), "refund order 7")
    with looking.run("autogen/desk") as seen:
        assert [seen.timeline.effect_class(effect) for effect in seen.effects()] == ["inference", "read"]


def test_a_person_is_asked_on_a_thread_as_ever(provider: Provider) -> None:
    asked: list[tuple[str, bool]] = []

    def say(prompt: str) -> str:
        asked.append((prompt, threading.current_thread() is threading.main_thread()))
        return "yes"

    user = UserProxyAgent("person", input_func=say)
    teams.run(lockstep_autogen.attach(RoundRobinGroupChat([user], name="desk", max_turns=1)), "may I?")
    assert asked == [("Enter your response: ", False)]
    with looking.run("autogen/desk") as seen:
        (human,) = seen.effects()
        assert (human.kind, seen.timeline.request(human)) == ("human", {"prompt": "Enter your response: "})
        assert seen.timeline.outcome(human) == "yes"


def test_code_is_run_by_a_call_and_whether_it_may_is_one_too(provider: Provider) -> None:
    teams.run(lockstep_autogen.attach(teams.executor()), "compute")
    with looking.run("autogen/workshop") as seen:
        *asked, code = seen.effects(2)
        if teams.agreed():
            (approval,) = asked
            assert (approval.kind, approval.name) == ("human", "approval")
            assert seen.timeline.outcome(approval) == {"approved": True, "reason": "a test"}
        assert (code.kind, code.name) == ("tool", "Inline")
        assert seen.timeline.request(code) == {"code": [{"language": "python", "code": "print(6 * 7)\n"}]}
        assert seen.timeline.outcome(code) == {"exit_code": 0, "output": "42\nrun 1"}


class _Hidden(BaseChatAgent):
    """Keeps its client and its tool where nobody looks for them."""

    def __init__(self, name: str, ask: Any, look_up: Any) -> None:
        super().__init__(name, "hides what it asks")
        self._ask = lambda: (ask, look_up)

    @property
    def produced_message_types(self) -> Any:
        return (TextMessage,)

    async def on_messages(self, messages: Any, cancellation_token: CancellationToken) -> Response:
        client, look_up = self._ask()
        said = await client.create([SystemMessage(content="You are critic.")])
        found = await look_up(order=7)
        message: BaseChatMessage = TextMessage(content=f"{said.content} {found}", source=self.name)
        return Response(chat_message=message)

    async def on_reset(self, cancellation_token: CancellationToken) -> None: ...


def test_what_cannot_be_seen_is_told(provider: Provider, told: pytest.LogCaptureFixture) -> None:
    agent = _Hidden("spy", teams.client(), teams.look_up)
    team = lockstep_autogen.attach(RoundRobinGroupChat([agent], name="desk", max_turns=1))
    (record,) = told.records
    assert record.getMessage() == (
        "lockstep does not see agent spy (_Hidden): no model client, workbench or tool was found in it: give what asks"
        " the outside to lockstep_autogen.record_model or record_tool"
    )
    teams.run(team, "go")
    with looking.run("autogen/desk") as seen:
        assert seen.calls() == []
        meta: Any = seen.timeline.reader.meta
        assert meta["native"]["unseen"] == [
            "agent spy (_Hidden): no model client, workbench or tool was found in it",
        ]


def test_what_is_given_to_record_model_and_record_tool_is_recorded(provider: Provider) -> None:
    client, look_up = lockstep_autogen.record_model(teams.client()), lockstep_autogen.record_tool(teams.look_up)
    agent = _Hidden("spy", client, look_up)
    teams.run(lockstep_autogen.attach(RoundRobinGroupChat([agent], name="desk", max_turns=1)), "go")
    assert asyncio.run(look_up(order=7)).startswith("order 7")  # outside of any team's turn: a plain call
    with looking.run("autogen/desk") as seen:
        assert seen.calls() == [("desk/spy", "model", _MODEL), ("desk/spy", "tool", "look_up")]
        assert seen.timeline.request(seen.effects()[1]) == {"arguments": {"order": 7}}


def test_teams_that_run_at_once_each_have_what_their_own_agents_asked(provider: Provider) -> None:
    client, look_up = lockstep_autogen.record_model(teams.client()), lockstep_autogen.record_tool(teams.look_up)
    made = [RoundRobinGroupChat([_Hidden("spy", client, look_up)], name=name, max_turns=2) for name in ("red", "blue")]

    async def both() -> None:
        await asyncio.gather(*(lockstep_autogen.attach(team).run(task="go") for team in made))

    asyncio.run(both())
    for name in ("red", "blue"):
        with looking.run(f"autogen/{name}") as seen:
            assert {lane for lane, _, _ in seen.calls()} == {f"{name}/spy"}
            assert len(seen.calls()) == 4


def test_an_agent_of_two_teams_is_recorded_with_the_first_and_that_is_told(
    provider: Provider, told: pytest.LogCaptureFixture
) -> None:
    agent = teams.agent("critic")
    first, second = (RoundRobinGroupChat([agent], name=name, max_turns=1) for name in ("first", "second"))
    lockstep_autogen.attach(first)
    assert told.records == []
    lockstep_autogen.attach(second)
    assert [record.args[0] for record in told.records if isinstance(record.args, tuple)] == [
        "second/critic: its OpenAIChatCompletionClient, which is recorded with first",
        "second/critic: its StaticStreamWorkbench, which is recorded with first",
    ]


def test_what_is_no_client_or_tool_is_refused() -> None:
    with pytest.raises(TargetError, match="LS402 record_model takes a ChatCompletionClient, not a str"):
        lockstep_autogen.record_model("gpt-4o")
    with pytest.raises(TargetError, match="LS402 record_tool takes a tool, a workbench or an async function"):
        lockstep_autogen.record_tool(print)
