"""Each strand of a graph has one name, the same in every run."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Annotated, Any, TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.config import get_config
from langgraph.func import entrypoint, task
from langgraph.graph import END, START, StateGraph
from langgraph.types import Send

from lockstep_langgraph import lanes


class State(TypedDict, total=False):
    seen: Annotated[list[str], operator.add]


def _says(_: Any) -> State:
    return {"seen": [lanes.of_config(get_config())]}


def _graph(**nodes: Any) -> StateGraph[Any]:
    builder = StateGraph(State)
    for name, node in nodes.items():
        builder.add_node(name, node)
        builder.add_edge(START, name)
        builder.add_edge(name, END)
    return builder


def _seen(graph: Any) -> list[str]:
    return sorted(graph.invoke({"seen": []}, {"configurable": {"thread_id": "1"}})["seen"])


def test_tasks_are_named_by_their_nodes() -> None:
    graph = _graph(a=_says, b=_says).compile(checkpointer=InMemorySaver())
    assert _seen(graph) == ["main/a", "main/b"]


def test_tasks_that_were_sent_are_numbered_in_the_order_sent() -> None:
    builder = StateGraph(State)
    builder.add_node("worker", _says)
    builder.add_conditional_edges(START, lambda _: [Send("worker", {}) for _ in range(3)], ["worker"])
    graph = builder.compile(checkpointer=InMemorySaver())
    assert _seen(graph) == ["main/worker.0", "main/worker.1", "main/worker.2"]


def test_a_subgraph_is_below_the_task_that_runs_it() -> None:
    inner = _graph(search=_says).compile()
    graph = _graph(plan=inner).compile(checkpointer=InMemorySaver())
    assert _seen(graph) == ["main/plan/search"]


def test_the_second_subgraph_of_a_task_has_a_lane_of_its_own() -> None:
    inner = _graph(search=_says).compile()

    def twice(state: State) -> State:
        return {"seen": inner.invoke({"seen": []})["seen"] + inner.invoke({"seen": []})["seen"]}

    graph = _graph(plan=twice).compile(checkpointer=InMemorySaver())
    assert _seen(graph) == ["main/plan/search", "main/plan~1/search"]


def test_what_a_task_calls_is_named_after_it_and_numbered() -> None:
    @task
    def leaf() -> str:
        return lanes.of_config(get_config())

    @task
    def double() -> list[str]:
        return [lanes.of_config(get_config()), leaf().result()]

    @entrypoint(checkpointer=InMemorySaver())
    def flow(_: int) -> list[str]:
        return [*double().result(), *double().result()]

    assert flow.invoke(1, {"configurable": {"thread_id": "1"}}) == [
        "main/flow>double.0", "main/flow>double.0>leaf.0", "main/flow>double.1", "main/flow>double.1>leaf.0",
    ]  # fmt: skip


def _of_task(tell: Callable[[], None], namespace: str, task_id: str, path: str = "") -> str:
    tell()
    return lanes.of_task(namespace, task_id, path)


def test_a_task_is_placed_by_its_id_once_it_is_known() -> None:
    def tell() -> None:
        lanes.remember("t1", "flow", ("__pregel_pull", "flow"))
        lanes.remember("t2", "double", ("__pregel_push", ("__pregel_pull", "flow"), 0, True), caller="t1")
        lanes.remember("t3", "plan", ("__pregel_push", 4, False))

    assert _of_task(tell, "", "t2") == "main/flow>double.0"
    assert _of_task(tell, "plan:t3", "t1") == "main/plan.4/flow"
    assert lanes.of_namespace("flow:t1|double:t2") == "main/flow>double.0"


def test_a_task_that_nobody_told_of_is_placed_by_the_text_of_its_path() -> None:
    assert lanes.of_task("", "unknown-1", "~__pregel_pull, plan") == "main/plan"
    assert lanes.of_task("", "unknown-2", "~__pregel_push, 0000000002, False") == "main/push.2"
    assert lanes.of_task("", "unknown-3") == "main/task"


def test_the_checkpoints_that_a_task_works_on_are_told_by_its_lane() -> None:
    assert lanes.checkpoints_of("main/plan/search") == "main/plan"
    assert lanes.checkpoints_of("main/flow>double.0>leaf.0") == "main"


def test_names_of_nodes_do_not_break_a_lane() -> None:
    graph = _graph(**{"a/b": _says, "a>b": _says, "a~1": _says}).compile(checkpointer=InMemorySaver())
    assert _seen(graph) == ["main/a%2Fb", "main/a%3Eb", "main/a%7E1"]


def test_what_runs_outside_of_any_task_is_the_graph_s() -> None:
    assert lanes.of_config({}) == lanes.of_config({"configurable": {"checkpoint_ns": ""}}) == "main"
