"""Forks restore a checkpoint: nothing before it runs, and what was to follow follows."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from importlib.metadata import version
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint, task
from langgraph.graph import START, StateGraph
from langgraph.types import Command, Send, interrupt
from threads_to_fork import Bench, State, on

import lockstep
from lockstep.errors import AddressError, EditError, TargetError
from lockstep.log.store import open_store


def chain(bench: Bench, names: str) -> Any:
    graph = StateGraph(State)
    for name in names:
        graph.add_node(name, bench.node(name))
    for before, after in zip([START, *names], names, strict=False):
        graph.add_edge(before, after)
    return graph


def routed(bench: Bench) -> Any:
    def a(state: Any) -> Any:
        bench.ran.append("a")
        return Command(goto="b", update={"said": ["a"]})

    graph = StateGraph(State)
    graph.add_node("a", a, destinations=("b", "c"))
    graph.add_node("b", bench.node("b"))
    graph.add_node("c", bench.node("c"))
    graph.add_edge(START, "a")
    graph.add_edge("b", "c")
    return graph.compile(checkpointer=bench.saver())


def parallel(bench: Bench) -> Any:
    graph = StateGraph(State)
    for name in "pqr":
        graph.add_node(name, bench.node(name))
        graph.add_edge(START, name)
        graph.add_edge(name, "join")
    graph.add_node("join", bench.node("join"))
    return graph.compile(checkpointer=bench.saver())


def test_every_step_of_a_chain_is_a_fork_point(bench: Bench) -> None:
    graph = chain(bench, "abc").compile(checkpointer=bench.saver())
    whole = graph.invoke({"said": ["hi"]}, on("t"))
    for step, rest in enumerate(["abc", "abc", "bc", "c", ""]):
        run = bench.fork(f"t:{step}", graph)
        assert "".join(bench.ran) == rest
        assert run.state == "complete"
        assert run.result == (whole if rest else None)


def test_a_fork_keeps_where_a_command_goes(bench: Bench) -> None:
    """#6326: forks by `update_state` lose it, and nothing runs."""
    graph = routed(bench)
    whole = graph.invoke({"said": ["hi"]}, on("t"))
    assert bench.fork("t:2", graph).result == whole
    assert bench.ran == ["b", "c"]
    edited = bench.fork("t:2", graph, edits={"2:said[0]": "edited"})
    assert bench.ran == ["b", "c"]
    assert edited.result["said"] == ["edited", "a", "b", "c"]


def test_one_of_several_tasks_runs_again(bench: Bench) -> None:
    graph = parallel(bench)
    whole = graph.invoke({"said": ["hi"]}, on("t"))
    assert bench.fork("t:1", graph, tasks=["q"]).result == whole
    assert bench.ran == ["q", "join"]
    bench.fork("t:1", graph, tasks=["q", "r"])
    assert sorted(bench.ran) == ["join", "q", "r"]
    bench.fork("t:1", graph)
    assert sorted(bench.ran) == ["join", "p", "q", "r"]


def test_tasks_keep_what_they_wrote_where_the_state_is_edited(bench: Bench) -> None:
    graph = parallel(bench)
    graph.invoke({"said": ["hi"]}, on("t"))
    run = bench.fork("t:1", graph, tasks=["q"], edits={"1:said[0]": "ho"})
    assert bench.ran == ["q", "join"]
    assert run.result["said"] == ["ho", "p", "q", "r", "join"]


def test_one_of_several_tasks_that_were_sent_runs_again(bench: Bench) -> None:
    async def work(state: Any) -> Any:
        bench.ran.append(f"work {state['n']}")
        return {"said": [f"work {state['n']}"]}

    graph = StateGraph(State)
    graph.add_node("plan", bench.node("plan"))
    graph.add_node("work", work)
    graph.add_node("join", bench.node("join"))
    graph.add_edge(START, "plan")
    graph.add_conditional_edges("plan", lambda state: [Send("work", {"n": n}) for n in range(3)], ["work"])
    graph.add_edge("work", "join")
    app = graph.compile(checkpointer=bench.saver())
    whole = asyncio.run(app.ainvoke({"said": ["hi"]}, on("t")))
    assert bench.fork("t:2", app, tasks=["work.1"]).result == whole
    assert bench.ran == ["work 1", "join"]
    bench.fork("t:2", app, tasks=["work"])
    assert bench.ran == ["work 0", "work 1", "work 2", "join"]


def test_a_task_that_there_was_not_is_told_with_those_that_were(bench: Bench) -> None:
    graph = parallel(bench)
    graph.invoke({"said": ["hi"]}, on("t"))
    with pytest.raises(TargetError, match=r"no task 'x' ran at langgraph/t:1. Those that did: p, q, r"):
        bench.fork("t:1", graph, tasks=["x"])


