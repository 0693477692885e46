"""Turns of a thread, one by one: those that were cut off, left, cancelled or made in between, and by which process."""

from __future__ import annotations

import asyncio
import operator
import os
import signal
import subprocess
import sys
import textwrap
from typing import Annotated, Any, TypedDict

import pytest
from graphs import AGAIN, QUESTION, SHAPES, by_hand
from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt
from replayed import THREAD, areplay, identical, plain, replay, run, saver
from scripted import Asked, Streaming, says

from lockstep.errors import TargetError


class State(TypedDict):
    seen: Annotated[list[str], operator.add]


def line(asked: Asked, saver: Any, count: int = 3) -> Any:
    model = Streaming(says=says("Fine"), asked=asked)

    async def ask(state: State) -> Any:
        return {"seen": [str((await model.ainvoke([("user", f"number {len(state['seen'])}")])).content)]}

    def ask_now(state: State) -> Any:
        return {"seen": [str(model.invoke([("user", f"number {len(state['seen'])}")]).content)]}

    from langchain_core.runnables import RunnableLambda

    builder = StateGraph(State)
    before = START
    for number in range(1, count + 1):
        builder.add_node(f"n{number}", RunnableLambda(ask_now, ask))
        builder.add_edge(before, f"n{number}")
        before = f"n{number}"
    return builder.compile(checkpointer=saver)


def test_one_turn_of_several() -> None:
    asked = Asked()
    graph = by_hand(asked, saver())
    first, second = run(graph, "invoke", QUESTION), run(graph, "invoke", AGAIN)
    assert plain(identical(graph, asked, turn=1).results) == [plain(first)]
    assert plain(identical(graph, asked, turn=2).results) == [plain(second)]
    with pytest.raises(TargetError, match="no turn 3: it has 2"):
        replay(graph, turn=3)


def test_until_a_step() -> None:
    asked = Asked()
    graph = by_hand(asked, saver())
    run(graph, "invoke", QUESTION)
    whole = identical(graph, asked)
    for step in range(whole.report.steps):
        assert identical(graph, asked, until=step).report.steps == step + 1
        assert identical(graph, asked, until=step, depth="node").report.steps == step + 1
    with pytest.raises(TargetError, match=f"no step {whole.report.steps}"):
        replay(graph, until=whole.report.steps)


def test_a_state_that_was_changed_between_turns_is_restored() -> None:
    asked = Asked()
    graph = line(asked, saver())
    run(graph, "invoke", {"seen": ["a"]})
    graph.update_state(THREAD, {"seen": ["by hand"]})
    last = run(graph, "invoke", {"seen": ["b"]})
    assert "by hand" in last["seen"]
    for depth in ("call", "node"):
        assert identical(graph, asked, depth=depth).results[-1] == last


def test_a_stream_that_was_left_is_left_again() -> None:
    asked = Asked()
    graph = line(asked, saver())
    stream = graph.stream({"seen": []}, THREAD, stream_mode="updates")
    given = [next(stream), next(stream)]
    stream.close()
    played = identical(graph, asked)
    assert played.results == [given]
    last = run(graph, "invoke", None)
    assert identical(graph, asked).results == [given, last]


def test_an_async_stream_that_was_left_is_left_again() -> None:
    asked = Asked()
    graph = line(asked, saver())

    async def leaves() -> Any:
        stream = graph.astream({"seen": []}, THREAD, stream_mode="updates")
        given = [await anext(stream), await anext(stream)]
        await stream.aclose()
        return given

    given = asyncio.run(leaves())
    assert identical(graph, asked).results == [given]


def test_a_turn_that_was_cancelled_is_cancelled_again() -> None:
    asked = Asked()
    waits: list[bool] = [True]

    async def hangs(state: State) -> Any:
        await asyncio.Event().wait()

    builder = StateGraph(State)
    builder.add_node("n1", lambda state: {"seen": ["one"]})
    builder.add_node("n2", hangs)
    builder.add_edge(START, "n1")
    builder.add_edge("n1", "n2")
    graph = builder.compile(checkpointer=saver())

    async def gives_up() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(graph.ainvoke({"seen": []}, THREAD), 0.1)

    asyncio.run(gives_up())
    played = identical(graph, asked)
    assert isinstance(played.error, asyncio.CancelledError)
    assert waits


