"""Workflows with a bit of everything, and the activities that they call. Results hang on nothing but the arguments.

`KitchenSink`  activities one by one and two in flight, retries, a failure that is not retried, local activities,
               timers, children, a signal, updates (one rejected), queries, a patch, memo and search attributes, the
               clock, random numbers; goes on as new as often as it is told to
`Edges`        async completion, heartbeats that outlive an attempt, retries of a local activity, activities, timers and
               children that are cancelled, waiting with a timeout, signals to a child; goes on as new likewise
`Unwinds`      is cancelled from outside, and undoes what it has done
`Steps`        activities in a row, each with what the ones before returned; nothing else
"""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from temporalio import activity, workflow
from temporalio.client import WorkflowUpdateFailedError
from temporalio.common import RetryPolicy, SearchAttributeKey
from temporalio.exceptions import ActivityError, ApplicationError, ChildWorkflowError, is_cancelled_exception

STAGE = SearchAttributeKey.for_keyword("Stage")
SOON = timedelta(seconds=20)
QUICKLY = RetryPolicy(initial_interval=timedelta(milliseconds=10), backoff_coefficient=1.0, maximum_attempts=5)


@dataclass
class Order:
    """What the workflows are about."""

    id: int
    items: list[str]
    rounds: int = 0


@activity.defn
async def look_up(order_id: int) -> dict[str, Any]:
    return {"id": order_id, "total": order_id * 100, "status": "open"}


@activity.defn
def price(item: str) -> int:
    """A plain function, so it runs in a thread."""
    return 100 * len(item)


@activity.defn
async def flaky(fails: int) -> str:
    """Fails that many times."""
    attempt = activity.info().attempt
    if attempt <= fails:
        raise ApplicationError(f"attempt {attempt} failed", {"attempt": attempt}, type="Flaky")
    return f"attempt {attempt}"


@activity.defn
async def declined(card: str) -> str:
    raise ApplicationError(f"card {card} was declined", {"card": card}, type="Declined", non_retryable=True)


@activity.defn
async def local_sum(numbers: list[int]) -> int:
    return sum(numbers)


@activity.defn
async def flaky_local(fails: int) -> str:
    attempt = activity.info().attempt
    if attempt <= fails:
        raise ApplicationError(f"local attempt {attempt} failed", type="FlakyLocal")
    return f"local attempt {attempt}"


@activity.defn
async def approved_elsewhere(who: str) -> str:
    """Is completed from outside, as by somebody who looked at it."""
    handle = activity.client().get_async_activity_handle(task_token=activity.info().task_token)

    async def later() -> None:
        await handle.complete(f"approved by {who}")

    _running.add(task := asyncio.ensure_future(later()))
    task.add_done_callback(_running.discard)
    activity.raise_complete_async()


_running: set[asyncio.Future[None]] = set()


@activity.defn
async def resumes(pages: int) -> dict[str, Any]:
    """Beats for each page, fails in the middle, and goes on where its last heartbeat says."""
    details = activity.info().heartbeat_details
    begin = details[0]["page"] if details else 0
    for page in range(begin, pages):
        activity.heartbeat({"page": page})
        if page == pages // 2 and activity.info().attempt == 1:
            raise ApplicationError("the page did not load", type="Page")
    return {"from": begin, "pages": pages}


@activity.defn
async def until_cancelled(note: str) -> str:
    """Ends when it is cancelled; it is told so in the answer to a heartbeat."""
    try:
        while True:
            activity.heartbeat(note)
            await asyncio.sleep(0.02)
    except asyncio.CancelledError:
        if note == "swallows":
            return "cancelled, and answered all the same"
        raise


@activity.defn
def undo(what: str) -> str:
    assert threading.current_thread() is not threading.main_thread()
    return f"undone: {what}"


