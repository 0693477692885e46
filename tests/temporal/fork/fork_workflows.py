"""Workflows whose tails are compared with the server's: each is about one kind of thing that can follow a cut."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

from temporalio import activity, workflow
from temporalio.common import RetryPolicy, WorkflowIDReusePolicy
from temporalio.exceptions import (
    ActivityError,
    ApplicationError,
    ChildWorkflowError,
    is_cancelled_exception,
)

SOON = timedelta(seconds=20)
ONCE = RetryPolicy(maximum_attempts=1)
QUICKLY = RetryPolicy(initial_interval=timedelta(milliseconds=5), backoff_coefficient=1.0, maximum_attempts=3)
TRY = workflow.ActivityCancellationType.TRY_CANCEL
WAIT = workflow.ActivityCancellationType.WAIT_CANCELLATION_COMPLETED
ABANDON = workflow.ActivityCancellationType.ABANDON
Cancel = workflow.ChildWorkflowCancellationType


@activity.defn
async def echo(what: str) -> str:
    return what


@activity.defn
async def slow(what: str, seconds: float) -> str:
    await asyncio.sleep(seconds)
    return what


@activity.defn
def blocks(what: str) -> str:
    return f"{what} in a thread"


@activity.defn
async def fails(kind: str) -> str:
    raise ApplicationError(
        f"attempt {activity.info().attempt}", {"kind": kind}, type=kind, non_retryable=kind == "Final"
    )


@activity.defn
async def raises(what: str) -> str:
    raise ValueError(what)


@activity.defn
async def third_time(kind: str) -> str:
    if activity.info().attempt < 3:
        raise ApplicationError(f"attempt {activity.info().attempt}", type=kind)
    return f"attempt {activity.info().attempt}"


@activity.defn
async def beats(answer: str) -> str:
    """Beats until it is cancelled."""
    try:
        while True:
            activity.heartbeat(answer)
            await asyncio.sleep(0.01)
    except asyncio.CancelledError:
        if answer == "raises":
            raise ApplicationError("while it was cancelled", type="Untidy") from None
        if answer:
            return answer
        raise


@activity.defn
async def silent(seconds: float) -> str:
    """Never beats after the first time."""
    activity.heartbeat("begun", activity.info().attempt)
    await asyncio.sleep(seconds)
    return "not told in time"


async def ended(awaitable: Any) -> str:
    """How it ended, in words that hang on nothing but that."""
    try:
        return repr(await awaitable)
    except (Exception, asyncio.CancelledError) as error:
        return _told(error)


def _told(error: BaseException | None) -> str:
    if error is None:
        return ""
    more = ""
    if isinstance(error, ActivityError):
        more = f"[{error.activity_type} {error.retry_state}]"
    if isinstance(error, ChildWorkflowError):
        more = f"[{error.workflow_type} {error.retry_state}]"
    if isinstance(error, ApplicationError):
        more = f"[{error.type} {error.non_retryable} {list(error.details)}]"
    cause = error.__cause__ if not is_cancelled_exception(error) or error.__cause__ is not None else None
    return f"{type(error).__name__}{more}: {error}" + (f" < {_told(cause)}" if cause is not None else "")


@workflow.defn
class Retries:
    """Failures, retry policies and timeouts of activities."""

    @workflow.run
    async def run(self) -> list[str]:
        execute = workflow.execute_activity
        never = RetryPolicy(initial_interval=timedelta(milliseconds=5), non_retryable_error_types=["Never"])
        seen = [
            await ended(execute(echo, "first", start_to_close_timeout=SOON)),
            await ended(execute(blocks, "second", start_to_close_timeout=SOON)),
            await ended(execute(fails, "Other", start_to_close_timeout=SOON, retry_policy=QUICKLY)),
            await ended(execute(fails, "Final", start_to_close_timeout=SOON)),
            await ended(execute(fails, "Never", start_to_close_timeout=SOON, retry_policy=never)),
            await ended(execute(raises, "odd", start_to_close_timeout=SOON, retry_policy=ONCE)),
            await ended(execute(third_time, "Twice", start_to_close_timeout=SOON, retry_policy=QUICKLY)),
        ]
        brief = timedelta(milliseconds=100)
        seen.append(await ended(execute(slow, args=["s", 5.0], start_to_close_timeout=brief, retry_policy=ONCE)))
        seen.append(await ended(execute(slow, args=["s", 5.0], schedule_to_close_timeout=brief)))
        seen.append(
            await ended(execute(silent, 5.0, start_to_close_timeout=SOON, heartbeat_timeout=brief, retry_policy=ONCE))
        )
        seen.append(
            await ended(execute(third_time, "Late", schedule_to_close_timeout=timedelta(milliseconds=300)))
        )  # the first retry would come too late
        return seen


@workflow.defn
class Cancels:
    """Activities that are cancelled, by type, at each time."""

    @workflow.run
    async def run(self) -> list[str]:
        seen = []
        for kind in (TRY, WAIT, ABANDON):
            early = workflow.start_activity(
                beats, "", start_to_close_timeout=SOON, heartbeat_timeout=SOON, cancellation_type=kind
            )
            early.cancel()
            seen.append(await ended(early))
        for kind, answer in ((TRY, ""), (WAIT, ""), (WAIT, "tidied up"), (WAIT, "raises"), (ABANDON, "left")):
            running = workflow.start_activity(
                beats, answer, start_to_close_timeout=timedelta(seconds=1), heartbeat_timeout=SOON,
                cancellation_type=kind, retry_policy=ONCE,
            )  # fmt: skip
            await workflow.sleep(timedelta(milliseconds=50))
            running.cancel()
            seen.append(await ended(running))
        done = workflow.start_activity(echo, "done", start_to_close_timeout=SOON)
        seen.append(await ended(done))
        done.cancel()
        return seen


@workflow.defn
class Locals:
    """Local activities: tries again, tries again after a timer, cancelled, two at once."""

    @workflow.run
    async def run(self) -> list[str]:
        execute = workflow.execute_local_activity
        late = RetryPolicy(initial_interval=timedelta(milliseconds=30), backoff_coefficient=1.0, maximum_attempts=3)
        seen = [
            await ended(execute(echo, "one", start_to_close_timeout=SOON)),
            await ended(execute(third_time, "Local", start_to_close_timeout=SOON, retry_policy=QUICKLY)),
            await ended(execute(fails, "Local", start_to_close_timeout=SOON, retry_policy=QUICKLY)),
            await ended(
                execute(
                    third_time, "Timer", start_to_close_timeout=SOON, retry_policy=late,
                    local_retry_threshold=timedelta(milliseconds=10),
                )
            ),
            await ended(execute(fails, "Final", start_to_close_timeout=SOON)),
        ]  # fmt: skip
        remote = workflow.start_activity(echo, "remote", start_to_close_timeout=SOON)
        seen.append(await ended(execute(slow, args=["local", 0.05], start_to_close_timeout=SOON)))
        seen.append(await ended(remote))
        for kind in (TRY, WAIT):
            running = workflow.start_local_activity(beats, "", start_to_close_timeout=SOON, cancellation_type=kind)
            running.cancel()
            seen.append(await ended(running))
        return seen


@workflow.defn
class Child:
    def __init__(self) -> None:
        self.heard: list[str] = []

    @workflow.run
    async def run(self, how: str) -> str:
        if how == "fails":
            raise ApplicationError("on purpose", {"how": how}, type="Child", non_retryable=True)
        if how == "again" and workflow.info().continued_run_id is None:
            workflow.continue_as_new("again")
        if how == "listens":
            await workflow.wait_condition(lambda: bool(self.heard))
        if how in ("waits", "tidies"):
            try:
                await workflow.wait_condition(lambda: False)
            except asyncio.CancelledError:
                if how == "tidies":
                    return await workflow.execute_activity(echo, "tidied", start_to_close_timeout=SOON)
                raise
        parent = workflow.info().parent
        told = await workflow.execute_activity(echo, how, start_to_close_timeout=SOON)
        return f"{told} {self.heard} {parent is not None}"

    @workflow.signal
    def tell(self, what: str) -> None:
        self.heard.append(what)


@workflow.defn
class Parents:
    """Children: their results, failures, signals, cancellation by type."""

    @workflow.run
    async def run(self) -> list[str]:
        execute = workflow.execute_child_workflow
        seen = [
            await ended(execute(Child.run, "works")),
            await ended(execute(Child.run, "fails")),
            await ended(execute(Child.run, "again")),
        ]
        listening = await workflow.start_child_workflow(Child.run, "listens", id=f"{workflow.info().workflow_id}-l")
        seen.append(await ended(execute(Child.run, "works", id=listening.id)))
        await listening.signal(Child.tell, "by its handle")
        seen.append(await ended(listening))
        seen.append(await ended(listening.signal(Child.tell, "too late")))
        other = await workflow.start_child_workflow(Child.run, "listens", id=f"{workflow.info().workflow_id}-o")
        outside = workflow.get_external_workflow_handle(other.id)
        await outside.signal(Child.tell, "from outside")
        seen.append(await ended(other))
        once = WorkflowIDReusePolicy.REJECT_DUPLICATE
        seen.append(await ended(execute(Child.run, "works", id=other.id, id_reuse_policy=once)))
        for kind, how in (
            (Cancel.TRY_CANCEL, "waits"),  # older cores do not bear that one which is tried to be cancelled completes
            (Cancel.WAIT_CANCELLATION_COMPLETED, "waits"), (Cancel.WAIT_CANCELLATION_COMPLETED, "tidies"),
            (Cancel.ABANDON, "waits"), (Cancel.ABANDON, "tidies"),
        ):  # fmt: skip
            child = await workflow.start_child_workflow(Child.run, how, cancellation_type=kind)
            child.cancel()
            seen.append(await ended(child))
        third = await workflow.start_child_workflow(Child.run, "waits", id=f"{workflow.info().workflow_id}-t")
        await workflow.get_external_workflow_handle(third.id).cancel()
        seen.append(await ended(third))
        await workflow.start_child_workflow(Child.run, "waits")  # ends with its parent
        return seen


@workflow.defn
class Waits:
    """Timers, races and conditions."""

    def __init__(self) -> None:
        self.got: list[str] = []
        self.open = False

    @workflow.run
    async def run(self) -> list[str]:
        seen = [await ended(workflow.wait_condition(lambda: False, timeout=timedelta(milliseconds=20)))]
        quick = asyncio.create_task(workflow.sleep(timedelta(milliseconds=30)))
        long = asyncio.create_task(workflow.sleep(3600))
        done, _ = await workflow.wait([quick, long], return_when=asyncio.FIRST_COMPLETED)
        seen.append(f"{len(done)} first, {quick in done}")
        long.cancel()
        seen.append(await ended(long))
        both = workflow.start_activity(beats, "", start_to_close_timeout=SOON, heartbeat_timeout=SOON)
        seen.append(await ended(asyncio.wait_for(both, 0.05)))
        if workflow.patched("more"):
            seen.append("patched")
        workflow.upsert_memo({"seen": len(seen)})
        await workflow.wait_condition(lambda: len(self.got) >= 2)
        await workflow.wait_condition(lambda: self.open)
        return [*seen, *sorted(self.got), str(workflow.uuid4()), str(workflow.memo())]

    @workflow.signal
    async def tell(self, what: str) -> None:
        self.got.append(await workflow.execute_activity(echo, what, start_to_close_timeout=SOON))

    @workflow.update
    async def finish(self, what: str) -> str:
        if what == "breaks":
            raise ApplicationError("not now", type="Busy")
        told = await workflow.execute_activity(echo, what, start_to_close_timeout=SOON)
        self.open = True
        return f"{told} after {len(self.got)}"

    @finish.validator
    def _may(self, what: str) -> None:
        if not what:
            raise ValueError("say what")

    @workflow.query
    def count(self) -> int:
        return len(self.got)


@workflow.defn
class Chain:
    """Goes on as new, with memo; the last run fails once and is tried again."""

    @workflow.run
    async def run(self, left: int, seen: list[str]) -> list[str]:
        info = workflow.info()
        seen.append(f"{left} attempt {info.attempt} continued {info.continued_run_id is not None} {workflow.memo()}")
        await workflow.execute_activity(echo, str(left), start_to_close_timeout=SOON)
        if left:
            workflow.continue_as_new(args=[left - 1, seen], memo={"left": left} if left == 2 else None)
        if info.attempt == 1:
            raise ApplicationError("once", type="Once")
        return [*seen, f"after {type(workflow.get_last_failure()).__name__}"]


@workflow.defn
class Stopped:
    """Is cancelled from outside in the middle of what it does, and tidies up."""

    def __init__(self) -> None:
        self.at = ""

    @workflow.run
    async def run(self) -> str:
        try:
            self.at = "beats"
            await workflow.execute_activity(
                beats, "", start_to_close_timeout=SOON, heartbeat_timeout=SOON, cancellation_type=WAIT
            )
        except ActivityError as error:
            self.at = _told(error)
        try:
            await workflow.sleep(timedelta(milliseconds=10))
            await workflow.execute_activity(echo, self.at, start_to_close_timeout=SOON)
        finally:
            await workflow.execute_activity(echo, "tidy", start_to_close_timeout=SOON)
        raise asyncio.CancelledError

    @workflow.query
    def where(self) -> str:
        return self.at


WORKFLOWS = [Retries, Cancels, Locals, Child, Parents, Waits, Chain, Stopped]
ACTIVITIES = [echo, slow, blocks, fails, raises, third_time, beats, silent]
