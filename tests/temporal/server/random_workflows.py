"""Workflows that nobody has thought of: programs made from a seed, and the workflow that runs them.

    drawn = program(random.Random(7))                      # plain data: a list of operations
    run(server, Interpreted.run, drawn, drive=serve(random.Random(7)), workflows=WORKFLOWS, activities=ACTIVITIES)

Operations, each a list of its name and what it takes; what they bring is put into the log, which is the result:

    act KIND N          an activity: plain, slow (N ms), flaky (fails N times), hopeless (not retried), big (much data)
    local KIND N        the same, local
    sleep N             a timer of N ms
    draw                random numbers, an id, the clock, and an activity that is given them
    wait N MS           until N signals have come, or for MS
    both [OPS] [OPS]    at once
    race [OPS] [OPS]    at once, and who is not first is cancelled
    stop MS [OPS]       cancelled after MS
    child [OPS]         in a child workflow
    leave MS HOW [OPS]  in a child, which is cancelled after MS; HOW is a ChildWorkflowCancellationType
    drop MS HOW         an activity that only ends when it is cancelled, after MS; HOW is an ActivityCancellationType
    tell [OPS]          in a child, that is sent a signal
    choose [OPS] [OPS]  by what came last
    patch ID [OPS]      once patched
    note                a memo
    again [OPS]         goes on as new with these, where the rest is dropped; only at the end
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any

from temporalio import activity, workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ApplicationError, FailureError, is_cancelled_exception
from temporalio.service import RPCError

Ops = list[list[Any]]  # the SDK makes nothing of a `type` statement

LONG = timedelta(seconds=30)
RETRIES = RetryPolicy(initial_interval=timedelta(milliseconds=5), backoff_coefficient=1.0, maximum_attempts=4)


def program(draw: random.Random, size: int = 6) -> Ops:
    """A program of about so many operations."""
    made = _ops(draw, size, depth=2)
    if draw.random() < 0.25:
        made.append(["again", _ops(draw, size // 2, depth=1)])
    return made


def _ops(draw: random.Random, size: int, depth: int) -> Ops:
    return [_op(draw, depth) for _ in range(draw.randint(1, max(1, size)))]


def _op(draw: random.Random, depth: int) -> list[Any]:
    leaves = ("act", "act", "act", "local", "sleep", "draw", "wait", "note", "drop")
    nodes = ("both", "both", "race", "stop", "child", "leave", "tell", "choose", "patch")
    name = draw.choice((*leaves, *nodes) if depth else leaves)
    some = [_ops(draw, 2, depth - 1) for _ in range(2)] if depth else []
    match name:
        case "act":
            return [name, draw.choice(("plain", "plain", "slow", "flaky", "hopeless", "big")), draw.randint(1, 3)]
        case "local":
            return [name, draw.choice(("plain", "flaky", "hopeless")), draw.randint(1, 2)]
        case "sleep":
            return [name, draw.randint(1, 30)]
        case "wait":
            return [name, draw.randint(1, 3), draw.randint(10, 40)]
        case "both" | "race" | "choose":
            return [name, *some]
        case "stop":
            return [name, draw.randint(1, 30), some[0]]
        case "leave":
            return [name, draw.randint(1, 30), draw.randint(0, 3), some[0]]
        case "drop":
            return [name, draw.randint(1, 30), draw.randint(0, 2)]
        case "child" | "tell":
            return [name, some[0]]
        case "patch":
            return [name, draw.choice(("first", "second")), some[0]]
        case _:
            return [name]


def serve(draw: random.Random) -> Callable[[Any], Awaitable[None]]:
    """Sends signals and updates to a workflow, at times and as many as the seed has it."""

    async def send(handle: Any) -> None:
        with suppress(RPCError):  # it is over already
            for number in range(draw.randint(0, 4)):
                await asyncio.sleep(draw.random() * 0.02)
                if draw.random() < 0.3:
                    await handle.execute_update(Interpreted.ask, number)
                else:
                    await handle.signal(Interpreted.tell, args=[number, draw.random() < 0.3])

    return send


@activity.defn
async def work(kind: str, number: int, given: Any = None) -> Any:
    return await _worked(kind, number, given)


@activity.defn
def work_in_thread(kind: str, number: int, given: Any = None) -> Any:
    return asyncio.run(_worked(kind, number, given))


@activity.defn
async def endless() -> str:
    try:
        while True:
            activity.heartbeat()
            await asyncio.sleep(0.005)
    except asyncio.CancelledError:
        return "cancelled at last"


async def _worked(kind: str, number: int, given: Any) -> Any:
    attempt = activity.info().attempt
    if kind == "slow":
        await asyncio.sleep(number * 0.01)
    if kind == "flaky" and attempt <= number:
        raise ApplicationError(f"attempt {attempt}", [given], type="Flaky")
    if kind == "hopeless":
        raise ApplicationError("no", type="Hopeless", non_retryable=True)
    if kind == "big":
        return ["x" * 100] * (number * 50)
    return {"kind": kind, "number": number, "given": given}


@workflow.defn
class Interpreted:
    def __init__(self) -> None:
        self.log: list[Any] = []
        self.signals: list[int] = []

    @workflow.run
    async def run(self, ops: Ops) -> list[Any]:
        await self._all(ops)
        await workflow.wait_condition(workflow.all_handlers_finished)
        return self.log

    @workflow.signal
    async def tell(self, number: int, works: bool = False) -> None:
        self.signals.append(number)
        if works:
            self.log.append(await self._call(work, "plain", number))

    @workflow.update
    async def ask(self, number: int) -> int:
        self.signals.append(number)
        self.log.append(await self._call(work, "plain", number))
        return len(self.signals)

    async def _all(self, ops: Ops) -> None:
        for op in ops:
            try:
                self.log.append(await self._one(*op))
            except FailureError as error:
                if is_cancelled_exception(error):
                    raise
                self.log.append(f"{type(error).__name__}: {error.cause}")

    async def _one(self, name: str, *given: Any) -> Any:
        return await getattr(self, f"_{name}")(*given)

    async def _act(self, kind: str, number: int) -> Any:
        return await self._call(work if number % 2 else work_in_thread, kind, number)

    async def _call(self, fn: Any, kind: str, number: int, given: Any = None) -> Any:
        return await workflow.execute_activity(
            fn, args=[kind, number, given], start_to_close_timeout=LONG, retry_policy=RETRIES
        )

    async def _local(self, kind: str, number: int) -> Any:
        return await workflow.execute_local_activity(
            work, args=[kind, number], start_to_close_timeout=LONG, retry_policy=RETRIES
        )

    async def _sleep(self, ms: int) -> str:
        await workflow.sleep(timedelta(milliseconds=ms))
        return "slept"

    async def _draw(self) -> Any:
        drawn = [workflow.random().random(), str(workflow.uuid4()), workflow.now().isoformat(), workflow.time()]
        return await self._call(work_in_thread, "plain", 0, drawn)

    async def _wait(self, number: int, ms: int) -> str:
        try:
            await workflow.wait_condition(lambda: len(self.signals) >= number, timeout=timedelta(milliseconds=ms))
        except TimeoutError:
            return "nobody"
        return f"heard {self.signals}"

    async def _note(self) -> str:
        workflow.upsert_memo({"notes": len(self.log)})
        return "noted"

    async def _both(self, first: Ops, second: Ops) -> str:
        await asyncio.gather(self._all(first), self._all(second))
        return "both"

    async def _race(self, first: Ops, second: Ops) -> str:
        tasks = [asyncio.create_task(self._all(each)) for each in (first, second)]
        done, others = await workflow.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in others:
            task.cancel()
        ends = [await _end(task) for task in tasks]
        return f"{len(done)} came first: {ends}"

    async def _stop(self, ms: int, ops: Ops) -> str:
        task = asyncio.create_task(self._all(ops))
        await workflow.wait([task], timeout=ms / 1000)
        task.cancel()
        return await _end(task)

    async def _child(self, ops: Ops) -> Any:
        return await workflow.execute_child_workflow(Interpreted.run, ops)

    async def _drop(self, ms: int, how: int) -> str:
        dropped = workflow.start_activity(
            endless, start_to_close_timeout=LONG, heartbeat_timeout=LONG,
            cancellation_type=workflow.ActivityCancellationType(how),
        )  # fmt: skip
        await workflow.sleep(timedelta(milliseconds=ms))
        dropped.cancel()
        return await _end(dropped)

    async def _leave(self, ms: int, how: int, ops: Ops) -> str:
        kind = workflow.ChildWorkflowCancellationType(how)
        child = await workflow.start_child_workflow(Interpreted.run, ops, cancellation_type=kind)
        await workflow.sleep(timedelta(milliseconds=ms))
        child.cancel()
        return await _end(child)

    async def _tell(self, ops: Ops) -> Any:
        child = await workflow.start_child_workflow(Interpreted.run, [["wait", 1, 5000], *ops])
        await child.signal(Interpreted.tell, args=[7])
        return await child

    async def _choose(self, first: Ops, second: Ops) -> str:
        odd = len(str(self.log[-1:])) % 2
        await self._all(first if odd else second)
        return "first" if odd else "second"

    async def _patch(self, name: str, ops: Ops) -> bool:
        if patched := workflow.patched(name):
            await self._all(ops)
        return patched

    async def _again(self, ops: Ops) -> None:
        await workflow.wait_condition(workflow.all_handlers_finished)
        workflow.continue_as_new([*ops])


async def _end(task: Any) -> str:
    try:
        return f"ended: {await task}"
    except (asyncio.CancelledError, FailureError) as error:
        if not is_cancelled_exception(error):
            raise
        return "cancelled"


WORKFLOWS = [Interpreted]
ACTIVITIES = [work, work_in_thread, endless]
