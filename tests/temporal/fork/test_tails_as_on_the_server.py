"""What a fork's tail makes of a workflow's commands is what a real server and core made of them.

Each workflow is run once on the server and recorded. A fork at its start then runs all of it again, its activities for
real, without the server: it has to give the same commands, task by task, with the same ids and random numbers. A fork
at each other step has to come to the same end.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import fork_workflows as forked
import pytest
from live_server import Ran, Server, run
from temporalio.client import WorkflowUpdateFailedError
from temporalio.exceptions import FailureError

import lockstep
from lockstep.log.store import open_store
from lockstep.session.native.kept import recalled
from lockstep_temporal import LockstepPlugin, Setup
from lockstep_temporal.compare import compare
from lockstep_temporal.recorded import Recorded, Task

EVERYTHING = Setup(workflows=forked.WORKFLOWS, activities=forked.ACTIVITIES, sandboxed=False)

type Drive = Callable[[Any], Awaitable[Any]]


async def serve_waits(handle: Any) -> None:
    await handle.signal(forked.Waits.tell, "one")
    await handle.signal(forked.Waits.tell, "two")
    while await handle.query(forked.Waits.count) < 2:
        await asyncio.sleep(0.01)
    for what in ("", "breaks"):
        with pytest.raises(WorkflowUpdateFailedError):
            await handle.execute_update(forked.Waits.finish, what)
    await handle.execute_update(forked.Waits.finish, "done")


async def serve_stopped(handle: Any) -> None:
    while await handle.query(forked.Stopped.where) != "beats":
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.05)
    await handle.cancel()


def recorded_on(
    server: Server, store: Path, workflow: Any, args: Sequence[Any] = (), drive: Drive | None = None
) -> tuple[str, Ran]:  # fmt: skip
    ran = run(
        server, workflow.run, *args, workflows=forked.WORKFLOWS, activities=forked.ACTIVITIES, sandboxed=False,
        plugins=[LockstepPlugin(store)], drive=drive,
    )  # fmt: skip
    return f"temporal/{ran.workflow_id}", ran


def tasks(store: Path, run: str, branch: str = "main") -> list[list[Task]]:
    with open_store(str(store)) as opened:
        reader = opened.run(run, branch)
        recorded = Recorded(reader, recalled(str(store), reader.meta)[0])
        return [step.tasks() for step in recorded.steps]


def came_to(ran: Any) -> str:
    """How a workflow ended: its result, or its error."""
    error = ran.error if isinstance(ran.error, FailureError) or ran.error is None else ran.error.cause
    return repr(ran.result) if error is None else f"{type(error).__name__}: {error}"


# Where each task is the same however fast the server is: two things never happen at once.
ONE_AFTER_THE_OTHER = [(forked.Retries, ()), (forked.Locals, ()), (forked.Cancels, ()), (forked.Parents, ()),
                       (forked.Chain, (2, []))]  # fmt: skip


@pytest.mark.parametrize(("workflow", "args"), ONE_AFTER_THE_OTHER, ids=lambda each: getattr(each, "__name__", ""))
def test_a_whole_workflow_gives_the_same_commands_without_the_server(
    temporal_server: Server, tmp_path: Path, workflow: Any, args: Sequence[Any]
) -> None:
    store = tmp_path / "s.db"
    name, ran = recorded_on(temporal_server, store, workflow, args)
    fork = lockstep.fork(f"{name}:0", EVERYTHING, store=store, live=["*"])
    assert came_to(fork) == came_to(ran)
    on_server, here = tasks(store, name), tasks(store, name, fork.branch)
    assert [len(step) for step in here] == [len(step) for step in on_server]
    for step, (theirs, ours) in enumerate(zip(on_server, here, strict=True)):
        for (_, was), (_, now) in zip(theirs, ours, strict=True):
            assert compare(was, now, lambda kind, name, path: "original_schedule_time" in path) is None, step
    assert lockstep.replay(fork.address, EVERYTHING, store=store).divergence is None


MIXED = [(forked.Waits, serve_waits), (forked.Stopped, serve_stopped), (forked.Parents, None)]


@pytest.mark.parametrize(("workflow", "drive"), MIXED, ids=lambda each: getattr(each, "__name__", ""))
@pytest.mark.parametrize("live", [True, False], ids=["live", "from the record"])
def test_a_fork_at_each_step_comes_to_the_same_end(
    temporal_server: Server, tmp_path: Path, workflow: Any, drive: Drive | None, live: bool
) -> None:
    """Signals, updates and requests to cancel come again where they came."""
    store = tmp_path / "s.db"
    name, ran = recorded_on(temporal_server, store, workflow, drive=drive)
    steps = len(tasks(store, name))
    for step in range(0, steps, 1 if steps < 12 else 3):
        fork = lockstep.fork(f"{name}:{step}", EVERYTHING, store=store, live=["*"] if live else [])
        assert (step, came_to(fork)) == (step, came_to(ran))
        assert lockstep.replay(fork.address, EVERYTHING, store=store).identical