def test_from_a_checkpoint_inside_a_subgraph_only_what_follows_runs(bench: Bench) -> None:
    """#8458: native travel to it runs the whole subgraph again."""
    graph = StateGraph(State)
    graph.add_node("first", bench.node("first"))
    graph.add_node("inner", chain(bench, "abc").compile())
    graph.add_node("last", bench.node("last"))
    graph.add_edge(START, "first")
    graph.add_edge("first", "inner")
    graph.add_edge("inner", "last")
    app = graph.compile(checkpointer=bench.saver())
    whole = app.invoke({"said": ["hi"]}, on("t"))
    for step, rest in {2: "abc", 3: "abc", 4: "abc", 5: "bc", 6: "c", 7: ""}.items():
        assert bench.fork(f"t:{step}", app).result == whole
        assert bench.ran == [*rest, "last"]
    edited = bench.fork("t:5", app, edits={"5:said[1]": "edited"})
    assert bench.ran == ["b", "c", "last"]
    assert "edited" in edited.result["said"]


def test_steps_of_the_functional_api_that_came_before_are_kept(bench: Bench) -> None:
    @task
    def double(number: int) -> int:
        bench.ran.append(f"double {number}")
        return 2 * number

    @entrypoint(checkpointer=bench.saver())
    def flow(numbers: list[int]) -> int:
        return sum(double(number).result() for number in numbers)

    assert flow.invoke([1, 2, 3], on("t")) == 12
    assert bench.fork("t:0", flow, tasks=["double.2"]).result == 12
    assert bench.ran == ["double 3"]
    # What a later one was called with is not recorded: it may have been the answer of this one.
    assert bench.fork("t:0", flow, tasks=["double.1"]).result == 12
    assert bench.ran == ["double 2", "double 3"]


def test_after_a_failure_only_what_failed_runs_again(bench: Bench) -> None:
    broken = [True]
    saver = bench.saver()

    def bad(state: Any) -> Any:
        bench.ran.append("bad")
        # LangGraph forgets what a task wrote in the moment in which another one fails.
        while broken[0] and not any(write[1] == "said" for write in saver.get_tuple(on("t")).pending_writes):
            time.sleep(0.001)
        if broken[0]:
            raise ValueError("no")
        return {"said": ["bad"]}

    graph = StateGraph(State)
    graph.add_node("ok", bench.node("ok"))
    graph.add_node("bad", bad)
    graph.add_node("join", bench.node("join"))
    for name in ("ok", "bad"):
        graph.add_edge(START, name)
        graph.add_edge(name, "join")
    app = graph.compile(checkpointer=saver)
    with pytest.raises(ValueError, match="no"):
        app.invoke({"said": ["hi"]}, on("t"))
    failed = bench.fork("t:2", app)
    assert (failed.state, str(failed.error), bench.ran) == ("failed", "no", ["bad"])
    broken[0] = False
    assert bench.fork("t:2", app).result["said"] == ["hi", "bad", "ok", "join"]
    assert bench.ran == ["bad", "join"]
    bench.fork("t:1", app, tasks=["bad"])
    assert bench.ran == ["bad", "join"]
    bench.fork("t:1", app)
    assert sorted(bench.ran) == ["bad", "join", "ok"]


def asking(bench: Bench) -> Any:
    def ask(state: Any) -> Any:
        bench.ran.append("ask")
        return {"said": [interrupt("go on?")]}

    graph = StateGraph(State)
    graph.add_node("a", bench.node("a"))
    graph.add_node("ask", ask)
    graph.add_node("z", bench.node("z"))
    graph.add_edge(START, "a")
    graph.add_edge("a", "ask")
    graph.add_edge("ask", "z")
    return graph.compile(checkpointer=bench.saver())


def test_later_turns_follow_with_their_inputs_and_what_people_answered(bench: Bench) -> None:
    graph = asking(bench)
    graph.invoke({"said": ["one"]}, on("t"))
    graph.invoke(Command(resume="yes"), on("t"))
    graph.invoke({"said": ["two"]}, on("t"))
    graph.invoke(Command(resume="no"), on("t"))
    run = bench.fork("t:2", graph, edits={"2:said[0]": "ONE"})
    assert bench.ran == ["ask", "ask", "z", "a", "ask", "ask", "z"]
    assert run.result["said"] == ["ONE", "a", "yes", "z", "two", "a", "no", "z"]
    assert len(run.results) == 4
    assert bench.fork("t:2", graph, turn=2).result["said"] == ["one", "a", "yes", "z"]


