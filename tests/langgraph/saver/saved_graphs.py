"""Graphs that tests of the checkpointer run: real ones, whose nodes compute."""

from __future__ import annotations

import hashlib
import operator
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AIMessage, AnyMessage
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import interrupt

from lockstep.log.store import open_store


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


def branches(store: str, id: str = "t") -> dict[str, str]:
    """Of each branch of a thread, the one that it left."""
    with open_store(store) as opened:
        return {branch.name: branch.parent for branch in opened.run(f"langgraph/{id}").branches}


def told(graph: Any, config: Any) -> list[Any]:
    """A history without what is another in each run: steps, sources, values, what comes next, the parent's place."""
    history = list(graph.get_state_history(config))
    places = {state.config["configurable"]["checkpoint_id"]: place for place, state in enumerate(history)}
    return [
        (
            state.metadata["step"],
            state.metadata["source"],
            state.values,
            state.next,
            places.get(state.parent_config["configurable"]["checkpoint_id"]) if state.parent_config else None,
            # LangGraph's own savers have the text of an error only.
            [
                (
                    task.name,
                    repr(task.error) if isinstance(task.error, Exception) else task.error,
                    [each.value for each in task.interrupts],
                )
                for task in state.tasks
            ],
        )
        for state in history
    ]
