"""Workflows whose commands leave to the server what can be left, and say what can be said."""

import asyncio
import contextlib
from datetime import timedelta
from typing import Any

from temporalio import activity, workflow
from temporalio.common import Priority, RetryPolicy, SearchAttributeKey
from temporalio.exceptions import ApplicationError, CancelledError, is_cancelled_exception

STAGE = SearchAttributeKey.for_keyword("Stage")
S = timedelta(seconds=1)


@activity.defn
async def echo(value: Any) -> Any:
    return value


@activity.defn
async def fails(kind: str) -> None:
    raise ApplicationError(f"{kind} went wrong", {"kind": kind}, type=kind)


@activity.defn
async def hangs() -> None:
    await asyncio.sleep(30)


@activity.defn
async def beats() -> None:
    while True:
        activity.heartbeat("on")
        await asyncio.sleep(0.02)


@workflow.defn
class Small:
    @workflow.run
    async def run(self, seconds: float) -> str:
        await workflow.sleep(seconds)
        return "done"

    @workflow.signal
    def poke(self, with_: str) -> None:
        """Nothing comes of it."""


OPTIONS: list[dict[str, Any]] = [
    {"start_to_close_timeout": 9 * S},
    {"schedule_to_close_timeout": 9 * S},
    {"schedule_to_close_timeout": 9 * S, "start_to_close_timeout": 99 * S, "schedule_to_start_timeout": 98 * S},
    {"schedule_to_close_timeout": 99 * S, "start_to_close_timeout": 9 * S, "heartbeat_timeout": 60 * S},
    {"start_to_close_timeout": 9 * S, "schedule_to_start_timeout": 7 * S, "heartbeat_timeout": 3 * S},
    {"start_to_close_timeout": 9999 * S, "heartbeat_timeout": 9998 * S},
    {"start_to_close_timeout": 9 * S, "retry_policy": RetryPolicy()},
    {
        "start_to_close_timeout": 9 * S,
        "retry_policy": RetryPolicy(initial_interval=2 * S, maximum_attempts=1, non_retryable_error_types=["No"]),
    },
    {
        "start_to_close_timeout": 9 * S,
        "retry_policy": RetryPolicy(timedelta(milliseconds=7), 3.5, timedelta(seconds=33, milliseconds=5), 4),
    },
    {"start_to_close_timeout": 9 * S, "activity_id": "mine", "summary": "an id of its own"},
    {"start_to_close_timeout": 9 * S, "priority": Priority(priority_key=2)},
]


@workflow.defn
class Filled:
    """`leaves`: how it ends: returns, goes on as new (plain or with all options), fails."""

    @workflow.run
    async def run(self, leaves: str) -> Any:
        for number, options in enumerate(OPTIONS):
            await workflow.execute_activity(echo, number, **options)
        await self.children()
        await workflow.sleep(0.001)
        await workflow.sleep(timedelta(microseconds=1500))
        workflow.upsert_memo({"one": {"a": 1}, "two": None})
        workflow.upsert_search_attributes([STAGE.value_set("filled")])
        workflow.upsert_search_attributes({"Stage": ["old"]})
        workflow.deprecate_patch("was-here")
        if leaves == "plain":
            workflow.continue_as_new("returns")
        if leaves == "options":
            workflow.continue_as_new(
                "returns", run_timeout=50 * S, task_timeout=5 * S, memo={"new": 1},
                search_attributes=workflow.info().typed_search_attributes,
                retry_policy=RetryPolicy(maximum_attempts=2),
            )  # fmt: skip
        if leaves == "fails":
            await workflow.execute_activity(
                fails, "Planned", start_to_close_timeout=9 * S, retry_policy=RetryPolicy(maximum_attempts=1)
            )
        return None

    async def children(self) -> None:
        own = workflow.info().workflow_id
        await workflow.execute_child_workflow(Small.run, 0.001)
        await workflow.execute_child_workflow(
            Small.run, 0.001, id=f"{own}-options", execution_timeout=40 * S, run_timeout=60 * S, task_timeout=7 * S,
            parent_close_policy=workflow.ParentClosePolicy.REQUEST_CANCEL, retry_policy=RetryPolicy(maximum_attempts=3),
            memo={"kind": "child"}, static_summary="small", static_details="a small one",
        )  # fmt: skip
        await workflow.execute_child_workflow(
            Small.run, 0.001, id=f"{own}-long", task_timeout=500 * S, execution_timeout=30 * S
        )
        child = await workflow.start_child_workflow(
            Small.run, 0.2, id=f"{own}-poked", parent_close_policy=workflow.ParentClosePolicy.ABANDON
        )
        await child.signal(Small.poke, "by handle")
        await workflow.get_external_workflow_handle(f"{own}-poked").signal(Small.poke, "from outside")
        with contextlib.suppress(ApplicationError):
            await workflow.get_external_workflow_handle("nobody-has-this-id").signal(Small.poke, "lost")
        try:
            await workflow.start_child_workflow(Small.run, 0.1, id=f"{own}-poked")
        except Exception as error:
            workflow.logger.debug("as expected: %s", error)
        await child


