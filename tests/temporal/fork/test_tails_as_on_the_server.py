"""What a fork's tail makes of a workflow's commands is what a real server and core made of them.

Each workflow is run once on the server and recorded. A fork at its start then runs all of it again, its activities for
real, without the server: it has to give the same commands, with the same ids and random numbers. A fork
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
from temporalio.bridge.proto.workflow_completion import WorkflowActivationCompletion
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


class OnServer:
    """What workflows did on the server, each once."""

    def __init__(self, server: Server, store: Path) -> None:
        self.store = store
        self._server = server
        self._ran: dict[str, tuple[str, Ran]] = {}

    def recorded(self, workflow: Any, args: Sequence[Any] = (), drive: Drive | None = None) -> tuple[str, Ran]:
        """The run's name, and how it went."""
        if workflow.__name__ not in self._ran:
            ran = run(
                self._server, workflow.run, *args, workflows=forked.WORKFLOWS, activities=forked.ACTIVITIES,
                sandboxed=False, plugins=[LockstepPlugin(self.store)], drive=drive,
            )  # fmt: skip
            self._ran[workflow.__name__] = f"temporal/{ran.workflow_id}", ran
        return self._ran[workflow.__name__]


@pytest.fixture(scope="module")
def on_server(temporal_server: Server, tmp_path_factory: pytest.TempPathFactory) -> OnServer:
    return OnServer(temporal_server, tmp_path_factory.mktemp("recorded") / "s.db")


def tasks(store: Path, run: str, branch: str = "main") -> list[list[Task]]:
    with open_store(str(store)) as opened:
        reader = opened.run(run, branch)
        recorded = Recorded(reader, recalled(str(store), reader.meta)[0])
        return [step.tasks() for step in recorded.steps]


def commands(store: Path, run: str, branch: str = "main") -> WorkflowActivationCompletion:
    """All that the workflow commanded. Which tasks gave them hangs on how fast a server is: it tells at once what has
    come by then."""
    made = WorkflowActivationCompletion()
    for step in tasks(store, run, branch):
        for _, completion in step:
            made.successful.commands.extend(completion.successful.commands)
    return made


def drawn_anew(kind: str, name: str, path: str) -> bool:
    """When core was asked for a local activity the first time: a clock of its own."""
    return "original_schedule_time" in path


def came_to(ran: Any) -> str:
    """How a workflow ended: its result, or its error."""
    error = ran.error if isinstance(ran.error, FailureError) or ran.error is None else ran.error.cause
    return repr(ran.result) if error is None else f"{type(error).__name__}: {error}"


# Of which the order of commands does not hang on how fast the server is.
ONE_AFTER_THE_OTHER = [(forked.Retries, ()), (forked.Locals, ()), (forked.Cancels, ()), (forked.Parents, ()),
                       (forked.Chain, (2, []))]  # fmt: skip


@pytest.mark.parametrize(("workflow", "args"), ONE_AFTER_THE_OTHER, ids=lambda each: getattr(each, "__name__", ""))
def test_a_whole_workflow_gives_the_same_commands_without_the_server(
    on_server: OnServer, workflow: Any, args: Sequence[Any]
) -> None:  # fmt: skip
    store = on_server.store
    name, ran = on_server.recorded(workflow, args)
    fork = lockstep.fork(f"{name}:0", EVERYTHING, store=store, live=["*"])
    assert came_to(fork) == came_to(ran)
    found = compare(commands(store, name), commands(store, name, fork.branch), drawn_anew)
    assert found is None, found
    assert lockstep.replay(fork.address, EVERYTHING, store=store).divergence is None


MIXED = [(forked.Waits, serve_waits), (forked.Stopped, serve_stopped), (forked.Parents, None)]


@pytest.mark.parametrize(("workflow", "drive"), MIXED, ids=lambda each: getattr(each, "__name__", ""))
@pytest.mark.parametrize("live", [True, False], ids=["live", "from the record"])
def test_a_fork_at_each_step_comes_to_the_same_end(
    on_server: OnServer, workflow: Any, drive: Drive | None, live: bool
) -> None:  # fmt: skip
    """Signals, updates and requests to cancel come again where they came."""
    store = on_server.store
    name, ran = on_server.recorded(workflow, drive=drive)
    steps = len(tasks(store, name))
    for step in range(0, steps, 1 if steps < 12 else 5):
        fork = lockstep.fork(f"{name}:{step}", EVERYTHING, store=store, live=["*"] if live else [])
        assert (step, came_to(fork)) == (step, came_to(ran))
        assert lockstep.replay(fork.address, EVERYTHING, store=store).identical
