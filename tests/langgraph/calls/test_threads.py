"""Calls of threads that Lockstep's own saver keeps: recorded without a session, replayed with the graph alone."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, interrupt
from scripted import Asked, Streaming, says

import lockstep
from lockstep_langgraph import LockstepCheckpointer

QUESTION: Any = {"messages": [("user", "hello")]}
THREAD: Any = {"configurable": {"thread_id": "t"}}


def replayed(graph: Any, asked: Asked) -> None:
    asked.clear()
    replay = lockstep.replay("langgraph/t", graph)
    assert replay.divergence is None
    assert replay.identical
    assert (asked.models, asked.tools) == (0, [])


@pytest.mark.parametrize("awaits", [False, True])
def test_an_agent_that_is_another_agent_s_tool(awaits: bool) -> None:
    asked = Asked()

    @tool
    def look(number: int) -> str:
        """Looks."""
        return f"{number}: {asked.tool('look')}"

    inner = create_agent(Streaming(says=says([("look", {"number": 7})], "seven"), asked=asked), [look])

    @tool
    def delegate(question: str) -> str:
        """Asks somebody else."""
        return str(inner.invoke({"messages": [("user", question)]})["messages"][-1].content)

    twice = [("delegate", {"question": "?"}), ("delegate", {"question": "?"})]
    model = Streaming(says=says(twice, "done"), asked=asked)
    graph: Any = create_agent(model, [delegate], checkpointer=LockstepCheckpointer())
    if awaits:
        asyncio.run(graph.ainvoke(QUESTION, THREAD))
    else:
        graph.invoke(QUESTION, THREAD)
    assert (asked.models, len(asked.tools)) == (6, 2)
    replayed(graph, asked)


def test_a_tool_that_asked_a_human() -> None:
    asked = Asked()

    @tool
    def refund(cents: int) -> str:
        """Refunds."""
        return f"{interrupt({'refund': cents})} {interrupt('sure?')} {asked.tool('refund')}"

    model = Streaming(says=says([("refund", {"cents": 40})], "done"), asked=asked)
    graph: Any = create_agent(model, [refund], checkpointer=LockstepCheckpointer())
    graph.invoke(QUESTION, THREAD)
    graph.invoke(Command(resume="approved"), THREAD)
    found = graph.invoke(Command(resume="quite"), THREAD)
    assert found["messages"][-2].content.startswith("approved quite ")
    replayed(graph, asked)


def test_equal_questions_at_once() -> None:
    asked = Asked()
    model = Streaming(says=says("hi"), asked=asked)

    def node(state: Any) -> Any:
        return {"messages": model.batch([f"question {n % 2}" for n in range(6)])}

    builder = StateGraph(MessagesState)
    builder.add_node("node", node)
    builder.add_edge(START, "node")
    graph = builder.compile(checkpointer=LockstepCheckpointer())
    graph.invoke(QUESTION, THREAD)
    assert asked.models == 6
    replayed(graph, asked)