def test_under_a_running_loop_a_replay_is_awaited() -> None:
    asked = Asked()
    graph = line(asked, saver())
    first, second = run(graph, "invoke", {"seen": []}), run(graph, "ainvoke", {"seen": []})

    async def main() -> Any:
        with pytest.raises(TargetError, match="areplay"):
            replay(graph)
        return await areplay(graph)

    played = asyncio.run(main())
    assert played.report.identical
    assert played.results == [first, second]


def test_a_turn_that_went_back_in_time_is_replayed_from_there() -> None:
    asked = Asked()
    graph = line(asked, saver())
    run(graph, "invoke", {"seen": []})
    early = [*graph.get_state_history(THREAD)][2].config
    again = run(graph, "invoke", None, early)
    assert identical(graph, asked).report.steps == 5
    assert identical(graph, asked, branch="fork").results[-1] == again


def test_humans_are_asked_again_and_answer_as_they_did() -> None:
    asked = Asked()

    def human(state: State) -> Any:
        return {"seen": [f"{interrupt({'number': len(state['seen'])})}"]}

    builder = StateGraph(State)
    builder.add_node("human", human)
    builder.add_node("other", human)
    builder.add_edge(START, "human")
    builder.add_edge(START, "other")
    graph = builder.compile(checkpointer=saver())
    first = run(graph, "invoke", {"seen": []})
    answers = {each.id: f"answer {number}" for number, each in enumerate(first["__interrupt__"])}
    last = run(graph, "invoke", Command(resume=answers))
    for depth in ("call", "node"):
        again, answered = identical(graph, asked, depth=depth).results
        assert {each.id for each in again["__interrupt__"]} == {*answers}
        assert answered == last


@pytest.mark.parametrize("mode", ["sync", "async", "exit"])
def test_durability_as_it_was(mode: str) -> None:
    asked = Asked()
    graph = SHAPES["interrupts"].build(asked, saver())
    given = [run(graph, "invoke", turn, durability=mode) for turn in SHAPES["interrupts"].turns]
    assert plain(identical(graph, asked).results) == plain(given)


PROGRAM = """
    import os, signal, sys
    sys.path[:0] = {path!r}
    from lockstep_langgraph.checkpointer import LockstepCheckpointer
    from scripted import Asked, Streaming, says
    from graphs import SHAPES, QUESTION, AGAIN
    from replayed import THREAD

    class Kills(Asked):
        def tool(self, name):
            if {kills}:
                os.kill(os.getpid(), signal.SIGKILL)
            return super().tool(name)

    graph = SHAPES["StateGraph and ToolNode"].build(Kills(), LockstepCheckpointer({store!r}))
    graph.invoke({given}, THREAD)
"""


def program(given: str, *, kills: bool) -> int:
    text = PROGRAM.format(path=sys.path, kills=kills, store=os.environ["LOCKSTEP_STORE"], given=given)
    return subprocess.run([sys.executable, "-c", textwrap.dedent(text)], check=False).returncode


def test_turns_of_several_processes_are_one_thread() -> None:
    asked = Asked()
    assert program("QUESTION", kills=False) == 0
    assert program("AGAIN", kills=False) == 0
    graph = by_hand(asked, saver())
    third = run(graph, "invoke", QUESTION)
    assert plain(identical(graph, asked).results[-1]) == plain(third)


@pytest.mark.parametrize("depth", ["call", "node"])
def test_a_killed_turn_replays_up_to_where_it_was_killed(depth: str) -> None:
    asked = Asked()
    assert program("QUESTION", kills=True) == -signal.SIGKILL
    graph = by_hand(asked, saver())
    played = replay(graph, depth=depth)
    assert played.report.difference is None
    assert played.report.cut
    assert played.report.steps == 3
    assert (asked.models, asked.tools) == (0, [])


def test_a_killed_turn_that_another_went_on_with_replays_with_that() -> None:
    asked = Asked()
    assert program("QUESTION", kills=True) == -signal.SIGKILL
    graph = by_hand(asked, saver())
    last = run(graph, "invoke", None)
    for depth in ("call", "node"):
        assert plain(identical(graph, asked, depth=depth).results[-1]) == plain(last)