def test_a_turn_that_was_over_is_not_run_again(bench: Bench) -> None:
    graph = chain(bench, "a").compile(checkpointer=bench.saver())
    graph.invoke({"said": ["one"]}, on("t"))
    graph.invoke({"said": ["two"]}, on("t"))
    run = bench.fork("t:2", graph, edits={"2": {"said": ["other"]}})
    assert bench.ran == ["a"]
    assert run.result["said"] == ["other", "two", "a"]


def test_a_turn_that_paused_before_a_node_goes_on_with_the_next_turn(bench: Bench) -> None:
    graph = chain(bench, "abc").compile(checkpointer=bench.saver())
    graph.invoke({"said": ["hi"]}, on("t"), interrupt_before=["b"])
    whole = graph.invoke(None, on("t"), interrupt_before=["c"])
    run = bench.fork("t:2", graph)
    assert (run.result, bench.ran) == (whole, ["b"])


def test_async_threads_fork_in_a_loop_of_their_own_or_in_the_running_one(bench: Bench) -> None:
    graph = chain(bench, "abc").compile(checkpointer=bench.saver())
    whole = asyncio.run(graph.ainvoke({"said": ["hi"]}, on("t")))
    assert bench.fork("t:2", graph).result == whole

    async def inside() -> Any:
        with pytest.raises(TargetError, match=r"await lockstep.afork instead"):
            bench.fork("t:2", graph)
        return await lockstep.afork("langgraph/t:3", graph, store=bench.store)

    assert asyncio.run(inside()).result == whole
    assert bench.ran == ["c"]


def test_edits_say_what_they_cannot_change(bench: Bench) -> None:
    graph = chain(bench, "abc").compile(checkpointer=bench.saver())
    graph.invoke({"said": ["hi"]}, on("t"))
    with pytest.raises(EditError, match=r"LS212 2: the state has no channel 'nix': it has said, total"):
        bench.fork("t:2", graph, edits={"2": {"nix": 1}})
    with pytest.raises(EditError, match=r"LS212 2: there is no said\[7\]"):
        bench.fork("t:2", graph, edits={"2:said[7]": "x"})
    with pytest.raises(EditError, match=r"LS213 2: an edit of a step's state says channels and their values"):
        bench.fork("t:2", graph, edits={"2": 3})
    for address in ("2", "2.1"):
        with pytest.raises(AddressError, match=rf"other:{address} is another run's: this fork edits langgraph/t"):
            bench.fork("t:2", graph, edits={f"other:{address}": 1})
    with pytest.raises(AddressError, match=r"only after langgraph/t:2"):
        bench.fork("t:2", graph, edits={"3:said[0]": "x"})
    with pytest.raises(TargetError, match=r"its target is a compiled graph"):
        bench.fork("t:2", lambda: None)


def test_a_fork_can_go_on_as_another_thread(bench: Bench) -> None:
    graph = parallel(bench)
    whole = graph.invoke({"said": ["hi"]}, on("t"))
    run = bench.fork("t:1", graph, tasks=["q"], thread="other")
    assert (run.result, bench.ran, run.address) == (whole, ["q", "join"], "langgraph/other")
    assert run.config == on("other")
    assert graph.get_state(on("other")).values == whole
    more = graph.invoke({"said": ["more"]}, run.config)
    assert more["said"][:5] == whole["said"]
    assert graph.get_state(on("t")).values == whole
    edited = bench.fork("t:1", graph, edits={"1:said[0]": "ho"}, thread="edited")
    assert edited.result["said"] == ["ho", "p", "q", "r", "join"]
    with pytest.raises(TargetError, match=r"there is a thread 'other' already"):
        bench.fork("t:1", graph, thread="other")


def test_an_answer_to_what_is_not_asked_any_more_ends_the_fork_before_it(bench: Bench) -> None:
    asks = [True]

    def ask(state: Any) -> Any:
        bench.ran.append("ask")
        return {"said": [interrupt("go on?") if asks[0] else "unasked"]}

    graph = StateGraph(State)
    graph.add_node("a", bench.node("a"))
    graph.add_node("ask", ask)
    graph.add_edge(START, "a")
    graph.add_edge("a", "ask")
    app = graph.compile(checkpointer=bench.saver())
    app.invoke({"said": ["one"]}, on("t"))
    app.invoke(Command(resume="yes"), on("t"))
    app.invoke({"said": ["two"]}, on("t"))
    asks[0] = False
    run = bench.fork("t:1", app)
    assert (run.state, run.result["said"], bench.ran) == ("complete", ["one", "a", "unasked"], ["a", "ask"])
    assert [(each.source, each.how) for each in run.report.uncovered] == [("turn 2", "not covered")]
    assert "a question that is not asked here" in run.report.uncovered[0].detail


