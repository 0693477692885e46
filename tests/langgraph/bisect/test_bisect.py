"""Bisect names the step, task or call that makes a thread's run bad, and runs no more than what comes after a cut."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Command, interrupt
from scripted import Asked, Scripted
from threads_to_fork import Bench, State, on

import lockstep
from lockstep.debugger.verdict import Verdict
from lockstep.errors import TargetError

NODES = 64
FAULT = "fault"


class Planted:
    """A chain of nodes, one of which says `fault` while the thread is recorded, and is right ever after.

    anew  whether nodes say something else each time that they run, as models do
    """

    def __init__(self, bench: Bench, faulty: int, *, anew: bool = False, nodes: int = NODES) -> None:
        self.bench = bench
        self.faulty = faulty
        graph = StateGraph(State)
        count = itertools.count(1)
        names = [f"n{number}" for number in range(1, nodes + 1)]
        for number, name in enumerate(names, 1):

            def run(state: Any, name: str = name, number: int = number) -> Any:
                bench.ran.append(name)
                said = f"{name} {next(count)}" if anew else name
                return {"said": [FAULT if number == self.faulty else said]}

            graph.add_node(name, run)
        for before, after in zip([START, *names], names, strict=False):
            graph.add_edge(before, after)
        self.graph = graph.compile(checkpointer=bench.saver())
        self.graph.invoke({"said": []}, {**on("t"), "recursion_limit": nodes + 2})
        self.faulty = 0
        bench.ran.clear()

    def bisect(self, **options: Any) -> Verdict:
        return lockstep.bisect("langgraph/t", self.graph, bad=says_fault, store=self.bench.store, **options)


def says_fault(run: Any) -> bool:
    return FAULT in run.result["said"]


@pytest.mark.parametrize("faulty", [1, NODES // 2, NODES - 1, NODES])
def test_a_fault_in_a_graph_that_does_again_what_it_did_costs_a_third_at_most(bench: Bench, faulty: int) -> None:
    found = (planted := Planted(bench, faulty)).bisect()
    assert (found.verdict, found.step, found.name) == ("culprit", faulty + 1, f"task n{faulty}")
    assert found.probes <= 7
    assert len(bench.ran) <= 7 * NODES / 3
    assert planted.bisect().probes == found.probes
    assert len(bench.ran) <= 7 * NODES / 3  # what was made is not made again


@pytest.mark.parametrize("faulty", [1, NODES // 2, NODES])
def test_where_every_answer_is_a_new_one_a_probe_costs_what_comes_after_its_cut(bench: Bench, faulty: int) -> None:
    found = Planted(bench, faulty, anew=True).bisect()
    assert (found.verdict, found.step) == ("culprit", faulty + 1)
    assert found.probes <= 7
    assert len(bench.ran) == sum(NODES + 1 - int(probe.at) for probe in found.tried)


def test_a_run_that_is_bad_whatever_is_answered_is_in_the_code(bench: Bench) -> None:
    planted = Planted(bench, 0, nodes=8)
    found = lockstep.bisect("langgraph/t", planted.graph, bad=lambda run: "n3" in run.result["said"], store=bench.store)
    assert found.verdict == "in-the-code"


def test_one_of_the_tasks_of_a_step_is_named(bench: Bench) -> None:
    bad = [True]

    def liar(state: Any) -> Any:
        bench.ran.append("liar")
        return {"said": [FAULT if bad[0] else "liar"]}

    graph = StateGraph(State)
    for name in ("p", "q", "join"):
        graph.add_node(name, bench.node(name))
    graph.add_node("liar", liar)
    for name in ("p", "liar", "q"):
        graph.add_edge(START, name)
        graph.add_edge(name, "join")
    app = graph.compile(checkpointer=bench.saver())
    app.invoke({"said": []}, on("t"))
    bad[0] = False
    found = lockstep.bisect("langgraph/t", app, bad=says_fault, store=bench.store)
    assert (found.verdict, found.step, found.task, found.name) == ("culprit", 2, "liar", "task liar")
    # Where whoever judges overlooks each second fault: the step, and the task in it, together as sure as was asked for.
    chance = random.Random(2)

    def overlooking(run: Any) -> bool:
        recorded = run.address == "langgraph/t"
        return says_fault(run) and (recorded or chance.random() < 0.5)

    surely = lockstep.bisect("langgraph/t", app, bad=overlooking, store=bench.store, confidence=0.95, max_probes=80)
    assert (surely.verdict, surely.step, surely.task) == ("culprit", 2, "liar")
    assert 0.95 <= surely.confidence < 1
    assert surely.probes > found.probes
    # The places between the tasks of a step are among those that are told.
    ats = [place.at for place in surely.posterior]
    assert len(set(ats)) == len(ats) and sum(at.startswith("2") for at in ats) == 3
    assert sum(sum(place.tried) for place in surely.posterior) == surely.probes


def agent(bench: Bench, asked: Asked, wrong: list[str]) -> Any:
    """A model asks for three looks at once, and tells what it heard."""

    @tool
    def look(order: int) -> str:
        """Looks an order up."""
        asked.tool("look")
        return f"order {order}: {wrong[0] if order == 2 else 'fine'}"

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


def heard_fault(run: Any) -> bool:
    return any(FAULT in str(call.outcome) for call in run.calls if call.kind == "model")


def test_one_of_the_calls_of_a_task_is_named(bench: Bench) -> None:
    asked, wrong = Asked(), [FAULT]
    graph = agent(bench, asked, wrong)
    graph.invoke({"messages": [("user", "look")]}, on("t"))
    wrong[0] = "fine"
    found = lockstep.bisect("langgraph/t", graph, bad=heard_fault, store=bench.store)
    assert (found.verdict, found.step, found.name) == ("culprit", 3, "tool look")
    assert found.effect is not None
    said = lockstep.fork(f"langgraph/t:{found.step}", graph, edits={found.effect: "order 2: mended"}, store=bench.store)
    assert "order 2: mended" in said.result["messages"][-1].content


def test_a_failure_is_found_without_being_told_what_is_bad(bench: Bench) -> None:
    wrong = [True]

    def check(state: Any) -> Any:
        if FAULT in state["said"]:
            raise ValueError("a fault was said")
        return {"said": ["checked"]}

    graph = StateGraph(State)
    graph.add_node("a", bench.node("a"))
    graph.add_node("liar", lambda state: {"said": [FAULT if wrong[0] else "truth"]})
    graph.add_node("b", bench.node("b"))
    graph.add_node("check", check)
    for before, after in zip([START, "a", "liar", "b"], ["a", "liar", "b", "check"], strict=True):
        graph.add_edge(before, after)
    app = graph.compile(checkpointer=bench.saver())
    with pytest.raises(ValueError, match="a fault was said"):
        app.invoke({"said": []}, on("t"))
    wrong[0] = False
    found = lockstep.bisect("langgraph/t", app, store=bench.store)
    assert (found.verdict, found.step, found.name) == ("culprit", 3, "task liar")


def test_a_fault_of_an_earlier_turn_is_found_and_people_s_answers_stay(bench: Bench) -> None:
    bad = [True]

    def ask(state: Any) -> Any:
        return {"said": [interrupt("go on?")]}

    graph = StateGraph(State)
    graph.add_node("a", bench.node("a"))
    graph.add_node("liar", lambda state: {"said": [FAULT if bad[0] else "truth"]})
    graph.add_node("ask", ask)
    for before, after in zip([START, "a", "liar"], ["a", "liar", "ask"], strict=True):
        graph.add_edge(before, after)
    app = graph.compile(checkpointer=bench.saver())
    app.invoke({"said": []}, on("t"))
    app.invoke(Command(resume="yes"), on("t"))
    bad[0] = False
    app.invoke({"said": []}, on("t"))
    app.invoke(Command(resume="no"), on("t"))
    found = lockstep.bisect("langgraph/t", app, bad=says_fault, store=bench.store)
    assert (found.verdict, found.step, found.task) == ("culprit", 3, "liar")
    good = lockstep.fork("langgraph/t:2", app, store=bench.store)
    assert good.result["said"] == ["a", "truth", "yes", "a", "truth", "no"]


def test_a_search_that_somebody_ends_goes_on_where_it_was(bench: Bench) -> None:
    planted = Planted(bench, 1, anew=True, nodes=8)
    plain = planted.graph.nodes["n5"].bound.func

    def ends(state: Any) -> Any:
        raise KeyboardInterrupt

    planted.graph.nodes["n5"].bound.func = ends
    with pytest.raises(KeyboardInterrupt):
        planted.bisect()
    planted.graph.nodes["n5"].bound.func = plain
    found = planted.bisect()
    assert (found.verdict, found.step) == ("culprit", 2)
    assert [probe.found for probe in found.tried] == [True, *[False] * (found.probes - 1)]


def test_async_threads_are_searched_in_the_running_loop(bench: Bench) -> None:
    planted = Planted(bench, 5, nodes=8)
    planted.faulty = 5
    asyncio.run(planted.graph.ainvoke({"said": []}, on("a")))
    planted.faulty = 0

    async def search() -> Verdict:
        return await lockstep.abisect("langgraph/a", planted.graph, bad=says_fault, store=bench.store)

    assert (asyncio.run(search())).step == 6


def test_a_good_thread_s_answers_are_swapped_in(bench: Bench) -> None:
    asked, wrong = Asked(), [FAULT]
    graph = agent(bench, asked, wrong)
    graph.invoke({"messages": [("user", "look")]}, on("t"))
    wrong[0] = "fine"
    graph.invoke({"messages": [("user", "look")]}, on("good"))
    asked.clear()
    found = lockstep.bisect("langgraph/t", graph, bad=looked_wrong, good="langgraph/good", store=bench.store)
    assert (found.verdict, found.step, found.name) == ("culprit", 3, "tool look")
    assert asked.tools == []


def test_a_thread_needs_a_graph_as_its_target(bench: Bench) -> None:
    Planted(bench, 1, nodes=2)
    with pytest.raises(TargetError, match=r"langgraph/t is a run of LangGraph: its target is a compiled graph"):
        lockstep.bisect("langgraph/t", lambda: None, bad=says_fault, store=bench.store)


PROGRAM = """
import operator, os, sys
from typing import Annotated, TypedDict
from langgraph.graph import START, StateGraph
from lockstep_langgraph import LockstepCheckpointer

