"""A module that is a target: one workflow, and an activity."""

from __future__ import annotations

from datetime import timedelta

from temporalio import activity, workflow

__all__ = ["Greets", "greet"]


@activity.defn
def greet(name: str) -> str:
    raise AssertionError("no activity runs in a replay")


@workflow.defn
class Greets:
    @workflow.run
    async def run(self, name: str) -> str:
        said = await workflow.execute_activity(greet, name, start_to_close_timeout=timedelta(seconds=5))
        return f"{said}, said at {workflow.now():%H:%M}"
