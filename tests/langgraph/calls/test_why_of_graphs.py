"""Where a graph's values came from: followed through the states of its steps to what a tool said."""

from __future__ import annotations

import json
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.messages import AnyMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.graph import START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.prebuilt import ToolNode, tools_condition

import lockstep
from lockstep.testing import Answer, Provider, ToolCall
from lockstep_langgraph import LockstepCheckpointer


class State(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]


@tool
def get_order(order: int) -> str:
    """What was ordered."""
    return json.dumps({"order": order, "total": 4000 + order % 10})


@tool
def issue_refund(order: int, cents: int) -> str:
    """Pays money back."""
    return json.dumps({"order": order, "cents": cents})


@pytest.fixture
def thread(provider: Provider) -> str:
    """A refund of order 452, where 451 was looked up too."""
    answers = [
        Answer(calls=(ToolCall("get_order", {"order": 451}), ToolCall("get_order", {"order": 452}))),
        Answer(calls=(ToolCall("issue_refund", {"order": 452, "cents": 4002}),)),
        Answer("I refunded 4,002 cents of order 452."),
    ]
    provider.script = lambda _: answers.pop(0)
    tools: list[Any] = [get_order, issue_refund]
    model = ChatOpenAI(model="gpt-4o", base_url=f"{provider.url}/v1", api_key="sk-test").bind_tools(tools)
    graph: Any = StateGraph(State)
    graph.add_node("agent", lambda state: {"messages": [model.invoke(state["messages"])]})
    graph.add_node("tools", ToolNode(tools))
    graph.add_edge(START, "agent")
    graph.add_conditional_edges("agent", tools_condition)
    graph.add_edge("tools", "agent")
    compiled = graph.compile(checkpointer=LockstepCheckpointer())
    given = {"messages": [("user", "Refund order 452, not 451")]}
    compiled.invoke(given, {"configurable": {"thread_id": "t-91"}})
    return "langgraph/t-91"


@pytest.mark.parametrize(
    ("address", "path"), [("4.1", "cents"), ("5", "4002"), ("5.1", "request.arguments.cents"), ("6", "4002")]
)
def test_the_tool_that_said_it_is_the_origin_wherever_it_is_asked_of(thread: str, address: str, path: str) -> None:
    first = lockstep.why(f"{thread}:{address}", path).origins[0]
    assert (first.address, first.name) == (f"{thread}:3.2", "get_order")
    assert first.path.endswith("total")


def test_what_the_user_said_is_an_input(thread: str) -> None:
    first = lockstep.why(f"{thread}:5.1", "request.arguments.order").origins[0]
    assert (first.address, first.kind) == (f"{thread}:0", "input")