@workflow.defn
class Cancels:
    """Cancels everything in each way there is."""

    @workflow.run
    async def run(self) -> list[str]:
        seen: list[str] = []
        types = workflow.ActivityCancellationType
        for way in (types.TRY_CANCEL, types.WAIT_CANCELLATION_COMPLETED, types.ABANDON):
            running = workflow.start_activity(
                beats, start_to_close_timeout=9 * S, heartbeat_timeout=5 * S, cancellation_type=way,
                retry_policy=RetryPolicy(maximum_attempts=1),
            )  # fmt: skip
            await workflow.sleep(0.05)
            running.cancel()
            seen.append(await ended(running))
        unsent = workflow.start_activity(echo, 1, start_to_close_timeout=9 * S)
        unsent.cancel()
        seen.append(await ended(unsent))
        kept = workflow.start_activity(echo, "kept", start_to_close_timeout=9 * S)
        timer = asyncio.create_task(workflow.sleep(100))
        await asyncio.sleep(0)
        timer.cancel()
        seen.append(await ended(timer))
        later = asyncio.create_task(workflow.sleep(100))
        seen.append(await kept)
        later.cancel()
        seen.append(await ended(later))
        # Both are through at once, and who is cancelled has been answered already.
        racing = [asyncio.create_task(workflow.sleep(0.01)) for _ in range(2)]
        await workflow.wait(racing, return_when=asyncio.FIRST_COMPLETED)
        for each in racing:
            each.cancel()
        own = workflow.info().workflow_id
        ways = workflow.ChildWorkflowCancellationType
        for number, how in enumerate(
            (ways.WAIT_CANCELLATION_COMPLETED, ways.WAIT_CANCELLATION_REQUESTED, ways.TRY_CANCEL, ways.ABANDON)
        ):
            child = await workflow.start_child_workflow(
                Small.run, 5, id=f"{own}-{number}", cancellation_type=how,
                parent_close_policy=workflow.ParentClosePolicy.TERMINATE,
            )  # fmt: skip
            child.cancel()
            seen.append(await ended(child))
        outside = await workflow.start_child_workflow(Small.run, 5, id=f"{own}-outside")
        await workflow.get_external_workflow_handle(f"{own}-outside").cancel()
        seen.append(await ended(outside))
        early = asyncio.create_task(workflow.execute_child_workflow(Small.run, 5, id=f"{own}-early"))
        await asyncio.sleep(0)
        early.cancel()
        seen.append(await ended(early))
        await workflow.sleep(0.001)
        return seen


async def ended(task: Any) -> str:
    try:
        return str(await task)
    except BaseException as error:
        if not is_cancelled_exception(error) and not isinstance(error, CancelledError):
            raise
        return type(error).__name__


@workflow.defn
class TimesOut:
    @workflow.run
    async def run(self) -> list[str]:
        seen = []
        for options in (
            {"start_to_close_timeout": timedelta(milliseconds=100)},
            {"start_to_close_timeout": 9 * S, "heartbeat_timeout": timedelta(milliseconds=100)},
            {
                "schedule_to_start_timeout": timedelta(milliseconds=100),
                "task_queue": "nobody",
                "start_to_close_timeout": S,
            },
        ):
            try:
                await workflow.execute_activity(hangs, **{"retry_policy": RetryPolicy(maximum_attempts=1), **options})  # type: ignore[arg-type]
            except Exception as error:
                seen.append(str(error.__cause__))
        try:
            await workflow.execute_child_workflow(Small.run, 30, run_timeout=timedelta(milliseconds=200))
        except Exception as error:
            seen.append(str(error.__cause__))
        for way in ("first", "second"):
            seen.append(await workflow.execute_local_activity(echo, way, start_to_close_timeout=9 * S))
        both = await asyncio.gather(
            *(workflow.execute_local_activity(echo, way, start_to_close_timeout=9 * S) for way in ("a", "b"))
        )
        try:
            await workflow.execute_local_activity(
                fails, "Local", start_to_close_timeout=9 * S, retry_policy=RetryPolicy(maximum_attempts=1)
            )
        except Exception as error:
            seen.append(str(error.__cause__))
        return seen + both


@workflow.defn
class Fails:
    @workflow.run
    async def run(self, attempts: int) -> str:
        if workflow.info().attempt < attempts:
            raise ApplicationError("not yet", {"attempt": workflow.info().attempt}, type="Early")
        return "at last"


WORKFLOWS = [Small, Filled, Cancels, TimesOut, Fails]
ACTIVITIES = [echo, fails, hangs, beats]
