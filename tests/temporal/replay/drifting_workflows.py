"""Workflows that draw something from outside of the workflow's own clock and random numbers."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import Any

from temporalio import workflow

SOON = timedelta(seconds=20)


@workflow.defn(sandboxed=False)
class Drifts:
    """Each call has an id of its own."""

    @workflow.run
    async def run(self, order: int) -> str:
        asked = [{"id": os.urandom(8).hex(), "order": order}, {"id": os.urandom(8).hex(), "order": -order}]
        found: Any = await workflow.execute_activity("look_up", args=[{"asked": asked}], start_to_close_timeout=SOON)
        return str(found)


@workflow.defn(name="Drifts", sandboxed=False)
class DriftsAndChanged:
    @workflow.run
    async def run(self, order: int) -> str:
        asked = [{"id": os.urandom(8).hex(), "order": order}, {"id": os.urandom(8).hex(), "order": order}]
        found: Any = await workflow.execute_activity("look_up", args=[{"asked": asked}], start_to_close_timeout=SOON)
        return str(found)


@workflow.defn(sandboxed=False)
class DriftsInResult:
    @workflow.run
    async def run(self, order: int) -> str:
        return f"{order} {os.urandom(8).hex()}"


@workflow.defn(sandboxed=False)
class Agent:
    """As pydantic-ai fills the request of a model: with the time at which it was made."""

    @workflow.run
    async def run(self, question: str) -> str:
        asked = {"messages": [{"timestamp": os.environ["DRIFTING_CLOCK"], "content": question}]}
        found: Any = await workflow.execute_activity(
            "agent__desk__model_request", args=[asked], start_to_close_timeout=SOON
        )
        return str(found)
