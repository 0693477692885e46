"""Random journeys, each with the in-memory saver beside: after each thing done, both tell the same history.

More of them: `LOCKSTEP_JOURNEYS=500 pytest tests/langgraph/saver/test_random.py`.
"""

from __future__ import annotations

import operator
import os
import random
from collections.abc import Callable
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, RemoveMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Command, Send, interrupt
from saved_graphs import thread, told

from lockstep_langgraph import LockstepCheckpointer

type Saver = LockstepCheckpointer
type Opened = Callable[..., Saver]

JOURNEYS = int(os.environ.get("LOCKSTEP_JOURNEYS", "12"))


def merged(one: dict[str, Any] | None, other: dict[str, Any] | None) -> dict[str, Any]:
    return {**(one or {}), **(other or {})}


class State(TypedDict, total=False):
    seen: Annotated[list[Any], operator.add]
    messages: Annotated[list[AnyMessage], add_messages]
    files: Annotated[dict[str, Any], merged]
    word: str
    item: Any


def build(saver: Any, broken: set[str]) -> Any:
    """Routes by the word that it was given: to tasks at once, sent ones, a question, a subgraph, a failure."""

    def route(state: State) -> Any:
        word = state.get("word", "")
        if word.startswith("send"):
            return [Send("work", {"item": number, "word": word}) for number in range(int(word[4:]))]
        return {"ask": ["ask"], "both": ["left", "right"], "sub": ["inner"], "fail": ["fail"]}.get(word, ["left"])

    def work(state: State) -> Any:
        return {"seen": [f"work {state['item']}"], "files": {f"f{state['item']}": ["x"] * 3}}

    def left(state: State) -> Any:
        count = len(state.get("messages", []))
        return {"seen": ["left"], "messages": [AIMessage(content=f"m{count}", id=f"m{count}")]}

    def right(state: State) -> Any:
        messages = state.get("messages", [])
        changed: list[Any] = [AIMessage(content="edited", id=messages[0].id)] if messages else []
        gone: list[Any] = [RemoveMessage(id=str(messages[-1].id))] if len(messages) > 2 else []
        return {"seen": ["right"], "messages": changed + gone}

    def ask(state: State) -> Any:
        return {"seen": [interrupt("first"), interrupt("second")]}

    def fail(state: State) -> Any:
        if "fail" in broken:
            raise ValueError("broken")
        return {"seen": ["mended"]}

    inner = StateGraph(State)
    inner.add_node("deep", left)
    inner.add_node("ask", ask)
    inner.add_edge(START, "deep")
    inner.add_edge("deep", "ask")

    graph: Any = StateGraph(State)
    graph.add_node("begin", lambda state: {"seen": ["begin"]})
    for name, node in {"work": work, "left": left, "right": right, "ask": ask, "fail": fail}.items():
        graph.add_node(name, node)
        graph.add_edge(name, "last")
    graph.add_node("inner", inner.compile())
    graph.add_edge("inner", "last")
    graph.add_node("last", lambda state: Command(update={"seen": ["last"]}, goto=END))
    graph.add_edge(START, "begin")
    graph.add_conditional_edges("begin", route, ["work", "left", "right", "ask", "fail", "inner", "last"])
    return graph.compile(checkpointer=saver)


def does(graph: Any, chosen: random.Random, journey: list[Any]) -> Any:
    """One thing, the same for both savers: what is chosen from their histories is chosen by place."""
    history = list(graph.get_state_history(thread()))
    place = chosen.random()
    config = history[int(place * len(history))].config if history and chosen.random() < 0.35 else thread()
    what = chosen.choice(["in", "in", "in", "resume", "resume", "go", "update", "copy", "word"])
    word = chosen.choice(["ask", "both", "sub", "fail", "send3", "send1", "left"])
    durability = chosen.choice(["async", "async", "sync", "exit"])
    journey.append((what, word, durability, round(place, 2) if config is not thread() else None))
    values: dict[str, Any] = {
        "word": word,
        "seen": [word],
        "messages": [HumanMessage(content=word, id=f"h{chosen.randrange(6)}")],
        "files": {"in": {"n": chosen.random()}},
    }
    try:
        match what:
            case "resume":
                graph.invoke(Command(resume="answer"), config, durability=durability)
            case "go":
                graph.invoke(None, config, durability=durability)
            case "update":
                graph.update_state(config, {"seen": ["updated"]}, as_node=chosen.choice(["begin", "left", "last"]))
            case "copy":
                graph.update_state(config, None, as_node="__copy__")
            case "word":
                graph.update_state(config, {"word": word}, as_node="begin")
            case _:
                graph.invoke(values, config, durability=durability)
    except Exception as error:
        return type(error).__name__, str(error)


@pytest.mark.parametrize("seed", range(JOURNEYS))
def test_a_journey_is_told_as_with_the_in_memory_saver(saver: Saver, opened: Opened, seed: int) -> None:
    broken: set[str] = set()
    ours, theirs = build(saver, broken), build(InMemorySaver(), broken)
    choices = random.Random(seed)
    journey: list[Any] = []
    for number in range(choices.randrange(4, 12)):
        if choices.random() < 0.5:
            broken ^= {"fail"}
        step = choices.random()
        failed = [does(graph, random.Random(step), journey) for graph in (theirs, ours)]
        assert failed[0] == failed[1], journey
        assert told(ours, thread()) == told(theirs, thread()), journey
        if number % 4 == 3:
            ours = build(opened(), broken)
    again = opened()
    for graph in (ours, build(again, broken)):
        assert told(graph, thread()) == told(theirs, thread()), journey
    again.copy_thread("t", "copy")
    assert told(build(again, broken), thread("copy")) == told(theirs, thread()), journey
