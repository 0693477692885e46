"""Where a crew's values came from: from one agent's task to the tool of another's."""

from __future__ import annotations

import pytest
from crewai import LLM, Agent, Crew, Task
from crewai.tools import tool

import lockstep
import lockstep_crewai
from lockstep.testing import Answer, Provider, ToolCall


@tool("get_order")
def get_order(order: int) -> str:
    """What an order cost."""
    return f"order {order} total {4000 + order % 10}"


@pytest.fixture
def crew(provider: Provider) -> str:
    """Two orders are looked up, and one is paid back by another agent."""
    answers = [
        Answer(calls=(ToolCall("get_order", {"order": 451}),)), Answer(calls=(ToolCall("get_order", {"order": 452}),)),
        Answer("The total of order 452 is 4002."), Answer("Paid back 4002 cents."),
    ]  # fmt: skip
    provider.script = lambda _: answers.pop(0)
    model = LLM(model="openai/gpt-4o")
    searcher = Agent(role="searcher", goal="Know orders.", backstory="You search.", llm=model, tools=[get_order])
    clerk = Agent(role="clerk", goal="Pay back.", backstory="You pay.", llm=model)
    look = Task(name="look", description="What did order {order} cost?", expected_output="a total", agent=searcher)
    pay = Task(name="pay", description="Refund order {order}.", expected_output="what was paid", agent=clerk)
    made = Crew(name="refund", agents=[searcher, clerk], tasks=[look, pay])
    lockstep_crewai.wrap(made).kickoff(inputs={"order": 452})
    return "crewai/refund"


@pytest.mark.parametrize("address", ["2", "2.1", "1.5"])
def test_what_one_task_says_is_followed_to_the_tool_of_another(crew: str, address: str) -> None:
    first = lockstep.why(f"{crew}:{address}", "4002").origins[0]
    assert (first.address, first.kind, first.name) == (f"{crew}:1.4", "tool", "get_order")


def test_what_the_crew_was_given_is_an_input(crew: str) -> None:
    first = lockstep.why(f"{crew}:1.4", "order").origins[0]
    assert (first.address, first.kind) == (f"{crew}:0", "input")
