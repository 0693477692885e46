"""Workflows that are recorded, and what others have since made of them: `Orders` and its variants, and a few more."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from temporalio import activity, workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError, ApplicationError

SOON = timedelta(seconds=20)


@dataclass
class Receipt:
    """What an order comes to."""

    order: int
    total: int


@activity.defn
async def look_up(order: int) -> dict[str, Any]:
    raise AssertionError("no activity runs in a replay")


@activity.defn
async def charge(order: int, card: dict[str, Any]) -> int:
    raise AssertionError("no activity runs in a replay")


class Body:
    """An order in parts, each of which a variant may change."""

    def __init__(self) -> None:
        self.paid = ""

    async def found(self, order: int) -> Any:
        return await workflow.execute_activity(look_up, order, start_to_close_timeout=SOON)

    async def wait(self) -> None:
        await asyncio.sleep(3)

    async def both(self, order: int) -> list[int]:
        card = {"number": 1881, "name": "Ada"}
        first = workflow.execute_activity(charge, args=[order, card], start_to_close_timeout=SOON)
        second = workflow.execute_activity(charge, args=[-order, card], start_to_close_timeout=SOON)
        return list(await asyncio.gather(first, second))

    def receipt(self, order: int, totals: list[int]) -> Receipt:
        return Receipt(order, sum(totals))

    async def whole(self, order: int) -> Receipt:
        await self.found(order)
        await self.wait()
        return self.receipt(order, await self.both(order))


@workflow.defn
class Orders(Body):
    @workflow.run
    async def run(self, order: int) -> Receipt:
        return await self.whole(order)


@workflow.defn(name="Orders", sandboxed=False)
class Unsandboxed(Body):
    @workflow.run
    async def run(self, order: int) -> Receipt:
        return await self.whole(order)


@workflow.defn(name="Orders")
class OtherArgument(Body):
    async def both(self, order: int) -> list[int]:
        first = workflow.execute_activity(
            charge, args=[order, {"number": 1882, "name": "Ada"}], start_to_close_timeout=SOON
        )
        second = workflow.execute_activity(
            charge, args=[-order, {"number": 1881, "name": "Ada"}], start_to_close_timeout=SOON
        )
        return list(await asyncio.gather(first, second))

    @workflow.run
    async def run(self, order: int) -> Receipt:
        return await self.whole(order)


@workflow.defn(name="Orders")
class OtherTimeout(Body):
    async def found(self, order: int) -> Any:
        return await workflow.execute_activity(look_up, order, start_to_close_timeout=timedelta(seconds=20.001))

    @workflow.run
    async def run(self, order: int) -> Receipt:
        return await self.whole(order)


@workflow.defn(name="Orders")
class OtherRetries(Body):
    async def found(self, order: int) -> Any:
        return await workflow.execute_activity(
            look_up, order, start_to_close_timeout=SOON, retry_policy=RetryPolicy(maximum_attempts=1)
        )

    @workflow.run
    async def run(self, order: int) -> Receipt:
        return await self.whole(order)


@workflow.defn(name="Orders")
class OtherResult(Body):
    def receipt(self, order: int, totals: list[int]) -> Receipt:
        return Receipt(order, sum(totals) + 1)

    @workflow.run
    async def run(self, order: int) -> Receipt:
        return await self.whole(order)


@workflow.defn(name="Orders")
class OtherOrder(Body):
    async def both(self, order: int) -> list[int]:
        return (await super().both(-order))[::-1]

    @workflow.run
    async def run(self, order: int) -> Receipt:
        return await self.whole(order)


@workflow.defn(name="Orders")
class OtherActivity(Body):
    async def found(self, order: int) -> Any:
        return await workflow.execute_activity("look_up_v2", order, start_to_close_timeout=SOON)

    @workflow.run
    async def run(self, order: int) -> Receipt:
        return await self.whole(order)


@workflow.defn(name="Orders")
class LocalNow(Body):
    async def found(self, order: int) -> Any:
        return await workflow.execute_local_activity(look_up, order, start_to_close_timeout=SOON)

    @workflow.run
    async def run(self, order: int) -> Receipt:
        return await self.whole(order)


@workflow.defn(name="Orders")
class LongerTimer(Body):
    async def wait(self) -> None:
        await asyncio.sleep(4)

    @workflow.run
    async def run(self, order: int) -> Receipt:
        return await self.whole(order)


@workflow.defn(name="Orders")
class OneMore(Body):
    async def both(self, order: int) -> list[int]:
        audit = workflow.start_activity("audit", order, start_to_close_timeout=SOON)
        totals = await super().both(order)
        audit.cancel()
        return totals

    @workflow.run
    async def run(self, order: int) -> Receipt:
        return await self.whole(order)


@workflow.defn(name="Orders")
class OneLess(Body):
    async def both(self, order: int) -> list[int]:
        card = {"number": 1881, "name": "Ada"}
        return [await workflow.execute_activity(charge, args=[order, card], start_to_close_timeout=SOON)]

    @workflow.run
    async def run(self, order: int) -> Receipt:
        return await self.whole(order)


@workflow.defn(name="Orders")
class NoTimer(Body):
    async def wait(self) -> None:
        pass

    @workflow.run
    async def run(self, order: int) -> Receipt:
        return await self.whole(order)


@workflow.defn(name="Orders")
class EndsEarly(Body):
    @workflow.run
    async def run(self, order: int) -> Receipt:
        await self.found(order)
        return self.receipt(order, [])


@workflow.defn(name="Orders")
class FailsNow(Body):
    def receipt(self, order: int, totals: list[int]) -> Receipt:
        raise ApplicationError("no receipt today", type="Closed", non_retryable=True)

    @workflow.run
    async def run(self, order: int) -> Receipt:
        return await self.whole(order)


@workflow.defn(name="Orders")
class Raises(Body):
    def receipt(self, order: int, totals: list[int]) -> Receipt:
        return Receipt(order, totals[7])

    @workflow.run
    async def run(self, order: int) -> Receipt:
        return await self.whole(order)


@workflow.defn(name="Orders")
class NeverStops(Body):
    def receipt(self, order: int, totals: list[int]) -> Receipt:
        while True:
            try:
                totals.append(totals.pop())
            except Exception:
                continue

    @workflow.run
    async def run(self, order: int) -> Receipt:
        return await self.whole(order)


@workflow.defn(name="Orders")
class SameInOtherWords(Body):
    """Other lines, another order of keys and an own retry: all of it says the same."""

    async def both(self, order: int) -> list[int]:
        card = {"name": "Ada", "number": 1881}
        calls = [
            workflow.execute_activity(charge, args=[each, card], start_to_close_timeout=SOON)
            for each in (order, -order)
        ]
        return list(await asyncio.gather(*calls))

    @workflow.run
    async def run(self, order: int) -> Receipt:
        return await self.whole(order)


@workflow.defn
class Refused:
    """Fails, in the code of a helper: the trace has its lines."""

    @workflow.run
    async def run(self, order: int) -> None:
        await workflow.execute_activity(look_up, order, start_to_close_timeout=SOON)


@workflow.defn(name="Refused")
class RefusedElsewhere:
    @workflow.run
    async def run(self, order: int) -> None:
        # The same from other lines.
        await self.asks(order)

    async def asks(self, order: int) -> None:
        await workflow.execute_activity(look_up, order, start_to_close_timeout=SOON)


@workflow.defn
class Rounds:
    """Goes on as new until nothing is left."""

    @workflow.run
    async def run(self, left: int) -> str:
        await workflow.execute_activity(look_up, left, start_to_close_timeout=SOON)
        if left:
            workflow.continue_as_new(left - 1)
        return "done"


@workflow.defn(name="Rounds")
class RoundsByTwo:
    @workflow.run
    async def run(self, left: int) -> str:
        await workflow.execute_activity(look_up, left, start_to_close_timeout=SOON)
        if left > 1:
            workflow.continue_as_new(left - 2)
        return "done"


@workflow.defn
class Locals:
    """Two local activities at once."""

    @workflow.run
    async def run(self, order: int) -> list[int]:
        return list(
            await asyncio.gather(
                *(workflow.execute_local_activity(charge, args=[order, {}], start_to_close_timeout=SOON) for _ in "ab")
            )
        )


@workflow.defn
class Listens:
    """Says what came, and waits for more."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    @workflow.run
    async def run(self) -> list[str]:
        await workflow.wait_condition(lambda: len(self.heard) == 2)
        return self.heard

    @workflow.signal
    async def say(self, word: str) -> None:
        self.heard.append(word)
        workflow.upsert_memo({"heard": len(self.heard)})


