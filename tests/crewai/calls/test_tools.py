"""Tools' runs, recorded and served: on both ways that CrewAI runs them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from asked import LANE, Tape
from crewai import Agent
from crewai.tools import BaseTool, tool
from crewai.tools.agent_tools.add_image_tool import AddImageTool
from crewai.tools.agent_tools.delegate_work_tool import DelegateWorkTool
from crewai.tools.structured_tool import CrewStructuredTool, ToolUsageLimitExceededError
from crewai.tools.tool_failure import ToolFailure
from pydantic import BaseModel

import lockstep
from lockstep.errors import Code, Divergence
from lockstep.testing import Answer, Provider

ran: list[str] = []


class Found(BaseModel):
    order: int
    cents: int


class LookUp(BaseTool):
    name: str = "look_up"
    description: str = "Looks an order up."

    def _run(self, order: int) -> Any:
        ran.append(f"run {order}")
        if order < 0:
            raise KeyError("no such order")
        return Found(order=order, cents=4000)

    async def _arun(self, order: int) -> Any:
        return self._run(order)


class Loud(LookUp):
    """One with a run of its own."""

    def run(self, *args: Any, **options: Any) -> Any:
        return f"{super().run(*args, **options)}!"


@tool("refund")
def refund(order: int, cents: int = 100) -> str:
    """Pays an order back."""
    ran.append(f"refund {order}")
    return f"refunded {cents}, {len(ran)}"


@tool("later")
async def later(order: int) -> str:
    """Pays an order back, some time."""
    ran.append(f"later {order}")
    return f"later, {len(ran)}"


def broken(order: int) -> str:
    """Reports that it did not do it."""
    ran.append("broken")
    return ToolFailure(message="the till is closed", code="closed")  # type: ignore[return-value]


@pytest.fixture(autouse=True)
def nothing_ran() -> None:
    ran.clear()


def both(tape: Tape, code: Any) -> tuple[Any, Any]:
    """What code gave when it was recorded and when it was served; no tool ran then."""
    first = tape.record(code)
    before = [*ran]
    again = tape.replay(code)
    assert ran == before
    return first, again


ways: dict[str, Any] = {
    "run of a class": lambda: LookUp().run(order=7),
    "arun of a class": lambda: asyncio.run(LookUp().arun(order=7)),
    "run of a function": lambda: refund.run(order=7),
    "run by place": lambda: refund.run(7, 300),
    "run of a coroutine function": lambda: later.run(order=7),
    "arun of a coroutine function": lambda: asyncio.run(later.arun(order=7)),
    "invoke of a class": lambda: LookUp().to_structured_tool().invoke({"order": 7}),
    "invoke of a function": lambda: refund.to_structured_tool().invoke({"order": 7}, {"a": "fingerprint"}),
    "invoke of JSON": lambda: refund.to_structured_tool().invoke('{"order": 7}'),
    "ainvoke of a class": lambda: asyncio.run(LookUp().to_structured_tool().ainvoke({"order": 7})),
    "ainvoke of a coroutine function": lambda: asyncio.run(
        CrewStructuredTool.from_function(later.func, name="later").ainvoke({"order": 7})
    ),
    "invoke of a plain function": lambda: CrewStructuredTool.from_function(refund.func, name="refund").invoke(
        {"order": 7}
    ),
    "run of one with its own": lambda: Loud().run(order=7),
    "a reported failure": lambda: tool("broken")(broken).run(order=7),
}


@pytest.mark.parametrize("way", ways)
def test_a_tool_is_served_on_each_way_to_run_it(tape: Tape, way: str) -> None:
    first, again = both(tape, ways[way])
    assert first == again and type(first) is type(again)
    assert len(ran) == 1
    assert len(tape.calls()) == 1 and tape.calls()[0][:2] == (LANE, "tool")
    assert tape.faults == []


def test_what_a_tool_is_asked_is_its_arguments_by_name(tape: Tape) -> None:
    tape.record(lambda: [refund.run(7, 300), refund.run(order=7, cents=300), refund.run(order=7)])
    assert tape.calls() == [(LANE, "tool", "refund")] * 3
    assert [tape.request(number)["arguments"] for number in range(3)] == [
        {"order": 7, "cents": 300}, {"order": 7, "cents": 300}, {"order": 7},
    ]  # fmt: skip
    assert tape.effect_class() == "unknown"


def test_equal_calls_get_their_answers_in_the_order_in_which_they_were_made(tape: Tape) -> None:
    first, again = both(tape, lambda: [refund.run(order=7) for _ in range(3)])
    assert first == again == ["refunded 100, 1", "refunded 100, 2", "refunded 100, 3"]


@pytest.mark.parametrize("way", ["run", "invoke", "ainvoke"])
def test_a_failure_is_raised_again_as_it_was(tape: Tape, way: str) -> None:
    def use() -> Any:
        looking = LookUp()
        if way == "run":
            return looking.run(order=-1)
        structured = looking.to_structured_tool()
        return asyncio.run(structured.ainvoke({"order": -1})) if way == "ainvoke" else structured.invoke({"order": -1})

    first, again = both(tape, use)
    assert type(first) is type(again) is KeyError and str(first) == str(again)
    assert ran == ["run -1"]


def test_arguments_that_do_not_fit_are_refused_again(tape: Tape) -> None:
    def use() -> Any:
        looking = LookUp()
        try:
            looking.run(order="seven")
        finally:
            assert looking.current_usage_count == 0

    first, again = both(tape, use)
    assert type(first) is type(again) is ValueError and str(first) == str(again)
    assert "arguments validation failed" in str(again)
    assert ran == []


def test_a_tool_that_is_served_counts_as_used(tape: Tape) -> None:
    def use() -> Any:
        looking = LookUp(max_usage_count=2)
        found = [looking.run(order=number) for number in range(3)]
        return [*found, looking.current_usage_count]

    first, again = both(tape, use)
    assert first == again
    assert first[-1] == 2 and first[2].message.endswith("2 times and cannot be used anymore.")

    structured = Tape("structured")

    def invoke() -> Any:
        looking = LookUp(max_usage_count=1).to_structured_tool()
        looking.invoke({"order": 1})
        assert (looking.current_usage_count, looking._original_tool.current_usage_count) == (1, 1)
        return looking.invoke({"order": 2})

    first, again = both(structured, invoke)
    assert type(first) is type(again) is ToolUsageLimitExceededError and str(first) == str(again)


def test_another_call_is_stopped_by_what_nobody_can_take_for_a_failure(tape: Tape) -> None:
    tape.record(lambda: refund.run(order=7))
    found = tape.serve(lambda: refund.run(order=8))
    assert isinstance(found, Divergence) and not isinstance(found, Exception)
    assert found.difference.path == "arguments.order"
    assert ran == ["refund 7"]


def test_what_a_tool_may_do_is_said_by_a_mark(tape: Tape) -> None:
    def look(order: int) -> str:
        """Looks."""
        return "fine"

    marked = tool("look")(lockstep.mark(look, effect="read"))
    of_class = LookUp()
    lockstep.mark(of_class, effect="mutating")

    def use() -> None:
        marked.run(order=7)
        marked.to_structured_tool().invoke({"order": 7})
        of_class.run(order=7)
        of_class.to_structured_tool().invoke({"order": 7})

    tape.record(use)
    assert [tape.effect_class(number) for number in range(4)] == ["read", "read", "mutating", "mutating"]


@pytest.mark.parametrize("way", ["run", "invoke", "ainvoke"])
def test_a_tool_that_asks_another_agent_runs_and_what_that_asks_is_served(
    provider: Provider, tape: Tape, way: str
) -> None:
    provider.script = [Answer("it is late")]

    def use() -> Any:
        helper = Agent(role="helper", goal="help", backstory="You do your work.", llm="openai/gpt-4o")
        delegate = DelegateWorkTool(agents=[helper], description="asks")
        given = {"task": "look at the order", "context": "order 7", "coworker": "helper"}
        if way == "run":
            return delegate.run(**given)
        structured = delegate.to_structured_tool()
        return asyncio.run(structured.ainvoke(given)) if way == "ainvoke" else structured.invoke(given)

    assert tape.record(use) == "it is late"
    assert [kind for _, kind, _ in tape.calls()] == ["model"]
    provider.stop()
    assert tape.replay(use) == "it is late"


def test_a_tool_that_only_hands_on_what_it_is_given_is_no_call(tape: Tape) -> None:
    first, again = both(tape, lambda: AddImageTool().run(image_url="http://127.0.0.1/a.png"))
    assert first == again and tape.calls() == []


def test_a_model_that_a_tool_asks_is_a_part_of_the_tool(provider: Provider, tape: Tape) -> None:
    from crewai import LLM

    provider.script = [Answer("forty")]

    @tool("think")
    def think(order: int) -> str:
        """Thinks."""
        ran.append("think")
        return f"{LLM(model='openai/gpt-4o').call('how much?')}, {len(ran)}"

    assert tape.record(lambda: think.run(order=7)) == "forty, 1"
    provider.stop()
    assert tape.replay(lambda: think.run(order=7)) == "forty, 1"
    assert ran == ["think"]
    assert tape.calls() == [(LANE, "tool", "think")]


def test_what_cannot_be_recorded_is_told_and_its_replay_stops_there(tape: Tape) -> None:
    @tool("stream")
    def stream(order: int) -> Any:
        """Streams."""
        return iter([order])

    assert [*tape.record(lambda: stream.run(order=7))] == [7]
    assert len(tape.faults) == 1 and tape.faults[0].startswith("result of tool stream: ")
    assert isinstance(tape.serve(lambda: stream.run(order=7)), Divergence)
    assert tape.difference is not None and tape.difference.code == Code.UNSERVABLE


def test_a_class_that_is_made_later_is_seen_too(tape: Tape) -> None:
    class Later(LookUp):
        def run(self, *args: Any, **options: Any) -> Any:
            ran.append("its own")
            return "later"

    assert both(tape, lambda: Later().run(order=7)) == ("later", "later")
    assert ran == ["its own"]


def test_nobody_is_asked_outside_of_a_recording(tape: Tape) -> None:
    assert refund.run(order=7) == "refunded 100, 1"
    assert refund.to_structured_tool().invoke({"order": 7}) == "refunded 100, 2"
    assert not tape.exists()
