"""An activity that needs three attempts, and tells the next one how far it came."""

from __future__ import annotations

from datetime import timedelta

from temporalio import activity, workflow
from temporalio.exceptions import ApplicationError


@activity.defn
async def counts() -> str:
    info = activity.info()
    if info.attempt < 3:
        activity.heartbeat(info.attempt)
        raise ApplicationError(f"attempt {info.attempt}", type="Again")
    return f"attempt {info.attempt} after {info.heartbeat_details[0]}"


@workflow.defn
class Retried:
    @workflow.run
    async def run(self) -> str:
        return await workflow.execute_activity(
            counts, start_to_close_timeout=timedelta(seconds=20), heartbeat_timeout=timedelta(seconds=20)
        )


ACTIVITIES = [counts]