@workflow.defn(name="Listens")
class ListensDeaf:
    @workflow.run
    async def run(self) -> list[str]:
        await workflow.wait_condition(lambda: False)
        return []

    @workflow.signal
    async def say(self, word: str) -> None:
        workflow.upsert_memo({"heard": 0})


@workflow.defn(name="Refused")
class SwallowsRefusal:
    @workflow.run
    async def run(self, order: int) -> str:
        try:
            await workflow.execute_activity(look_up, order, start_to_close_timeout=SOON)
        except ActivityError as error:
            return str(error.cause)
        return ""


@workflow.defn(name="Orders", sandboxed=False)
class Exits(Body):
    def receipt(self, order: int, totals: list[int]) -> Receipt:
        sys.exit(0)

    @workflow.run
    async def run(self, order: int) -> Receipt:
        return await self.whole(order)


@workflow.defn
class SaysOtherType:
    """Returns what it does not say that it does."""

    @workflow.run
    async def run(self, order: int) -> int:
        return f"order {order}"  # type: ignore[return-value]


@workflow.defn(name="Orders")
class WantsText(Body):
    @workflow.run
    async def run(self, order: list[Receipt]) -> Receipt:
        return order[0]


@workflow.defn
class Clings:
    """Does not let go of its instance: it takes every exception for a failed call."""

    @workflow.run
    async def run(self, order: int) -> None:
        while True:
            try:
                await workflow.execute_activity(look_up, order, start_to_close_timeout=SOON)
            except BaseException:
                continue


@workflow.defn
class CleansUp:
    """Calls something more while it is ended."""

    @workflow.run
    async def run(self, order: int) -> None:
        try:
            await workflow.execute_activity(look_up, order, start_to_close_timeout=SOON)
        finally:
            await workflow.execute_activity(charge, args=[order, {}], start_to_close_timeout=SOON)
