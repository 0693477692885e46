"""What a worker recorded and the imported history of the same execution are the same run."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import kitchen_sink as sink
import pytest
from live_server import Server, run, unique

import lockstep
from lockstep.log.store import open_store
from lockstep.log.timeline import Timeline
from lockstep_temporal import LockstepPlugin
from lockstep_temporal.history import imports

ORDER = sink.Order(7, ["lamp", "rug"], rounds=1)
WORKFLOWS: dict[str, tuple[Any, tuple[Any, ...], dict[str, Any]]] = {
    "steps": (sink.Steps, (5,), {}),
    "kitchen_sink": (sink.KitchenSink, (ORDER,), {"drive": partial(sink.serve_kitchen_sink, rounds=1)}),
    "edges": (sink.Edges, (1,), {"start": {"memo": {"kind": "edges"}}}),
    "unwinds": (sink.Unwinds, ("the table",), {"drive": sink.serve_unwinds}),
}


@pytest.mark.parametrize("name", WORKFLOWS)
def test_a_recording_and_the_history_of_the_same_execution_say_the_same(
    temporal_server: Server, tmp_path: Path, name: str
) -> None:
    workflow, given, options = WORKFLOWS[name]
    store = str(tmp_path / "store.db")
    ran = run(
        temporal_server, workflow.run, *given, id=unique(name), workflows=sink.WORKFLOWS, activities=sink.ACTIVITIES,
        plugins=[LockstepPlugin(store=store)], **options,
    )  # fmt: skip
    with open_store(store) as opened:
        for history in ran.histories:
            imported = imports(opened, history.encode(), f"temporal/{ran.workflow_id}-imported")
        recorded = Timeline(opened.run(f"temporal/{ran.workflow_id}"))
        other = Timeline(opened.run(imported))
        assert [(step.kind, step.name, len(step.effects)) for step in recorded.steps] == [
            (step.kind, step.name, len(step.effects)) for step in other.steps
        ]
        assert len(recorded.turns) == len(other.turns) == len(ran.histories)
    found = lockstep.diff(f"temporal/{ran.workflow_id}", imported, store=store)
    assert found.same, found.first