@workflow.defn
class Packing:
    """A child: packs, and may be told to hurry, or to stop."""

    def __init__(self) -> None:
        self.hurried = False

    @workflow.run
    async def run(self, item: str, waits: bool = False) -> str:
        if waits:
            await workflow.wait_condition(lambda: self.hurried)
        cost = await workflow.execute_activity(price, item, start_to_close_timeout=SOON)
        return f"{item} packed for {cost}{' in a hurry' if self.hurried else ''}"

    @workflow.signal
    def hurry(self) -> None:
        self.hurried = True


@workflow.defn
class Broken:
    """A child that fails."""

    @workflow.run
    async def run(self, why: str) -> str:
        raise ApplicationError(why, type="Broken", non_retryable=True)


@workflow.defn
class KitchenSink:
    def __init__(self) -> None:
        self.payments: list[int] = []
        self.notes: list[str] = []
        self.closing = self.waiting = False

    @workflow.run
    async def run(self, order: Order) -> dict[str, Any]:
        began = workflow.now()
        found = await workflow.execute_activity(look_up, order.id, start_to_close_timeout=SOON)
        prices = await asyncio.gather(
            *(workflow.execute_activity(price, item, start_to_close_timeout=SOON) for item in order.items)
        )
        tried = await workflow.execute_activity(flaky, 2, start_to_close_timeout=SOON, retry_policy=QUICKLY)
        try:
            await workflow.execute_activity(declined, "4711", start_to_close_timeout=SOON)
            refused = "paid"
        except ActivityError as error:
            refused = f"{type(error.cause).__name__}: {error.cause}"
        total = await workflow.execute_local_activity(local_sum, list(prices), start_to_close_timeout=SOON)
        await workflow.sleep(timedelta(milliseconds=20))
        packed = await workflow.execute_child_workflow(Packing.run, args=[order.items[0]])
        try:
            await workflow.execute_child_workflow(Broken.run, "no box is left")
        except ChildWorkflowError as error:
            broken = str(error.cause)
        if workflow.patched("loyalty"):
            total -= 1
        workflow.upsert_memo({"total": total})
        workflow.upsert_search_attributes([STAGE.value_set("waiting")])
        self.waiting = True
        await workflow.wait_condition(lambda: self.closing and bool(self.payments))
        if order.rounds > 0:
            order.rounds -= 1
            workflow.continue_as_new(order)
        return {
            "found": found,
            "prices": prices,
            "tried": tried,
            "refused": refused,
            "total": total,
            "packed": packed,
            "broken": broken,
            "payments": self.payments,
            "notes": self.notes,
            "drawn": [workflow.random().randrange(1000), str(workflow.uuid4())],
            "took": (workflow.now() - began) >= timedelta(milliseconds=20),
        }

    @workflow.signal
    async def pay(self, cents: int, note: str) -> None:
        self.payments.append(cents)
        self.notes.append(note)

    @workflow.update
    async def close(self, note: str) -> int:
        """Accepted at once, completed later, by what an activity says."""
        self.notes.append(await workflow.execute_activity(undo, note, start_to_close_timeout=SOON))
        self.closing = True
        return len(self.payments)

    @close.validator
    def _may_close(self, note: str) -> None:
        if not note:
            raise ValueError("a note is needed")

    @workflow.query
    def state(self) -> dict[str, Any]:
        return {"payments": self.payments, "waiting": self.waiting}


