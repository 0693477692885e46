"""Graphs that tests of the checkpointer run: real ones, whose nodes compute."""

from __future__ import annotations

import hashlib
import operator
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AIMessage, AnyMessage
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import interrupt


class Chat(TypedDict, total=False):
    messages: Annotated[list[AnyMessage], add_messages]
    left: int


def chat(saver: Any, size: int = 40) -> Any:
    """Answers `left` times, with texts that differ."""

    def answer(state: Chat) -> Any:
        number = len(state["messages"])
        text = "".join(hashlib.sha256(f"{number}.{part}".encode()).hexdigest() for part in range(size // 64 + 1))
        return {"messages": [AIMessage(content=text[:size])], "left": state["left"] - 1}

    graph = StateGraph(Chat)
    graph.add_node("answer", answer)
    graph.add_edge(START, "answer")
    graph.add_conditional_edges("answer", lambda state: "answer" if state["left"] > 0 else END)
    return graph.compile(checkpointer=saver)


class Trail(TypedDict, total=False):
    seen: Annotated[list[str], operator.add]
    word: str


def line(saver: Any, *names: str, **nodes: Any) -> Any:
    """Nodes one after the other; each leaves its name, or does what is given for it."""
    graph = StateGraph(Trail)
    for before, name in zip((START, *names), names, strict=False):
        graph.add_node(name, nodes.get(name, lambda state, name=name: {"seen": [name]}))
        graph.add_edge(before, name)
    graph.add_edge(names[-1], END)
    return graph.compile(checkpointer=saver)


def asking(saver: Any) -> Any:
    """Stops to ask a human, and leaves the answer."""

    def ask(state: Trail) -> Any:
        return {"seen": [f"answered {interrupt('may I?')}"]}

    return line(saver, "plan", "ask", "act", ask=ask)


def fan(saver: Any, *names: str, **nodes: Any) -> Any:
    """Nodes at once, then one that ends it."""
    graph = StateGraph(Trail)
    for name in names:
        graph.add_node(name, nodes.get(name, lambda state, name=name: {"seen": [name]}))
        graph.add_edge(START, name)
        graph.add_edge(name, "join")
    graph.add_node("join", lambda state: {"seen": ["join"]})
    graph.add_edge("join", END)
    return graph.compile(checkpointer=saver)


def thread(id: Any = "t", **more: Any) -> dict[str, Any]:
    return {"configurable": {"thread_id": id, **more}, "recursion_limit": 10_000}
