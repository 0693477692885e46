"""A thread replays as it was, whatever its graph is and however it was run: nothing is asked, all is equal."""

from __future__ import annotations

from collections import Counter
from importlib.metadata import version
from typing import Any

import pytest
from graphs import SHAPES
from replayed import identical, plain, run, saver
from scripted import Asked

ENTRIES = ["invoke", "stream", "ainvoke", "astream", "astream_events"]


def options(entry: str) -> dict[str, Any]:
    return {"stream_mode": ["values", "updates", "messages"]} if entry in ("stream", "astream") else {}


def told(event: Any) -> str:
    """An event without the ids of LangChain's runs: of tools that one task runs at once, the first to begin has the
    first one."""
    if isinstance(event, dict):
        event = {name: value for name, value in event.items() if name not in ("run_id", "parent_ids")}
    return repr(plain(event))


def events(stream: list[Any]) -> Counter[str]:
    """What a stream gave, in whatever order tasks that ran at once gave it."""
    return Counter(map(told, stream))


def by_task(stream: list[Any]) -> list[list[str]]:
    """The events of each task, in order; of tools that one task runs at once, those of each."""
    found: dict[str, list[str]] = {}
    for event in stream:
        if isinstance(event, dict):
            if event["name"] != "LangGraph":  # what a graph streams is of tasks that run at once
                found.setdefault(event["run_id"], []).append(told(event))
        elif event[0] == "messages":
            found.setdefault(event[1][1]["langgraph_checkpoint_ns"], []).append(told(event))
    return sorted(found.values())


@pytest.mark.parametrize("entry", ["stream", "astream", "astream_events"])
@pytest.mark.parametrize("shape", ["create_agent", "subgraphs", "Send fan-out"])
def test_what_a_task_streams_comes_in_its_order(shape: str, entry: str) -> None:
    asked = Asked()
    graph = SHAPES[shape].build(asked, saver())
    given = run(graph, entry, SHAPES[shape].turns[0], **options(entry))
    assert by_task(identical(graph, asked).results[0]) == by_task(given) != []


# A sync entrypoint that is awaited gets, before 1.2, futures of the loop from its tasks, and fails by itself.
OLD = version("langgraph").startswith("1.1")
CASES = [
    (shape, entry)
    for shape in SHAPES
    for entry in ENTRIES
    if not (OLD and shape == "functional API" and entry.startswith("a"))
]


@pytest.mark.parametrize(("shape", "entry"), CASES)
def test_a_thread_replays_as_it_was(shape: str, entry: str) -> None:
    asked = Asked()
    graph = SHAPES[shape].build(asked, saver())
    given = [run(graph, entry, turn, **options(entry)) for turn in SHAPES[shape].turns]
    assert asked.models
    played = identical(graph, asked)
    assert played.report.steps > 1
    results = iter(played.results)
    for turn in given:
        if isinstance(turn, Exception):
            assert next(results) is None
        elif entry in ("invoke", "ainvoke"):
            assert plain(next(results)) == plain(turn)
        else:
            assert events(next(results)) == events(turn)


@pytest.mark.parametrize("shape", SHAPES)
def test_at_node_depth_nothing_of_the_graph_runs(shape: str) -> None:
    asked = Asked()
    graph = SHAPES[shape].build(asked, saver())
    given = [run(graph, "invoke", turn) for turn in SHAPES[shape].turns]
    played = identical(graph, asked, depth="node")
    for turn, result in zip(given, played.results, strict=True):
        if not isinstance(turn, Exception):
            assert plain(result) == plain(turn)
