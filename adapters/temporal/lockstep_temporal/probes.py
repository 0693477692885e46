"""Workers for `lockstep bisect --workers`: a worker of one's own, and what goes onto one that there is already.

    await serve(client, "probes", Maker(Program(targets=("agent:graph",)), ".lockstep/probes"))

    maker = Maker(Program(command=("python", "agent.py")), ".lockstep/probes")
    Worker(client, task_queue="probes", workflows=WORKFLOWS, activities=[maker.make_probe], max_concurrent_activities=2)

Probes run what the `Program` says, and nothing that was sent. Each is made in a process of its own.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta

from temporalio.client import Client
from temporalio.worker import Worker
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

from lockstep_temporal import ending
from lockstep_temporal.probe_client import Place
from lockstep_temporal.probe_worker import Maker, Program
from lockstep_temporal.probe_workflow import LockstepPart, LockstepProbe

__all__ = ["WORKFLOWS", "Maker", "Place", "Program", "serve", "worker"]

WORKFLOWS = (LockstepProbe, LockstepPart)
_BEATS = timedelta(seconds=1)  # how late a worker may hear that a probe is cancelled


def worker(client: Client, queue: str, maker: Maker, jobs: int = 1) -> Worker:
    """A worker that does nothing but probes, `jobs` of them at a time."""
    return Worker(
        client,
        task_queue=queue,
        workflows=WORKFLOWS,
        activities=[maker.make_probe],
        max_concurrent_activities=jobs,
        max_heartbeat_throttle_interval=_BEATS,
        default_heartbeat_throttle_interval=_BEATS,
        # Histories are short: any worker goes on with any of them, also at once after another one died.
        max_cached_workflows=0,
        # Of its own modules a sandbox need not load a copy for each task.
        workflow_runner=SandboxedWorkflowRunner(
            restrictions=SandboxRestrictions.default.with_passthrough_modules(
                "lockstep", "lockstep_temporal", "msgspec"
            )
        ),
    )


async def serve(client: Client, queue: str, maker: Maker, jobs: int = 1, ended: asyncio.Event | None = None) -> None:
    """Works until `ended`; probes that are being made then are another worker's."""
    made = worker(client, queue, maker, jobs)
    over = ended if ended is not None else asyncio.Event()
    ending.settle()
    try:
        await maker.warm(jobs)
        async with made:
            await over.wait()
    finally:
        await maker.close()
        ending.settle()
