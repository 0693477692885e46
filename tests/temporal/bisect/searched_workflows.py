"""Workflows to search: what they ask, and which of their activities go wrong."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from temporalio import activity, workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ApplicationError

SOON = timedelta(seconds=20)
DONE: list[str] = []  # activities that really ran
WRONG: set[str] = set()  # those that go wrong


@activity.defn
def look(name: str) -> str:
    DONE.append(name)
    return "wrong" if name in WRONG else name


@activity.defn
async def pay(told: str) -> str:
    DONE.append("pay")
    if "wrong" in told:
        raise ApplicationError(f"cannot pay for {told}", type="Declined", non_retryable=True)
    return "paid"


@workflow.defn
class Buying:
    """Looks at three things at once, waits for a signal and a while, and pays."""

    def __init__(self) -> None:
        self.note = ""

    @workflow.signal
    def approve(self, note: str) -> None:
        self.note = note

    @workflow.run
    async def run(self, things: list[str]) -> str:
        looks = [workflow.execute_activity(look, thing, start_to_close_timeout=SOON) for thing in things]
        found = await asyncio.gather(*looks)
        await workflow.wait_condition(lambda: self.note != "")
        await workflow.sleep(3)
        told = ", ".join(found)
        retry = RetryPolicy(maximum_attempts=1)
        await workflow.execute_activity(pay, told, start_to_close_timeout=SOON, retry_policy=retry)
        return f"{self.note}: {told}"


@workflow.defn
class Counting:
    """Looks at one thing after the other, each in an execution of its own."""

    @workflow.run
    async def run(self, left: list[str], found: list[str]) -> list[str]:
        if left:
            told = await workflow.execute_activity(look, left[0], start_to_close_timeout=SOON)
            again = await workflow.execute_activity(look, f"{left[0]} again", start_to_close_timeout=SOON)
            workflow.continue_as_new(args=[left[1:], [*found, told, again]])
        return found
