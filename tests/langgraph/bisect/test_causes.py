"""With a good thread: the smallest set of calls whose answers cure the bad one, over tasks and lanes."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from scripted import Asked, Scripted
from threads_to_fork import Bench, State, on

import lockstep

FAULT = "fault"
NODES = ("a", "b", "c", "d", "e", "f")


def said_fault(run: Any) -> bool:
    return any(FAULT in said for said in run.result["said"])


def looking(bench: Bench, asked: Asked, wrong: Collection[str], *, beside: bool) -> Any:
    """Each node looks something up. `beside`: all at once, else one after another."""

    @tool
    def look(name: str) -> dict[str, Any]:
        """Looks something up."""
        asked.tool(name)
        return {"id": f"{'late' if wrong else 'early'} {name}", "says": FAULT if name in wrong else f"{name} is fine"}

    lockstep.mark(look, effect="read")
    graph = StateGraph(State)
    for name in NODES:
        graph.add_node(name, lambda state, name=name: {"said": [look.invoke({"name": name})["says"]]})
    for before, after in zip([START, *NODES], NODES, strict=False):
        graph.add_edge(START if beside else before, after)
    return graph.compile(checkpointer=bench.saver())


@pytest.mark.parametrize("beside", [False, True], ids=["one after another", "beside each other"])
@pytest.mark.parametrize("pair", [("a", "b"), ("b", "e"), ("a", "f")])
def test_a_pair_of_which_either_spoils_the_thread_is_found_without_a_call(
    bench: Bench, pair: tuple[str, str], beside: bool
) -> None:
    asked, wrong = Asked(), set(pair)
    graph = looking(bench, asked, wrong, beside=beside)
    graph.invoke({"said": []}, on("bad"))
    wrong.clear()
    graph.invoke({"said": []}, on("good"))
    asked.clear()
    found = lockstep.bisect("langgraph/bad", graph, bad=said_fault, good="langgraph/good", store=bench.store)
    assert (found.verdict, found.minimal, found.live_calls, asked.tools) == ("culprit", True, 0, [])
    looked = [_looked(bench, at) for at in found.causes]
    assert sorted(looked) == sorted(pair)
    # The thread forked with both is good, and with either alone it is not.
    for chosen in ([*found.causes], *([at] for at in found.causes)):
        edits = {f"{at}:says": "fine" for at in chosen}
        last = max(int(at.partition(".")[0]) for at in found.causes)
        said = lockstep.fork(f"langgraph/bad:{last}", graph, edits=edits, tail="record", store=bench.store)
        assert (FAULT in said.result["said"]) == (len(chosen) == 1)
    again = lockstep.bisect("langgraph/bad", graph, bad=said_fault, good="langgraph/good", store=bench.store)
    assert again.causes == found.causes and all(probe.found for probe in again.tried)


def _looked(bench: Bench, at: str) -> str:
    from lockstep.log.store import open_store
    from lockstep.log.timeline import resolve

    with open_store(bench.store) as store:
        place = resolve(store, f"langgraph/bad:{at}")
        assert place.effect is not None
        request: Any = place.timeline.request(place.effect)
        return next(name for name in NODES if f"'{name}'" in str(request))


def test_the_culprit_s_answer_is_shrunk_to_what_is_bad_in_it(bench: Bench) -> None:
    asked, wrong = Asked(), {"c"}
    graph = looking(bench, asked, wrong, beside=False)
    graph.invoke({"said": []}, on("bad"))
    wrong.clear()
    graph.invoke({"said": []}, on("good"))
    asked.clear()
    found = lockstep.bisect(
        "langgraph/bad", graph, bad=said_fault, good="langgraph/good", shrink=True, store=bench.store
    )
    assert (found.verdict, found.shrunk) == ("culprit", {"says": FAULT})
    assert (found.live_calls, asked.tools) == (0, [])


def agent(bench: Bench, asked: Asked, wrong: Collection[int]) -> Any:
    """A model asks for three looks at once, and tells what it heard."""

    @tool
    def look(order: int) -> str:
        """Looks an order up."""
        asked.tool("look")
        return f"order {order}: {FAULT if order in wrong else 'fine'}"

    lockstep.mark(look, effect="read")

    def says(messages: list[Any]) -> AIMessage:
        heard = [str(message.content) for message in messages if message.type == "tool"]
        if heard:
            return AIMessage(", ".join(heard))
        return AIMessage("", tool_calls=[{"name": "look", "args": {"order": n}, "id": f"{n}"} for n in (1, 2, 3)])

    model = Scripted(says=says, asked=asked)
    graph = StateGraph(MessagesState)
    graph.add_node("model", lambda state: {"messages": [model.invoke(state["messages"])]})
    graph.add_node("tools", ToolNode([look]))
    graph.add_edge(START, "model")
    graph.add_conditional_edges(
        "model", lambda state: "tools" if state["messages"][-1].tool_calls else "__end__", ["tools", "__end__"]
    )
    graph.add_edge("tools", "model")
    return graph.compile(checkpointer=bench.saver())


def looked_wrong(run: Any) -> bool:
    return any(FAULT in str(call.outcome) for call in run.calls if call.kind == "tool")


def test_what_the_model_was_asked_in_the_good_thread_it_is_not_asked_again(bench: Bench) -> None:
    asked, wrong = Asked(), {2}
    graph = agent(bench, asked, wrong)
    question = {"messages": [("user", "look")]}
    graph.invoke(question, on("bad"))
    wrong.clear()
    graph.invoke(question, on("good"))
    asked.clear()
    found = lockstep.bisect("langgraph/bad", graph, bad=looked_wrong, good="langgraph/good", store=bench.store)
    assert (found.verdict, len(found.causes), found.minimal, found.name) == ("culprit", 1, True, "tool look")
    assert (found.live_calls, asked.tools, asked.models) == (0, [], 0)


def test_a_pair_that_the_model_hears_together_costs_a_call_where_it_hears_one(bench: Bench) -> None:
    asked, wrong = Asked(), {1, 3}
    graph = agent(bench, asked, wrong)
    question = {"messages": [("user", "look")]}
    graph.invoke(question, on("bad"))
    wrong.clear()
    graph.invoke(question, on("good"))
    asked.clear()
    found = lockstep.bisect("langgraph/bad", graph, bad=looked_wrong, good="langgraph/good", store=bench.store)
    assert (found.verdict, len(found.causes), found.minimal) == ("culprit", 2, True)
    # With one bad answer of two, the model hears what it never heard, and with none what it heard in the good thread.
    assert 0 < found.live_calls == asked.models <= 3 and asked.tools == []
