"""What is done with one history of Temporal, timed inside of one process, without a server.

workflow_costs.py history N FIGURES        import and replay of a history of N activities
workflow_costs.py bisect CULPRIT FIGURES   bisect of forty activities, one of which was answered badly
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import measuring

import lockstep
from lockstep.log.store import open_store
from lockstep_temporal import history

FORTY = 40
AGAIN = 3  # times that each is done: the first one also loads what it needs


def imported(store: Path, text: str) -> str:
    with open_store(str(store), create=True) as opened:
        return history.imports(opened, text.encode())


def took(function: Callable[[], Any], clock: Callable[[], float]) -> tuple[float, Any]:
    began = clock()
    found = function()
    return clock() - began, found


def histories(count: int, room: Path) -> dict[str, float]:
    text = measuring.history(count)
    imports, replays = [], []
    store = room / "0.db"
    run = imported(store, measuring.history(3))
    assert lockstep.replay(run, measuring.Measuring, store=str(store)).identical
    for turn in range(1, AGAIN + 1):
        store = room / f"{turn}.db"
        seconds, run = took(partial(imported, store, text), time.process_time)
        imports.append(seconds)
        seconds, done = took(partial(lockstep.replay, run, measuring.Measuring, store=str(store)), time.process_time)
        replays.append(seconds)
        assert done.identical, done.divergence
    size = sum(file.stat().st_size for file in room.glob(f"{AGAIN}.db*") if file.is_file())
    return {"import": min(imports), "replay": min(replays), "bytes": float(size), "json": float(len(text))}


def bisect(culprit: int, room: Path) -> dict[str, float]:
    store = room / "store.db"
    run = imported(store, measuring.history(FORTY, {culprit: measuring.BAD}))

    def search() -> Any:
        return lockstep.bisect(
            run, [measuring.Measuring, measuring.measure], bad=lambda seen: seen.result < 0, live=["measure"],
            store=str(store), again=True,
        )  # fmt: skip

    searches = []
    for _ in range(AGAIN):
        seconds, found = took(search, time.perf_counter)
        searches.append(seconds)
        assert found.step == culprit, found
    first = searches[0]
    return {"first": first, "bisect": min(searches), "probes": found.probes, "live": found.live_calls}


def main() -> None:
    what, number, figures = sys.argv[1:]
    measure = {"history": histories, "bisect": bisect}[what]
    with tempfile.TemporaryDirectory() as folder:
        found = measure(int(number), Path(folder))
    Path(figures).write_text(json.dumps(found))
    os._exit(0)  # the SDK's own threads may abort an interpreter that ends


if __name__ == "__main__":
    main()
