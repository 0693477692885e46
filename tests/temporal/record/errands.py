"""A workflow that tests have live: it fetches, takes a rest, and writes down what came."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

from temporalio import activity, workflow

SOON = timedelta(seconds=10)


@activity.defn
async def fetch(what: str) -> str:
    raise AssertionError("recorded answers only")


@activity.defn
async def add_up(numbers: list[int]) -> int:
    raise AssertionError("recorded answers only")


@workflow.defn
class Errand:
    def __init__(self) -> None:
        self.told: list[str] = []

    @workflow.run
    async def run(self, what: str, rest: bool = False) -> dict[str, Any]:
        first = await workflow.execute_activity(fetch, what, start_to_close_timeout=SOON)
        if rest:
            await asyncio.sleep(3)
        second = await workflow.execute_activity(fetch, f"more {what}", start_to_close_timeout=SOON)
        return {
            "got": [first, second],
            "told": self.told,
            "at": workflow.now().isoformat(),
            "id": str(workflow.uuid4()),
        }

    @workflow.signal
    def tell(self, what: str) -> None:
        self.told.append(what)

    @workflow.update
    def correct(self, what: str) -> int:
        self.told = [what]
        return 1

    @correct.validator
    def _may(self, what: str) -> None:
        if not what:
            raise ValueError("correct it to what?")

    @workflow.query
    def so_far(self) -> list[str]:
        return self.told


@workflow.defn
class Sums:
    """Has local activities within a workflow task."""

    @workflow.run
    async def run(self, what: str) -> int:
        total = await workflow.execute_local_activity(add_up, [1, 2], start_to_close_timeout=SOON)
        total += await workflow.execute_local_activity(add_up, [total], start_to_close_timeout=SOON)
        await workflow.execute_activity(fetch, what, start_to_close_timeout=SOON)
        return total


@workflow.defn
class Rounds:
    """Goes on as new."""

    @workflow.run
    async def run(self, left: int) -> str:
        await workflow.execute_activity(fetch, str(left), start_to_close_timeout=SOON)
        if left:
            workflow.continue_as_new(left - 1)
        return "done"
