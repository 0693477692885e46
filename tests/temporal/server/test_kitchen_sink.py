"""Workflows with a bit of everything: replayed byte by byte, from what a worker recorded and from a history of it."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import kitchen_sink as sink
import pytest
from live_server import Ran, Server, run

import lockstep
from lockstep.log.store import open_store
from lockstep_temporal import LockstepPlugin, Setup
from lockstep_temporal.history import imports

ORDER = sink.Order(7, ["lamp", "rug"], rounds=1)
RUNS: dict[str, tuple[Any, tuple[Any, ...], dict[str, Any]]] = {
    "KitchenSink": (sink.KitchenSink.run, (ORDER,), {"drive": partial(sink.serve_kitchen_sink, rounds=1)}),
    "Edges": (sink.Edges.run, (1,), {"start": {"memo": {"kind": "edges"}}}),
    "Unwinds": (sink.Unwinds.run, ("the table",), {"drive": sink.serve_unwinds}),
}
# Answers, and what came from outside, of each kind that the workflows are made of.
KINDS = {"activity", "local_activity", "timer", "child", "signal", "update", "cancel", "signal_external"}

_recorded: dict[str, tuple[str, dict[str, Ran]]] = {}


@pytest.fixture(params=[True, False], ids=["sandboxed", "unsandboxed"])
def recorded(
    request: pytest.FixtureRequest, temporal_server: Server, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Setup, str, dict[str, Ran]]:
    """A store with all of them as workers recorded them, once for each kind of worker, and how they went."""
    sandboxed = request.param
    name = f"sandboxed={sandboxed}"
    if name not in _recorded:
        store = str(tmp_path_factory.mktemp("recorded") / "store.db")
        _recorded[name] = (
            store,
            {
                title: run(
                    temporal_server,
                    workflow,
                    *args,
                    workflows=sink.WORKFLOWS,
                    activities=sink.ACTIVITIES,
                    plugins=[LockstepPlugin(store)],
                    sandboxed=sandboxed,
                    **options,
                )
                for title, (workflow, args, options) in RUNS.items()
            },
        )
    store, ran = _recorded[name]
    return Setup(workflows=sink.WORKFLOWS, activities=sink.ACTIVITIES, sandboxed=sandboxed), store, ran


def test_what_a_worker_recorded_is_replayed(recorded: tuple[Setup, str, dict[str, Ran]]) -> None:
    setup, store, ran = recorded
    with open_store(store) as opened:
        names = [info.name for info in opened.runs()]  # the children too
    kinds: set[str] = set()

    for name in names:
        replay = lockstep.replay(name, setup, store=store)
        assert replay.identical, (name, replay.divergence)
        kinds |= {each.source for each in replay.coverage}

    assert kinds >= KINDS
    assert len(names) == len(ran) + sum(_children(each) for each in ran.values())
    for title in ("KitchenSink", "Edges"):
        assert lockstep.replay(f"temporal/{ran[title].workflow_id}", setup, store=store).result == ran[title].result


def test_its_history_is_replayed_too(recorded: tuple[Setup, str, dict[str, Ran]], tmp_path: Path) -> None:
    setup, _, ran = recorded
    store = str(tmp_path / "imported.db")
    for each in ran.values():
        with open_store(store, create=True) as opened:
            for history in each.histories:
                name = imports(opened, history.encode(), "")

        replay = lockstep.replay(name, setup, store=store)

        assert replay.identical, (name, replay.divergence)
        assert len(replay.results) == len(each.histories) - (each.error is not None)
        if each.error is None:
            assert replay.result == each.result


def _children(ran: Ran) -> int:
    return sum(history.count('"EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_STARTED"') for history in ran.histories)
