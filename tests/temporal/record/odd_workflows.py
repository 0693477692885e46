"""What workflows do seldom: cancel what they have just begun, let go of what runs, try local activities again later."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

from temporalio import activity, workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ApplicationError, is_cancelled_exception

SOON = timedelta(seconds=20)


@activity.defn
async def quick(what: str) -> str:
    return what


@activity.defn
async def slow(what: str) -> str:
    """Longer than anybody waits for it."""
    await asyncio.sleep(0.3)
    return what


@activity.defn
async def third_time() -> str:
    if activity.info().attempt < 3:
        raise ApplicationError("not yet", type="NotYet")
    return f"attempt {activity.info().attempt}"


@workflow.defn
class Waits:
    @workflow.run
    async def run(self) -> str:
        await workflow.wait_condition(lambda: False)
        return "never"


@workflow.defn
class Odd:
    @workflow.run
    async def run(self) -> dict[str, Any]:
        seen: dict[str, Any] = {}
        seen["at once"] = await self._cancelled_at_once()
        abandoned = workflow.start_activity(
            slow, "left alone", start_to_close_timeout=SOON,
            cancellation_type=workflow.ActivityCancellationType.ABANDON,
        )  # fmt: skip
        await asyncio.sleep(0.02)
        abandoned.cancel()
        seen["abandoned"] = await ended(abandoned)
        child = await workflow.start_child_workflow(
            Waits.run, id=f"{workflow.info().workflow_id}-child",
            cancellation_type=workflow.ChildWorkflowCancellationType.TRY_CANCEL,
        )  # fmt: skip
        child.cancel()
        seen["child"] = await ended(child)
        seen["beside"] = await asyncio.gather(
            workflow.execute_local_activity(quick, "here", start_to_close_timeout=SOON),
            workflow.execute_activity(quick, "there", start_to_close_timeout=SOON),
            workflow.execute_local_activity(quick, "here too", start_to_close_timeout=SOON),
        )
        seen["later"] = await workflow.execute_local_activity(
            third_time, start_to_close_timeout=SOON, local_retry_threshold=timedelta(milliseconds=1),
            retry_policy=RetryPolicy(initial_interval=timedelta(milliseconds=30), backoff_coefficient=1.0),
        )  # fmt: skip
        other = workflow.get_external_workflow_handle(f"{workflow.info().workflow_id}-other")
        try:
            await other.signal("hurry", "now")
        except ApplicationError as error:
            seen["other"] = str(error)
        try:
            await other.cancel()
        except ApplicationError as error:
            seen["stopped"] = str(error)
        return seen

    async def _cancelled_at_once(self) -> list[str]:
        started = [
            workflow.start_activity(quick, "never", start_to_close_timeout=SOON),
            asyncio.create_task(workflow.sleep(3600)),
            asyncio.create_task(workflow.execute_child_workflow(Waits.run)),
        ]
        await asyncio.sleep(0)
        for each in started:
            each.cancel()
        return [await ended(each) for each in started]


async def ended(task: Any) -> str:
    try:
        return str(await task)
    except BaseException as error:
        if not is_cancelled_exception(error):
            raise
        return type(error).__name__


@workflow.defn
class Stumbles:
    """Fails twice; its retry policy has it tried again."""

    @workflow.run
    async def run(self) -> str:
        await workflow.execute_activity(quick, "x", start_to_close_timeout=SOON)
        if workflow.info().attempt < 3:
            raise ApplicationError(f"attempt {workflow.info().attempt}", type="Stumbled")
        return f"attempt {workflow.info().attempt}"


WORKFLOWS = [Odd, Waits, Stumbles]
ACTIVITIES = [quick, slow, third_time]
