"""Delta channels keep no value but now and then; what they hold is rebuilt from the writes along the ancestors."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Annotated, Any, TypedDict

import pytest
from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from saved_graphs import thread

from lockstep_langgraph import LockstepCheckpointer

type Saver = LockstepCheckpointer
type Opened = Callable[..., Saver]


def joined(state: list[str], writes: Sequence[Any]) -> list[str]:
    return [*state, *(item for write in writes for item in write)]


def build(saver: Any, every: int, names: Sequence[str] = ("a", "b", "c")) -> Any:
    log: Any = Annotated[list[str], DeltaChannel(joined, snapshot_frequency=every)]
    State: Any = TypedDict("State", {"log": log, "left": int}, total=False)
    graph: Any = StateGraph(State)
    for name in names:
        graph.add_node(name, lambda state, name=name: {"log": [f"{name}{len(state['log'])}"]})
    graph.add_node("again", lambda state: {"left": state["left"] - 1})
    for name in names:
        graph.add_edge(START, name)
        graph.add_edge(name, "again")
    graph.add_conditional_edges("again", lambda state: list(names) if state["left"] > 0 else END)
    return graph.compile(checkpointer=saver)


def journey(graph: Any) -> list[Any]:
    """Two turns, and one from the middle of the first."""
    graph.invoke({"log": ["in"], "left": 3}, thread())
    graph.invoke({"log": ["more"], "left": 2}, thread())
    history = list(graph.get_state_history(thread()))
    middle = next(state for state in history if state.values.get("left") == 2 and "more" not in state.values["log"])
    graph.invoke({"log": ["other"], "left": 1}, middle.config)
    return [(state.metadata["step"], state.next, state.values) for state in graph.get_state_history(thread())]


@pytest.mark.parametrize("every", [1, 2, 5, 1000])
@pytest.mark.parametrize("durability", ["async", "exit"])
def test_a_history_is_the_one_that_the_in_memory_saver_gives(
    saver: Saver, opened: Opened, every: int, durability: str
) -> None:
    def run(each: Any) -> list[Any]:
        graph = build(each, every)
        graph.invoke({"log": ["in"], "left": 3}, thread(), durability=durability)
        graph.invoke({"log": ["more"], "left": 2}, thread(), durability=durability)
        return told(graph)

    def told(graph: Any) -> list[Any]:
        return [(state.metadata["step"], state.next, state.values) for state in graph.get_state_history(thread())]

    expected = run(InMemorySaver())
    assert run(saver) == expected
    assert told(build(opened(), every)) == expected


def test_time_travel_rebuilds_what_was_on_the_way_and_nothing_else(saver: Saver, opened: Opened) -> None:
    expected = journey(build(InMemorySaver(), 4))
    assert journey(build(saver, 4)) == expected
    again = build(opened(), 4)
    assert [
        (state.metadata["step"], state.next, state.values) for state in again.get_state_history(thread())
    ] == expected


def test_a_delta_history_is_what_the_general_walk_finds(saver: Saver) -> None:
    graph = build(saver, 3)
    journey(graph)
    for state in graph.get_state_history(thread()):
        ours = saver.get_delta_channel_history(config=state.config, channels=["log", "left", "none"])
        walked = BaseCheckpointSaver.get_delta_channel_history(
            saver, config=state.config, channels=["log", "left", "none"]
        )
        assert ours == walked
        assert asyncio.run(saver.aget_delta_channel_history(config=state.config, channels=["log"])) == {
            "log": ours["log"]
        }
    assert saver.get_delta_channel_history(config=thread(), channels=[]) == {}
    assert saver.get_delta_channel_history(config=thread("ghost"), channels=["log"]) == {"log": {"writes": []}}


@pytest.mark.parametrize("every", [2, 1000])
def test_what_is_pruned_keeps_what_its_delta_channels_are_rebuilt_from(
    saver: Saver, opened: Opened, every: int
) -> None:
    graph = build(saver, every)
    graph.invoke({"log": ["in"], "left": 4}, thread())
    before = graph.get_state(thread()).values
    saver.prune(["t"])
    for each in (saver, opened()):
        assert len(list(each.list(thread()))) == 1
        assert build(each, every).get_state(thread()).values == before
    assert graph.invoke({"log": ["on"], "left": 1}, thread())["log"][: len(before["log"]) + 1] == [*before["log"], "on"]


def test_a_copy_has_all_that_its_delta_channels_are_rebuilt_from(saver: Saver) -> None:
    graph = build(saver, 1000)
    expected = journey(graph)
    saver.copy_thread("t", "copy")
    assert [
        (state.metadata["step"], state.next, state.values) for state in graph.get_state_history(thread("copy"))
    ] == expected


def test_a_deleted_run_leaves_the_others_whole(saver: Saver) -> None:
    graph = build(saver, 1000)
    for run in ("one", "two"):
        graph.invoke({"log": [run], "left": 1}, {**thread(), "metadata": {"run_id": run}})
    before = graph.get_state(thread()).values
    saver.delete_for_runs(["one"])
    assert {found.metadata["run_id"] for found in saver.list(thread())} == {"two"}
    assert graph.get_state(thread()).values == before
