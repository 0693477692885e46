"""A workflow whose first activity is edited in forks, and each kind of what may follow it."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

from temporalio import activity, workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError, ApplicationError, is_cancelled_exception

SOON = timedelta(seconds=20)
MOMENT = timedelta(milliseconds=30)
QUICKLY = RetryPolicy(initial_interval=timedelta(milliseconds=5), maximum_attempts=3)
WAIT = workflow.ActivityCancellationType.WAIT_CANCELLATION_COMPLETED


@activity.defn
async def one() -> int:
    return 1


@activity.defn
async def doubled(number: int) -> int:
    return 2 * number


@activity.defn
def tripled(number: int) -> int:
    return 3 * number


@activity.defn
async def at_last(number: int) -> int:
    if activity.info().attempt < 3:
        raise ApplicationError("not yet", type="NotYet")
    return number


@activity.defn
async def never(number: int) -> int:
    raise ApplicationError(f"not with {number}", type="Never", non_retryable=True)


@activity.defn
async def signed(number: int) -> int:
    """Is completed from outside."""
    handle = activity.client().get_async_activity_handle(task_token=activity.info().task_token)
    _signing.append(asyncio.create_task(handle.complete(number + 1000)))
    activity.raise_complete_async()


_signing: list[asyncio.Task[None]] = []


@activity.defn
async def beats(number: int) -> int:
    """Until it is cancelled, and then it still answers."""
    try:
        while True:
            activity.heartbeat(number)
            await asyncio.sleep(0.01)
    except asyncio.CancelledError:
        return -number


@workflow.defn
class Part:
    """A child."""

    @workflow.run
    async def run(self, number: int, waits: bool = False) -> int:
        found: int = await workflow.execute_activity(doubled, number, start_to_close_timeout=SOON)
        if waits:
            await workflow.sleep(3600)
        return found + 1


@workflow.defn
class Tail:
    def __init__(self) -> None:
        self.told: list[int] = []
        self.number = 0

    @workflow.run
    async def run(self, kind: str, number: int = 0) -> Any:
        self.number = number or await workflow.execute_activity(one, start_to_close_timeout=SOON)
        return await getattr(self, kind)(self.number)

    async def together(self, number: int) -> Any:
        first = workflow.start_activity(doubled, number, start_to_close_timeout=SOON)
        second = workflow.start_activity(tripled, number, start_to_close_timeout=SOON)
        found = await asyncio.gather(first, second)
        return await workflow.execute_activity(doubled, sum(found), start_to_close_timeout=SOON)

    async def local(self, number: int) -> Any:
        found = await workflow.execute_local_activity(doubled, number, start_to_close_timeout=SOON)
        return await workflow.execute_local_activity(at_last, found, start_to_close_timeout=SOON, retry_policy=QUICKLY)

    async def tries(self, number: int) -> Any:
        found = await workflow.execute_activity(at_last, number, start_to_close_timeout=SOON, retry_policy=QUICKLY)
        try:
            await workflow.execute_activity(never, found, start_to_close_timeout=SOON)
        except ActivityError as error:
            return str(error.cause)

    async def elsewhere(self, number: int) -> Any:
        return await workflow.execute_activity(signed, number, start_to_close_timeout=SOON)

    async def timers(self, number: int) -> Any:
        await workflow.sleep(MOMENT * (1 + number % 3))
        try:
            await workflow.wait_condition(lambda: False, timeout=MOMENT)
        except TimeoutError:
            return await workflow.execute_activity(doubled, number, start_to_close_timeout=SOON)

    async def sleeps(self, number: int) -> Any:
        began = workflow.now()
        await workflow.sleep(timedelta(milliseconds=number))
        return (workflow.now() - began) >= timedelta(milliseconds=number)

    async def signals(self, number: int) -> Any:
        await workflow.wait_condition(lambda: len(self.told) == 2)
        return await workflow.execute_activity(doubled, number + sum(self.told), start_to_close_timeout=SOON)

    async def updates(self, number: int) -> Any:
        await workflow.wait_condition(lambda: len(self.told) == 1)
        return await workflow.execute_activity(doubled, number + self.told[0], start_to_close_timeout=SOON)

    async def children(self, number: int) -> Any:
        found = await workflow.execute_child_workflow(Part.run, args=[number])
        other = await workflow.start_child_workflow(Part.run, args=[found, True])
        await workflow.sleep(MOMENT)
        other.cancel()
        return [found, await _end(other)]

    async def cancels(self, number: int) -> Any:
        patient = workflow.start_activity(
            beats, number, start_to_close_timeout=SOON, heartbeat_timeout=SOON, cancellation_type=WAIT
        )
        hasty = workflow.start_activity(beats, number + 1, start_to_close_timeout=SOON, heartbeat_timeout=SOON)
        timer = asyncio.create_task(workflow.sleep(3600))
        await workflow.sleep(MOMENT)
        for each in (patient, hasty, timer):
            each.cancel()
        return [await _end(each) for each in (patient, hasty, timer)]

    async def is_cancelled(self, number: int) -> Any:
        try:
            await workflow.wait_condition(lambda: False)
        except asyncio.CancelledError:
            await workflow.execute_activity(doubled, number, start_to_close_timeout=SOON)
            raise

    async def draws(self, number: int) -> Any:
        drawn = [number, workflow.random().random(), str(workflow.uuid4())]
        if workflow.patched("more"):
            drawn.append(workflow.random().random())
        return drawn

    async def again(self, number: int) -> Any:
        if number < 100:
            workflow.continue_as_new(args=["again", number * 200])
        return await workflow.execute_activity(tripled, number, start_to_close_timeout=SOON)

    @workflow.signal
    def tell(self, number: int) -> None:
        self.told.append(number)

    @workflow.update
    async def ask(self, number: int) -> int:
        found: int = await workflow.execute_activity(doubled, number + self.number, start_to_close_timeout=SOON)
        self.told.append(found)
        return found

    @workflow.query
    def ready(self) -> int:
        return self.number


async def _end(task: Any) -> Any:
    try:
        return await task
    except BaseException as error:
        if not is_cancelled_exception(error):
            raise
        return type(error).__name__


WORKFLOWS = [Tail, Part]
ACTIVITIES = [one, doubled, tripled, at_last, never, signed, beats]


async def serve(kind: str, handle: Any) -> None:
    """Sends what the kind waits for, once the first activity has answered."""
    while not await handle.query(Tail.ready):
        await asyncio.sleep(0.01)
    if kind == "signals":
        await handle.signal(Tail.tell, 5)
        await handle.signal(Tail.tell, 7)
    elif kind == "updates":
        await handle.execute_update(Tail.ask, 3)
    elif kind == "is_cancelled":
        await handle.cancel()
