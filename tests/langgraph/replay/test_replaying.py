"""A thread replays as it was, whatever its graph is and however it was run: nothing is asked, all is equal."""

from __future__ import annotations

from typing import Any

import pytest
from graphs import SHAPES
from replayed import identical, plain, run, saver
from scripted import Asked

ENTRIES = ["invoke", "stream", "ainvoke", "astream", "astream_events"]


def options(entry: str) -> dict[str, Any]:
    return {"stream_mode": ["values", "updates", "messages"]} if entry in ("stream", "astream") else {}


@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize("shape", SHAPES)
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
            assert len(next(results)) == len(turn)


@pytest.mark.parametrize("shape", SHAPES)
def test_at_node_depth_nothing_of_the_graph_runs(shape: str) -> None:
    asked = Asked()
    graph = SHAPES[shape].build(asked, saver())
    given = [run(graph, "invoke", turn) for turn in SHAPES[shape].turns]
    played = identical(graph, asked, depth="node")
    for turn, result in zip(given, played.results, strict=True):
        if not isinstance(turn, Exception):
            assert plain(result) == plain(turn)
