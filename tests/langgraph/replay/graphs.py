"""Graphs of every shape that LangGraph has, each with the turns that a program runs on it."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Annotated, Any, TypedDict

from langchain.agents import create_agent
from langchain_core.tools import tool
from langgraph.func import entrypoint, task
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Command, RetryPolicy, Send, interrupt
from scripted import Asked, Streaming, says

QUESTION: Any = {"messages": [("user", "My order 452 is broken")]}
AGAIN: Any = {"messages": [("user", "And the other one?")]}
CALLS: Any = [("get_order", {"order_id": 452}), ("get_policy", {"about": "refunds"})]


class Shape:
    """One graph. `turns`: what each turn is given."""

    def __init__(self, build: Callable[[Asked, Any], Any], *turns: Any) -> None:
        self.build = build
        self.turns = turns


def tools(asked: Asked) -> list[Any]:
    @tool
    def get_order(order_id: int) -> str:
        """Looks up an order."""
        return f"order {order_id}: total {asked.tool('get_order')}"

    @tool
    def get_policy(about: str) -> str:
        """Looks up a policy."""
        return f"{about}: {asked.tool('get_policy')}"

    return [get_order, get_policy]


def ready_made(asked: Asked, saver: Any) -> Any:
    model = Streaming(says=says(CALLS, "Refunded", [("get_order", {"order_id": 453})], "That too"), asked=asked)
    return create_agent(model, tools(asked), checkpointer=saver)


def by_hand(asked: Asked, saver: Any) -> Any:
    model = Streaming(says=says(CALLS, "Refunded", [("get_order", {"order_id": 453})], "That too"), asked=asked)

    def ask(state: MessagesState) -> Any:
        return {"messages": [model.invoke(state["messages"])]}

    builder = StateGraph(MessagesState)
    builder.add_node("ask", ask)
    builder.add_node("tools", ToolNode(tools(asked)))
    builder.add_edge(START, "ask")
    builder.add_conditional_edges("ask", lambda state: "tools" if state["messages"][-1].tool_calls else END)
    builder.add_edge("tools", "ask")
    return builder.compile(checkpointer=saver)


def subgraphs(asked: Asked, saver: Any) -> Any:
    inner = by_hand(asked, None)
    builder = StateGraph(MessagesState)
    builder.add_node("support", inner)
    builder.add_node("close", lambda state: {"messages": [("ai", f"closed after {len(state['messages'])}")]})
    builder.add_edge(START, "support")
    builder.add_edge("support", "close")
    return builder.compile(checkpointer=saver)


def functional(asked: Asked, saver: Any) -> Any:
    model = Streaming(says=says("One", "Two"), asked=asked)

    @task
    def think(text: str) -> Any:
        return model.invoke([("user", text)])

    @entrypoint(checkpointer=saver)
    def flow(text: str, *, previous: Any = None) -> Any:
        both = [think(text), think(f"{text} again")]
        return entrypoint.final(value=[one.result().content for one in both], save=text)

    return flow


class Seen(TypedDict):
    items: list[str]
    seen: Annotated[list[str], operator.add]


def fan_out(asked: Asked, saver: Any) -> Any:
    model = Streaming(says=says("Fine"), asked=asked)

    def work(state: Any) -> Any:
        return {"seen": [f"{state['item']}: {model.invoke([('user', 'the same')]).content}"]}

    builder = StateGraph(Seen)
    builder.add_node("work", work)
    builder.add_conditional_edges(START, lambda state: [Send("work", {"item": item}) for item in state["items"]])
    return builder.compile(checkpointer=saver)


def interrupts(asked: Asked, saver: Any) -> Any:
    model = Streaming(says=says("Shall I?", "Done"), asked=asked)

    def ask(state: MessagesState) -> Any:
        return {"messages": [model.invoke(state["messages"])]}

    def human(state: MessagesState) -> Any:
        return {"messages": [("user", f"{interrupt('really?')}, {interrupt('really, really?')}")]}

    builder = StateGraph(MessagesState)
    builder.add_node("ask", ask)
    builder.add_node("human", human)
    builder.add_node("act", ask)
    builder.add_edge(START, "ask")
    builder.add_edge("ask", "human")
    builder.add_edge("human", "act")
    return builder.compile(checkpointer=saver)


def failures(asked: Asked, saver: Any) -> Any:
    model = Streaming(says=says("Hm", ValueError("the provider is down"), "Better"), asked=asked)
    tried: list[int] = []

    def fine(state: MessagesState) -> Any:
        return {"messages": [("ai", "fine")]}

    def ask(state: MessagesState) -> Any:
        tried.append(1)
        if len(tried) == 2:
            model.says = says("Better")
        elif len(tried) == 1:
            model.says = says(ValueError("the provider is down"))
        return {"messages": [model.invoke(state["messages"])]}

    builder = StateGraph(MessagesState)
    builder.add_node("fine", fine)
    builder.add_node("ask", ask)
    builder.add_edge(START, "fine")
    builder.add_edge(START, "ask")
    return builder.compile(checkpointer=saver)


def retries(asked: Asked, saver: Any) -> Any:
    model = Streaming(says=says("Hm"), asked=asked)
    tried: list[int] = []

    def ask(state: MessagesState) -> Any:
        tried.append(1)
        model.says = says("At last") if len(tried) > 2 else says(ConnectionError("lost"))
        return {"messages": [model.invoke(state["messages"])]}

    builder = StateGraph(MessagesState)
    policy = RetryPolicy(initial_interval=0.01, max_attempts=4, jitter=False)
    builder.add_node("ask", ask, retry_policy=policy)
    builder.add_edge(START, "ask")
    return builder.compile(checkpointer=saver)


SHAPES = {
    "create_agent": Shape(ready_made, QUESTION, AGAIN),
    "StateGraph and ToolNode": Shape(by_hand, QUESTION, AGAIN),
    "subgraphs": Shape(subgraphs, QUESTION, AGAIN),
    "functional API": Shape(functional, "first", "second"),
    "Send fan-out": Shape(fan_out, {"items": ["a", "b", "c"]}),
    "interrupts": Shape(interrupts, QUESTION, Command(resume="yes"), Command(resume="very")),
    "failures": Shape(failures, QUESTION, None),
    "retries": Shape(retries, QUESTION),
}
