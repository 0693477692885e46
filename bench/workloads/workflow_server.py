"""A workflow of five activities on a development server: fresh runs, bare and recorded, and forks of a recorded one.

workflow_server.py RUNS FIGURES
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from measuring import Measuring, measure
from temporalio.client import Client
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import Worker

import lockstep
from lockstep_temporal import LockstepPlugin

ACTIVITIES = 5
FORKS = 50


async def runs(count: int, store: str) -> tuple[dict[str, list[float]], str]:
    """How long each run took, bare and recorded in turns, and the last recorded one."""
    took: dict[str, list[float]] = {"fresh": [], "recorded": []}
    program = Path(sys.executable).with_name("temporal")
    started = WorkflowEnvironment.start_local(dev_server_existing_path=str(program), dev_server_log_level="error")
    async with await started as server:
        address = server.client.service_client.config.target_host
        plain = await Client.connect(address)
        watched = await Client.connect(address, plugins=[LockstepPlugin(store)])
        with ThreadPoolExecutor(4) as pool:
            options: Any = {"workflows": [Measuring], "activities": [measure], "activity_executor": pool}
            async with Worker(plain, task_queue="plain", **options), Worker(watched, task_queue="watched", **options):
                for turn in range(count + 1):
                    for name, client, queue in (("fresh", plain, "plain"), ("recorded", watched, "watched")):
                        began = time.perf_counter()
                        await client.execute_workflow(Measuring.run, ACTIVITIES, id=f"{name}-{turn}", task_queue=queue)
                        if turn:  # the first one also loads what it needs
                            took[name].append(time.perf_counter() - began)
    return took, f"temporal/recorded-{count}"


def forks(run: str, store: str) -> list[float]:
    """With another first answer; the other activities run anew."""
    took = []
    for number in range(FORKS + 1):
        began = time.perf_counter()
        done = lockstep.fork(
            f"{run}:1", [Measuring, measure], edits={"1.1": 100 + number}, live=["measure"], store=store
        )  # fmt: skip
        if number:
            took.append(time.perf_counter() - began)
        assert done.result == 100 + number + sum(range(2, ACTIVITIES + 1)), done
    return took


def main() -> None:
    count, figures = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        store = str(Path(folder, "store.db"))
        took, run = asyncio.run(runs(int(count), store))
        took["fork"] = forks(run, store)
    found = {name: statistics.median(seconds) for name, seconds in took.items()}
    Path(figures).write_text(json.dumps(found))
    os._exit(0)  # the SDK's own threads may abort an interpreter that ends


if __name__ == "__main__":
    main()
