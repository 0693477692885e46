"""The agent as a Temporal workflow: what it asks are activities, which ask the provider in process."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from bench.planted import faults
from bench.planted.faults import INBOX, MODEL, PROMPT, SEARCH, TOOL, Case
from bench.planted.provider import Broke, Provider
from temporalio import activity, workflow

import lockstep

provider = Provider()
_PATIENCE = timedelta(seconds=30)


@workflow.defn(name="clerk")
class Clerk:
    """Settles what is open; its control total."""

    @workflow.run
    async def run(self, seed: str, roles: list[str]) -> int:
        case = Case(seed, tuple(roles), "", 0)
        total, system, wanted = 0, "", 0
        for step, role in enumerate(case.roles, 1):
            order = wanted if case.told(step) else case.order(step)
            text = await workflow.execute_activity(
                role, args=[step, order, total, system if role == MODEL else ""], start_to_close_timeout=_PATIENCE,
                result_type=str,
            )  # fmt: skip
            wanted = faults.found(MODEL, text) if role == MODEL else wanted
            system = text if role == PROMPT else system
            total = faults.counted(total, role, text)
        return total


def worker() -> dict[str, Any]:
    """What a worker is made with, and a `Setup` too."""
    from temporalio.worker import UnsandboxedWorkflowRunner

    activities = [_activity(name) for name in (TOOL, SEARCH, INBOX, PROMPT, MODEL)]
    return {"workflows": [Clerk], "activities": activities, "workflow_runner": UnsandboxedWorkflowRunner()}


def _activity(name: str) -> Any:
    from temporalio.exceptions import ApplicationError

    async def ask(step: int, order: int, total: int, system: str) -> str:
        try:
            return provider.answer(step, order, total)
        except Broke as broke:
            raise ApplicationError(str(broke), type="Broke", non_retryable=True) from broke

    return lockstep.mark(activity.defn(name=name)(ask), effect="inference" if name == MODEL else "read")


async def run(case: Case, name: str, store: str) -> None:
    """Runs the workflow of that name on the development server, recorded."""
    from temporalio.client import Client
    from temporalio.worker import Worker

    from lockstep_temporal import LockstepPlugin, subject_server

    client = await Client.connect(await subject_server.address(), plugins=[LockstepPlugin(store)])
    async with Worker(client, task_queue=name, **worker()):
        await client.execute_workflow(
            "clerk", args=[case.seed, [*case.roles]], id=name, task_queue=name, result_type=int
        )