class State(TypedDict, total=False):
    said: Annotated[list[str], operator.add]

builder = StateGraph(State)
for name in "abcd":
    wrong = name == "c"
    builder.add_node(name, lambda state, name=name, wrong=wrong: {
        "said": ["fault" if wrong and os.environ.get("WRONG") else name]
    })
builder.add_edge(START, "a")
for before, after in ("ab", "bc", "cd"):
    builder.add_edge(before, after)
graph = builder.compile(checkpointer=LockstepCheckpointer())

if __name__ == "__main__":
    graph.invoke({"said": []}, {"configurable": {"thread_id": "t"}})
"""

JUDGE = """
import os, sys
from lockstep.debugger.view import view
from lockstep.log.store import open_store

run, _, branch = os.environ["LOCKSTEP_RUN"].partition("@")
with open_store(os.environ["LOCKSTEP_STORE"]) as store:
    seen = view(store.run(run, branch or "main"), run, store.path, branch or "main")
sys.exit("fault" in seen.result["said"])
"""


def test_the_command_line_forks_and_searches_with_the_graph_of_a_module(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(PROGRAM)
    (tmp_path / "judge.py").write_text(JUDGE)
    store = str(tmp_path / "s.db")

    def run(*words: str, **more: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "LOCKSTEP_STORE": store, **more}
        return subprocess.run(
            [sys.executable, *words], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )

    assert run("app.py", WRONG="1").returncode == 0
    lost = run("-m", "lockstep", "replay", "langgraph/t")
    assert (lost.returncode, "LS401" in lost.stderr) == (125, True)
    fork = run("-m", "lockstep", "fork", "langgraph/t:4", "--target", "app:graph", "--set", '4:said[2]="c"', "--json")
    assert json.loads(fork.stdout)["address"] == "langgraph/t@fork"
    search = ("-m", "lockstep", "bisect", "langgraph/t", "--target", "app:graph", "--bad", f"{sys.executable} judge.py")
    found = run(*search)
    assert (found.returncode, "culprit  langgraph/t:4  task c" in found.stderr) == (0, True), found.stderr
    again = run(*search, "--json")
    assert all(probe["found"] for probe in json.loads(again.stdout)["tried"])
    several = run(*search, "--jobs", "2", "--again", "--json")
    told = json.loads(several.stdout)
    assert (told["verdict"], told["step"], told["task"]) == ("culprit", 4, "c"), several.stderr
    assert not any(probe["found"] for probe in told["tried"])
