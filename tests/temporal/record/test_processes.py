"""Workers in several processes, which write one run."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import kitchen_sink as sink
import pytest
from live_server import Server, Work, worked
from lived_executions import branches, recorded
from temporalio.worker import Worker

import lockstep
from lockstep_temporal import LockstepPlugin
from lockstep_temporal.books import Books

PROGRAM = Path(__file__).parent / "worker_process.py"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[str]:
    path = str(tmp_path / "store.db")
    yield path
    Books.of(path).close()


def test_a_worker_that_is_killed_leaves_all_that_the_server_knows_and_the_next_one_goes_on(
    temporal_server: Server, store: str
) -> None:
    async def killed(work: Work) -> Any:
        other = subprocess.Popen([sys.executable, str(PROGRAM), temporal_server.address, "killed", store])
        try:
            handle = await work.client.start_workflow(
                sink.KitchenSink.run, sink.Order(7, ["lamp"]), id="order", task_queue="killed"
            )
            await sink._waiting(work.client, "order", [])
        finally:
            other.kill()
            other.wait()
        with recorded(store, "temporal/order") as found:
            assert found.reader.info.state == "interrupted"
            begun = len(found.steps)
        assert begun >= 8
        return handle, begun

    async def rest(work: Work, handle: Any) -> Any:
        same = work.client.get_workflow_handle(handle.id, run_id=handle.first_execution_run_id)
        await sink.serve_kitchen_sink(same, 0)
        return await same.result()

    async def whole(work: Work) -> Any:
        handle, begun = await killed(work)
        ours = Worker(
            work.client, task_queue="killed", workflows=sink.WORKFLOWS, activities=sink.ACTIVITIES,
            plugins=[LockstepPlugin(store)], activity_executor=ThreadPoolExecutor(4),
        )  # fmt: skip
        async with ours:
            return begun, await rest(work, handle)

    begun, result = worked(temporal_server, whole, workflows=sink.WORKFLOWS, activities=sink.ACTIVITIES)
    # Killed before the server had its answer, a worker leaves a task that the next one does anew: on a branch.
    latest = branches(store, "temporal/order")[-1]
    with recorded(store, "temporal/order", latest) as found:
        assert latest in ("main", "retried")
        (turn,) = found.turns
        assert (turn.status, len(turn.steps) > begun) == ("ok", True)
        assert found.reader.info.state == "complete"
    replay = lockstep.replay(f"temporal/order@{latest}", sink, store=store)
    assert (replay.identical, replay.result) == (True, result)


FORKS = """
import os, sys
from lockstep_temporal.books import Books

books = Books.of(sys.argv[1])
books.warm()
child = os.fork()
if child == 0:
    os._exit(0 if Books.of(sys.argv[1]) is not books else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert Books.of(sys.argv[1]) is books
"""


def test_a_forked_process_leaves_its_parents_recording_alone(tmp_path: Path) -> None:
    command = [sys.executable, "-c", FORKS, str(tmp_path / "store.db")]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