@workflow.defn
class Edges:
    @workflow.run
    async def run(self, rounds: int = 1) -> dict[str, Any]:
        seen: dict[str, Any] = {}
        seen["approved"] = await workflow.execute_activity(approved_elsewhere, "Ada", start_to_close_timeout=SOON)
        seen["resumed"] = await workflow.execute_activity(
            resumes, 6, start_to_close_timeout=SOON, heartbeat_timeout=SOON, retry_policy=QUICKLY
        )
        seen["local"] = await workflow.execute_local_activity(
            flaky_local, 2, start_to_close_timeout=SOON, retry_policy=QUICKLY
        )
        abandoned = workflow.start_activity(
            until_cancelled, "leaves", start_to_close_timeout=SOON, heartbeat_timeout=timedelta(seconds=1),
            cancellation_type=workflow.ActivityCancellationType.TRY_CANCEL,
        )  # fmt: skip
        awaited = workflow.start_activity(
            until_cancelled, "swallows", start_to_close_timeout=SOON, heartbeat_timeout=timedelta(seconds=1),
            cancellation_type=workflow.ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
        )  # fmt: skip
        timer = asyncio.create_task(workflow.sleep(3600))
        child = await workflow.start_child_workflow(Packing.run, args=["jar", True])
        try:
            await workflow.wait_condition(lambda: False, timeout=timedelta(milliseconds=20))
        except TimeoutError:
            seen["waited"] = "timed out"
        abandoned.cancel()
        awaited.cancel()
        timer.cancel()
        seen["cancelled"] = [await _ended(task) for task in (abandoned, awaited, timer)]
        await child.signal(Packing.hurry)
        seen["child"] = await child
        other = await workflow.start_child_workflow(Packing.run, args=["box", True])
        other.cancel()
        seen["stopped"] = await _ended(other)
        seen["memo"] = workflow.memo_value("kind", default="none")
        if rounds:
            workflow.continue_as_new(rounds - 1)
        return seen


async def _ended(task: Any) -> str:
    try:
        return str(await task)
    except BaseException as error:
        if not is_cancelled_exception(error):
            raise
        return type(error).__name__


@workflow.defn
class Unwinds:
    def __init__(self) -> None:
        self.asleep = False

    @workflow.run
    async def run(self, what: str) -> str:
        await workflow.execute_activity(look_up, 7, start_to_close_timeout=SOON)
        self.asleep = True
        try:
            await workflow.sleep(3600)
        except asyncio.CancelledError:
            await workflow.execute_activity(undo, what, start_to_close_timeout=SOON)
            raise
        return "never"

    @workflow.query
    def sleeps(self) -> bool:
        return self.asleep


@workflow.defn
class Steps:
    @workflow.run
    async def run(self, count: int) -> list[int]:
        done: list[int] = []
        for number in range(1, count + 1):
            done.append(await workflow.execute_activity(add, args=[number, list(done)], start_to_close_timeout=SOON))
        return done


@activity.defn
async def add(number: int, before: list[int]) -> int:
    return number + (before[-1] if before else 0)


WORKFLOWS = [KitchenSink, Edges, Unwinds, Steps, Packing, Broken]
ACTIVITIES = [
    add,
    approved_elsewhere,
    declined,
    flaky,
    flaky_local,
    local_sum,
    look_up,
    price,
    resumes,
    undo,
    until_cancelled,
]


async def serve_kitchen_sink(handle: Any, rounds: int = 0) -> None:
    """What each run of `KitchenSink` waits for: a payment by signal, an update that is rejected and one that is not."""
    client = handle._client
    run_ids: list[str] = []
    for left in range(rounds, -1, -1):
        run_id = await _waiting(client, handle.id, run_ids)
        run_ids.append(run_id)
        current = client.get_workflow_handle(handle.id, run_id=run_id)
        await current.signal(KitchenSink.pay, args=[2500, f"round {left}"])
        try:
            await current.execute_update(KitchenSink.close, "")
        except WorkflowUpdateFailedError:
            pass
        else:
            raise RuntimeError("an update without a note was accepted")
        await current.execute_update(KitchenSink.close, f"closed {left}")


async def serve_unwinds(handle: Any) -> None:
    """Cancels `Unwinds` once it sleeps."""
    while not await handle.query(Unwinds.sleeps):
        await asyncio.sleep(0.01)
    await handle.cancel()


async def _waiting(client: Any, workflow_id: str, before: list[str]) -> str:
    """The run that follows these, once it waits for what is sent to it."""
    while True:
        described = await client.get_workflow_handle(workflow_id).describe()
        if described.run_id not in before:
            current = client.get_workflow_handle(workflow_id, run_id=described.run_id)
            if (await current.query(KitchenSink.state))["waiting"]:
                return str(described.run_id)
        await asyncio.sleep(0.01)
