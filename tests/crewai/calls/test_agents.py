"""What agents, crews and guardrails ask, recorded and served where CrewAI asks it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from asked import Tape
from crew_events import Heard
from crewai import LLM, Agent, Crew, Process, Task
from crewai.agent.planning_config import PlanningConfig
from crewai.llms.providers.openai.completion import OpenAICompletion
from crewai.tools import tool
from crewai.types.streaming import CrewStreamingOutput
from pydantic import BaseModel

from lockstep.testing import Answer, Provider, Request, ToolCall

ran: list[str] = []


class TextOnly(OpenAICompletion):
    """A model that cannot be given tools."""

    def supports_function_calling(self) -> bool:
        return False


class Verdict(BaseModel):
    score: int


def agent(role: str, **more: Any) -> Agent:
    llm = more.pop("llm", None) or LLM(model="openai/gpt-4o")
    return Agent(role=role, goal=f"be a {role}", backstory="You do your work.", llm=llm, **more)


def task(name: str, **more: Any) -> Task:
    return Task(name=name, description=name, expected_output="a text", **more)


@tool("look_up")
def look_up(order: int) -> str:
    """Looks an order up."""
    ran.append("look_up")
    return f"order {order}, look {len(ran)}"


def asker(request: Request) -> str:
    said = json.dumps(request.json["messages"][0])
    return said.split("You are ")[1].split(".")[0] if "You are " in said else ""


def turns(request: Request) -> int:
    return sum(message["role"] == "assistant" for message in request.json["messages"])


def sequential(**more: Any) -> Any:
    writer, critic = agent("writer", tools=[look_up]), agent("critic")
    first = task("draft", agent=writer)
    return Crew(agents=[writer, critic], tasks=[first, task("judge", agent=critic, context=[first])], **more).kickoff()


def said(request: Request) -> Answer:
    if asker(request) == "writer" and turns(request) == 0:
        return Answer(calls=(ToolCall("look_up", {"order": 7}),))
    return Answer(f"{asker(request)} says {request.number}")


def said_in_words(request: Request) -> Answer:
    if turns(request) == 0:
        return Answer('Thought: look\nAction: look_up\nAction Input: {"order": 7}')
    return Answer(f"Thought: done\nFinal Answer: fine {request.number}")


def hierarchical() -> Any:
    crew = Crew(
        agents=[agent("writer", tools=[look_up])], tasks=[task("draft")], process=Process.hierarchical,
        manager_llm=LLM(model="openai/gpt-4o"),
    )  # fmt: skip
    return crew.kickoff()


def managed(request: Request) -> Answer:
    if asker(request) == "Crew Manager" and turns(request) == 0:
        given = {"task": "draft", "context": "order 7", "coworker": "writer"}
        return Answer(calls=(ToolCall("delegate_work_to_coworker", given),))
    return said(request)


def planned() -> Any:
    writer = agent("writer", tools=[look_up])
    crew = Crew(
        agents=[writer], tasks=[task("draft", agent=writer)], planning=True, planning_llm=LLM(model="openai/gpt-4o")
    )
    return crew.kickoff()


def said_by_plan(request: Request) -> Answer:
    if asker(request) == "Task Execution Planner":
        plan = {"list_of_plans_per_task": [{"task_number": 1, "task": "draft", "plan": f"look {request.number}"}]}
        return Answer(json.dumps(plan))
    return said(request)


looked_at: list[str] = []


def guarded() -> Any:
    def short(output: Any):  # type: ignore[no-untyped-def]
        looked_at.append(output.raw)
        return (True, output.raw) if len(looked_at) % 2 == 0 else (False, "say it once more")

    writer = agent("writer")
    return Crew(agents=[writer], tasks=[task("draft", agent=writer, guardrail=short)]).kickoff()


def guarded_by_model() -> Any:
    writer = agent("writer")
    return Crew(agents=[writer], tasks=[task("draft", agent=writer, guardrail="it is short")]).kickoff()


def guarding(request: Request) -> Answer:
    if asker(request) == "Guardrail Agent":
        return Answer(json.dumps({"valid": request.number > 2, "feedback": "shorter"}))
    return Answer(f"text {request.number}")


def typed() -> Any:
    writer = agent("writer")
    return Crew(agents=[writer], tasks=[task("draft", agent=writer, output_pydantic=Verdict)]).kickoff()


def judged(request: Request) -> Answer:
    return Answer(json.dumps({"score": request.number}))


def thoughtful() -> Any:
    writer = agent("writer", tools=[look_up], planning_config=PlanningConfig(max_attempts=1))
    return Crew(agents=[writer], tasks=[task("draft", agent=writer)]).kickoff()


def thought_over(request: Request, at_once: bool = False) -> Answer:
    offered = [each["function"]["name"] for each in request.json.get("tools", ())]
    if "create_reasoning_plan" in offered:
        steps = [
            {"step_number": number, "description": f"part {number}", "tool_to_use": "look_up", "depends_on": after}
            for number, after in ((1, []), (2, [] if at_once else [1]))
        ]  # fmt: skip
        return Answer(calls=(ToolCall("create_reasoning_plan", {"plan": "look", "steps": steps, "ready": True}),))
    if "look_up" in offered and not any(message["role"] == "tool" for message in request.json["messages"]):
        return Answer(calls=(ToolCall("look_up", {"order": 7}),))
    if "response_format" in request.json:
        seen = {"step_completed_successfully": True, "key_information_learned": "it is late"}
        return Answer(json.dumps({**seen, "remaining_plan_still_valid": True, "goal_already_achieved": False}))
    return Answer("it is late")


KINDS: dict[str, tuple[Callable[[], Any], Callable[[Request], Answer]]] = {
    "streamed": (lambda: sequential(stream=True), said),
    "in words in a loop": (lambda: asyncio.run(kicked_off(text_only_crew())), said_in_words),
    "hierarchical": (hierarchical, managed),
    "planned": (planned, said_by_plan),
    "guarded by a function": (guarded, lambda request: Answer(f"text {request.number}")),
    "guarded by a model": (guarded_by_model, guarding),
    "thoughtful": (thoughtful, thought_over),
    "typed": (typed, judged),
}


def text_only_crew() -> Crew:
    writer = agent("writer", tools=[look_up], llm=TextOnly(model="gpt-4o"))
    return Crew(agents=[writer], tasks=[task("draft", agent=writer)])


async def kicked_off(crew: Crew) -> Any:
    return await crew.akickoff()


def told(result: Any) -> Any:
    """What a kickoff came to, as far as it is to be the same again."""
    if isinstance(result, CrewStreamingOutput):
        return [[chunk.content for chunk in result], *told(result.result)]
    assert hasattr(result, "raw"), result
    return [result.raw, result.pydantic, result.token_usage.model_dump()]


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_the_same_recorded_or_not_and_nothing_is_asked_again(
    provider: Provider, tape: Tape, heard: Heard, kind: str
) -> None:
    run, script = KINDS[kind]
    provider.script = script
    plain, asked = once(provider, heard, lambda: told(run()))
    first, recorded = once(provider, heard, lambda: tape.record(lambda: told(run())))
    assert tape.faults == [] and first == plain and recorded == asked
    requests, tools = len(provider.seen), [*ran]
    assert len([call for call in tape.calls() if call[1] == "model"]) == requests
    assert len([call for call in tape.calls() if call[1] == "tool"]) == len(tools)
    provider.stop()
    again, (events, _) = once(provider, heard, lambda: tape.replay(lambda: told(run())))
    assert again == first and events == recorded[0]
    assert ran == [] and provider.seen == []


def once(provider: Provider, heard: Heard, run: Callable[[], Any]) -> tuple[Any, tuple[Any, list[Any]]]:
    """What a run came to, what listeners heard and what the provider was asked."""
    ran.clear()
    looked_at.clear()
    provider.seen.clear()
    result = run()
    assert not isinstance(result, BaseException), result
    return result, (heard.taken(), [request.json for request in provider.seen])


def test_a_long_result_is_kept_under_the_name_that_the_model_was_told(
    provider: Provider, tape: Tape, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(OpenAICompletion, "get_context_window_size", lambda self: 20_000)

    @tool("read_all")
    def read_all(order: int) -> str:
        """Reads all of it."""
        ran.append("read_all")
        return "\n".join(f"line {number} of {len(ran)}" for number in range(2_000))

    def said_of_long(request: Request) -> Answer:
        if turns(request) == 0:
            return Answer(calls=(ToolCall("read_all", {"order": 7}),))
        told_of = json.dumps(request.json["messages"])
        if turns(request) == 1:
            path = told_of.split("relative file path `")[1].split("`")[0]
            return Answer(calls=(ToolCall("read_a_deferred_tool_result", {"file_path": path, "line_count": 2}),))
        return Answer(told_of[-400:])

    provider.script = said_of_long
    ran.clear()

    def run() -> Any:
        writer = agent("writer", tools=[read_all])
        return told(Crew(agents=[writer], tasks=[task("draft", agent=writer)]).kickoff())

    first = tape.record(run)
    assert "line 1 of 1" in str(first) and ran == ["read_all"], first
    assert [name for _, kind, name in tape.calls() if kind == "tool"] == ["read_all"]
    provider.stop()
    assert tape.replay(run) == first
    assert ran == ["read_all"]


def test_a_tool_that_was_used_before_anybody_recorded_is_recorded(provider: Provider, tape: Tape) -> None:
    ran.clear()
    provider.script = said
    writer = agent("writer", tools=[look_up])
    crew = Crew(agents=[writer], tasks=[task("draft", agent=writer)])
    executor = writer.agent_executor
    crew.kickoff()
    assert writer.agent_executor is not executor and ran == ["look_up"]
    # As it was before: what was bound then is not asked for again.
    writer.agent_executor._available_functions = {"look_up": look_up.run.__func__.lockstep_plain.__get__(look_up)}
    assert "writer says" in tape.record(lambda: crew.kickoff().raw)
    assert ("tool", "look_up") in [(kind, name) for _, kind, name in tape.calls()]


def test_nobody_waits_for_a_minute_to_be_over_where_nobody_is_asked(
    provider: Provider, tape: Tape, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[float] = []
    monkeypatch.setattr("crewai.utilities.rpm_controller.time.sleep", waited.append)
    provider.script = said

    def run() -> Any:
        writer = agent("writer", tools=[look_up], max_rpm=1)
        return told(Crew(agents=[writer], tasks=[task("draft", agent=writer)]).kickoff())

    first = tape.record(run)
    assert waited == [60]
    provider.stop()
    assert tape.replay(run) == first
    assert waited == [60]


def test_steps_of_a_plan_that_are_done_at_once_have_lanes_of_their_own(provider: Provider, tape: Tape) -> None:
    provider.script = lambda request: thought_over(request, at_once=True)
    ran.clear()
    first = tape.record(lambda: told(thoughtful()))
    assert tape.faults == [] and len(ran) == 2, first
    lanes = {lane.rpartition("/")[2] for lane, kind, _ in tape.calls() if kind == "tool"}
    assert lanes == {"step-1", "step-2"}
    provider.stop()
    for _ in range(3):
        assert tape.replay(lambda: told(thoughtful())) == first
    assert len(ran) == 2
