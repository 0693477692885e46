"""Workflows that nobody has thought of: recorded on a real server, replayed byte by byte, forked anywhere."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

import pytest
import random_workflows as drawn
from live_server import Ran, Server, run

import lockstep
from lockstep.debugger import newest
from lockstep.errors import EditError
from lockstep.log.store import open_store
from lockstep.log.timeline import Timeline
from lockstep_temporal import LockstepPlugin, Setup
from lockstep_temporal.history import imports

SEEDS = [int(seed) for seed in os.environ.get("LOCKSTEP_SEEDS", "5 9 11 14 20").split()]
TARGET = Setup(workflows=drawn.WORKFLOWS, activities=drawn.ACTIVITIES)
EDITED = {"kind": "edited", "number": 9, "given": None}


@pytest.mark.parametrize("seed", SEEDS)
def test_a_random_workflow_is_replayed_and_so_are_its_forks(
    seed: int, temporal_server: Server, tmp_path: Path
) -> None:  # fmt: skip
    draw = random.Random(seed)
    store = str(tmp_path / "store.db")
    ran = run(
        temporal_server,
        drawn.Interpreted.run,
        drawn.program(draw),
        drive=drawn.serve(draw),
        workflows=drawn.WORKFLOWS,
        activities=drawn.ACTIVITIES,
        plugins=[LockstepPlugin(store)],
    )
    with open_store(store) as opened:
        names = [info.name for info in opened.runs()]  # of its children too
        run_name = f"temporal/{ran.workflow_id}"
        # Where something came just when the workflow ended, the server had it go on: that is a branch.
        latest = newest.branch(opened.run(run_name)) or "main"
        address = run_name if latest == "main" else f"{run_name}@{latest}"
        steps = [(step.number, len(step.effects)) for step in Timeline(opened.run(run_name, latest)).steps]

    for name in names:
        _replayed(name, store)
    assert _plain(_replayed(address, store).result) == _plain(ran.result)
    _imported(ran, tmp_path)
    for number in range(2):
        step, effects = draw.choice(steps)
        edits = {f"{step}.{draw.randint(1, effects)}": EDITED} if effects and number else None
        try:
            forked = lockstep.fork(f"{address}:{step}", TARGET, edits=edits, live=["*"], store=store)
        except EditError:  # what is there has no such answer: a timer, a signal
            continue
        replay = _replayed(forked.address, store)
        assert forked.state in ("complete", "failed")
        assert _plain(replay.result) == _plain(forked.result)


def _imported(ran: Ran, tmp_path: Path) -> None:
    """The same by its history alone."""
    store = str(tmp_path / "imported.db")
    with open_store(store, create=True) as opened:
        for history in ran.histories:
            name = imports(opened, history.encode(), "")
    assert _plain(_replayed(name, store).result) == _plain(ran.result)


def _replayed(address: str, store: str) -> lockstep.Replay:
    replay = lockstep.replay(address, TARGET, store=store)
    assert replay.identical, (address, str(replay.divergence), replay.coverage)
    return replay


def _plain(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)
