"""A workflow with children, and activities that are answered at once."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from temporalio import activity, workflow
from temporalio.exceptions import ChildWorkflowError

import lockstep

SOON = timedelta(seconds=20)

ran: list[str] = []  # activities, in this process


@activity.defn
async def reads(what: str) -> str:
    ran.append(f"reads {what}")
    return what.upper()


@activity.defn
async def writes(what: str) -> str:
    ran.append(f"writes {what}")
    return f"wrote {what}"


lockstep.mark(writes, effect="mutating")
lockstep.mark(reads, effect="read")


@workflow.defn
class Grandchild:
    @workflow.run
    async def run(self, what: str) -> str:
        return await workflow.execute_activity(writes, what, start_to_close_timeout=SOON)


@workflow.defn
class Kid:
    @workflow.run
    async def run(self, what: str) -> str:
        told = await workflow.execute_activity(reads, what, start_to_close_timeout=SOON)
        return await workflow.execute_child_workflow(Grandchild.run, told, id=f"grandchild-{told}")


@workflow.defn
class Parent:
    @workflow.run
    async def run(self) -> list[str]:
        first, second = await asyncio.gather(
            workflow.execute_activity(reads, "a", start_to_close_timeout=SOON),
            workflow.execute_activity(reads, "b", start_to_close_timeout=SOON),
        )
        try:
            told = await workflow.execute_child_workflow(Kid.run, first, id=f"kid-{first}")
        except ChildWorkflowError as error:
            told = f"failed: {error.cause}"
        return [first, second, told]


WORKFLOWS = [Parent, Kid, Grandchild]
ACTIVITIES = [reads, writes]
