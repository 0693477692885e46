"""What is done with a history grows with its length, and not with the square of it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import measuring
import pytest

import lockstep
from lockstep.adapter import registry
from lockstep.cli import reading
from lockstep.log.store import open_store

SHORT, MIDDLE, LONG = 25, 50, 100


def calls(function: Callable[[], Any]) -> int:
    """How many functions are called, in all threads: other than seconds, the same on any machine, busy or not."""
    monitoring, counted = sys.monitoring, 0
    tool = monitoring.PROFILER_ID

    def count(*_: Any) -> None:
        nonlocal counted
        counted += 1

    monitoring.use_tool_id(tool, "lockstep tests")
    try:
        monitoring.register_callback(tool, monitoring.events.PY_START, count)
        monitoring.set_events(tool, monitoring.events.PY_START)
        function()
    finally:
        monitoring.set_events(tool, monitoring.events.NO_EVENTS)
        monitoring.free_tool_id(tool)
    return counted


def test_importing_listing_and_replaying_a_history_of_twice_the_length_is_twice_the_work(tmp_path: Path) -> None:
    store = str(tmp_path / "store.db")
    adapter = registry.get("temporal")
    imports = adapter.imports
    assert imports is not None
    work: dict[str, list[int]] = {"import": [], "replay": [], "log": []}
    with open_store(store, create=True) as opened:
        warm = imports(opened, measuring.history(3).encode(), "")
        assert lockstep.replay(warm, measuring.Measuring, store=store).identical
        for count in (SHORT, MIDDLE, LONG):
            text = measuring.history(count, workflow_id=f"of-{count}").encode()
            work["import"].append(calls(partial(imports, opened, text, "")))
            run = f"temporal/of-{count}"

            def replay(run: str = run) -> None:
                assert lockstep.replay(run, measuring.Measuring, store=store).identical

            work["replay"].append(calls(replay))
            work["log"].append(
                calls(partial(reading.log, run, store=store, everything=True, as_json=False, debug=True))
            )
    for what, (short, middle, long) in work.items():
        # Of twice as many activities; the square would be four times.
        assert (long - middle) / (middle - short) == pytest.approx(2, rel=0.2), (what, work[what])