def test_an_answer_that_a_failing_turn_brought_is_given_again_and_to_no_other_question(bench: Bench) -> None:
    """#8837: the first answer would be taken for the second, too."""
    broken = [True]

    def ask(state: Any) -> Any:
        first = interrupt("one?")
        if broken[0]:
            raise ValueError("no")
        return {"said": [f"{first}, {interrupt('two?')}"]}

    graph = StateGraph(State)
    graph.add_node("ask", ask)
    graph.add_edge(START, "ask")
    app = graph.compile(checkpointer=bench.saver())
    app.invoke({"said": []}, on("t"))
    with pytest.raises(ValueError, match="no"):
        app.invoke(Command(resume="A"), on("t"))
    broken[0] = False
    run = bench.fork("t:2", app)
    assert [each.value for each in run.result["__interrupt__"]] == ["two?"]
    assert app.invoke(Command(resume="B"), run.config)["said"] == ["A, B"]


def test_turns_after_a_state_that_was_set_by_hand_are_not_run(bench: Bench) -> None:
    graph = chain(bench, "ab").compile(checkpointer=bench.saver())
    graph.invoke({"said": ["one"]}, on("t"))
    graph.update_state(on("t"), {"said": ["by hand"]})
    graph.invoke({"said": ["two"]}, on("t"))
    run = bench.fork("t:2", graph)
    assert (run.result["said"], bench.ran) == (["one", "a", "b"], ["b"])
    assert "set by hand at step 4 (update_state)" in run.report.uncovered[0].detail
    after = bench.fork("t:4", graph)
    assert after.result["said"] == ["one", "a", "b", "by hand", "two", "a", "b"]


def test_travel_by_langgraph_itself_makes_a_branch_each_time_which_is_named(bench: Bench) -> None:
    """#4987: who goes on with the config that was travelled to leaves another branch behind with every call."""
    graph = chain(bench, "ab").compile(checkpointer=bench.saver())
    graph.invoke({"said": ["hi"]}, on("t"))
    middle = next(state for state in graph.get_state_history(on("t")) if state.next == ("b",))
    for _ in range(2):
        graph.invoke(None, middle.config)
    with open_store(bench.store) as store:
        assert [branch.name for branch in store.run("langgraph/t").branches] == ["main", "fork", "fork-2"]
    run = bench.fork("t@fork:3", graph)
    # LangGraph 1.1 makes no checkpoint of its own where it travels to: step 3 is what `b` has made.
    assert (run.branch, bench.ran) == ("fork-3", [] if version("langgraph").startswith("1.1.") else ["b"])


def test_a_graph_without_a_saver_of_ours_or_with_one_beside_another_is_forked_too(bench: Bench) -> None:
    kept = InMemorySaver()
    builder = chain(bench, "abc")
    graph = builder.compile(checkpointer=bench.saver(wrap=kept))
    whole = graph.invoke({"said": ["hi"]}, on("t"))
    before = list(kept.list(on("t")))
    edited = bench.fork("t:2", graph, edits={"2:said[0]": "ho"})
    assert (edited.result["said"], bench.ran) == (["ho", "a", "b", "c"], ["b", "c"])
    assert bench.fork("t:3", builder.compile()).result == whole
    assert list(kept.list(on("t"))) == before


KILLED = """
import operator, os, sys
from typing import Annotated, TypedDict
from langgraph.graph import START, StateGraph
from lockstep_langgraph import LockstepCheckpointer

class State(TypedDict, total=False):
    said: Annotated[list[str], operator.add]

saver = LockstepCheckpointer(sys.argv[1])
on = {"configurable": {"thread_id": "t"}}

def dies(state):
    while not any(write[1] == "said" for write in saver.get_tuple(on).pending_writes):
        pass
    os._exit(9)

graph = StateGraph(State)
graph.add_node("ok", lambda state: {"said": ["ok"]})
graph.add_node("dies", dies)
graph.add_node("join", lambda state: {"said": ["join"]})
for name in ("ok", "dies"):
    graph.add_edge(START, name)
    graph.add_edge(name, "join")
graph.compile(checkpointer=saver).invoke({"said": ["hi"]}, on)
"""


def test_of_a_thread_whose_process_was_killed_only_what_had_not_ended_runs_again(bench: Bench) -> None:
    killed = subprocess.run([sys.executable, "-c", KILLED, bench.store], check=False)
    assert killed.returncode == 9
    graph = StateGraph(State)
    for name in ("ok", "dies", "join"):
        graph.add_node(name, bench.node(name))
    for name in ("ok", "dies"):
        graph.add_edge(START, name)
        graph.add_edge(name, "join")
    run = bench.fork("t:2", graph.compile(checkpointer=bench.saver()))
    assert (run.result["said"], bench.ran) == (["hi", "dies", "ok", "join"], ["dies", "join"])
