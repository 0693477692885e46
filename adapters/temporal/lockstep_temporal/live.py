"""The user's own activity functions, run for real: by the SDK's worker of activities, with nothing behind it.

    with Live(activities, interceptors, converter) as live:
        live.start(b"1", task)          # a Start as core hands it to a worker
        came = live.wait(0.5)           # Came(b"1", result=…), a heartbeat of it, or None
        live.cancel(b"1")

So types, interceptors, contexts, threads, cancellation and failures are what they are under a worker. What is missing
is said where it is used: the client signals workflows of the fork and does nothing else, and nobody outside can
complete an activity.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import queue
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from types import TracebackType
from typing import Any, Self

import msgspec
from temporalio.bridge.proto import ActivityHeartbeat, ActivityTaskCompletion
from temporalio.bridge.proto.activity_result import ActivityExecutionResult
from temporalio.bridge.proto.activity_task import ActivityCancelReason, ActivityTask, Start
from temporalio.common import MetricMeter
from temporalio.worker import Interceptor

from lockstep.errors import Code, TargetError
from lockstep_temporal.client import Sent, offline
from lockstep_temporal.prepared import unfit

_MOST = 64  # threads of plain functions at once
_LOGGER = logging.getLogger("temporalio.activity")
_PATIENCE = 5.0  # seconds for which activities that were cancelled may still tidy up


class Came(msgspec.Struct, frozen=True):
    """News of an activity. `result`: of its end; `sent`: a signal that it sends, and waits for that it is taken;
    without either, it has beaten, with these `details` (payloads)."""

    token: bytes
    result: ActivityExecutionResult | None = None
    details: tuple[Any, ...] = ()
    sent: Sent | None = None


class _Unasked(logging.Filter):
    """Keeps failed attempts, which are recorded, from the terminal of whoever has set up no logging."""

    def filter(self, record: logging.LogRecord) -> bool:
        return logging.getLogger().hasHandlers() or not str(record.msg).startswith("Completing activity as failed")


class Live:
    """Runs activities, in a loop and threads of its own, or in a running `loop` of the caller's.

    Raises TargetError LS402 where the SDK does not take the activities, AdapterError LS410.
    """

    def __init__(
        self, activities: Sequence[Callable[..., Any]], interceptors: Sequence[Any], converter: Any, *,
        namespace: str = "default", task_queue: str = "", loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:  # fmt: skip
        self._came: queue.SimpleQueue[Came | BaseException] = queue.SimpleQueue()
        self._pool = ThreadPoolExecutor(_MOST, thread_name_prefix="lockstep-temporal-activity")
        self._given = list(activities), list(interceptors), converter, namespace, task_queue
        self._names = {_name(each) for each in activities}
        self._loop = loop
        self._thread: threading.Thread | None = None
        self._tasks: asyncio.Queue[ActivityTask | None] | None = None
        self._worker: Any = None
        self._running: set[bytes] = set()
        self._over: Any = None
        self._closed = False
        self._unasked = _Unasked()
        _LOGGER.addFilter(self._unasked)

    def knows(self, name: str) -> bool:
        """Whether there is a function for activities of this type: also one for all types (`dynamic=True`)."""
        return name in self._names or None in self._names

    def start(self, token: bytes, task: Start) -> None:
        """Runs an attempt, which goes by this token."""
        self._begin()
        self._running.add(token)
        self._send(ActivityTask(task_token=token, start=task))

    def cancel(self, token: bytes, *, timed_out: bool = False, forget: bool = False) -> None:
        """Cancels an attempt, as a worker does when it hears so from the server. One that timed out, or is to be
        forgotten, is not listened to any more."""
        if token not in self._running:
            return
        task = ActivityTask(task_token=token)
        task.cancel.reason = ActivityCancelReason.TIMED_OUT if timed_out else ActivityCancelReason.CANCELLED
        if timed_out:
            task.cancel.details.is_timed_out = True
        else:
            task.cancel.details.is_cancelled = True
        if timed_out or forget:
            self._running.discard(token)
        self._send(task)

    def wait(self, seconds: float | None) -> Came | None:
        """The next news, as soon as there is one; None after so many seconds without. Nothing blocks with 0."""
        try:
            found = self._came.get(timeout=seconds) if seconds is None or seconds > 0 else self._came.get_nowait()
        except queue.Empty:
            return None
        if isinstance(found, BaseException):
            raise found
        if found.sent is None and found.token not in self._running:
            return self.wait(0)
        if found.result is not None:
            self._running.discard(found.token)
        return found

    def close(self) -> None:
        """Cancels what still runs, and lets it tidy up for a while."""
        _LOGGER.removeFilter(self._unasked)
        self._closed = True
        self._let_go()
        if self._worker is not None:
            for token in tuple(self._running):
                self.cancel(token, forget=True)
            self._send(None)
            assert self._over is not None
            if self._thread is not None:
                self._over.wait(_PATIENCE)
                assert self._loop is not None
                self._loop.call_soon_threadsafe(self._loop.stop)
                self._thread.join(_PATIENCE)
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _let_go(self) -> None:
        """Tells those who still signal that the fork is over, instead of having them wait."""
        with suppress(queue.Empty):
            while True:
                found = self._came.get_nowait()
                if isinstance(found, Came) and found.sent is not None:
                    found.sent.refuse(over=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _begin(self) -> None:
        """The worker is made when it is first needed: a fork whose answers are all recorded never does."""
        if self._worker is not None:
            return
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(target=self._loop.run_forever, name="lockstep-temporal-live", daemon=True)
            self._thread.start()
        made = asyncio.run_coroutine_threadsafe(self._make(), self._loop)
        self._worker = made.result()

    async def _make(self) -> Any:
        self._tasks = asyncio.Queue()
        worker = _worker(self, *self._given, pool=self._pool)
        self._over = threading.Event()
        self._task = asyncio.get_running_loop().create_task(self._run(worker))
        return worker

    async def _run(self, worker: Any) -> None:
        try:
            await worker.run(*_unlimited(worker))
            running = [each.task for each in worker._running_activities.values() if each.task is not None]
            if running:
                await asyncio.wait(running, timeout=_PATIENCE)
        except BaseException as error:
            self._came.put(error)
            raise
        finally:
            self._over.set()

    def _send(self, task: ActivityTask | None) -> None:
        assert self._loop is not None
        assert self._tasks is not None
        self._loop.call_soon_threadsafe(self._tasks.put_nowait, task)

    # What the SDK's worker wants of the bridge to core.

    async def poll_activity_task(self) -> ActivityTask:
        assert self._tasks is not None
        while True:
            task = await self._tasks.get()
            if task is None:
                from temporalio.bridge.worker import PollShutdownError  # type: ignore[attr-defined]

                raise PollShutdownError
            if not task.HasField("cancel") or task.task_token in self._worker._running_activities:
                return task  # else it has ended in the meantime

    async def complete_activity_task(self, completion: ActivityTaskCompletion) -> None:
        self._came.put(Came(completion.task_token, completion.result))

    def signal(self, sent: Sent) -> None:
        """An activity signals a workflow."""
        self._came.put(Came(b"", sent=sent))
        if self._closed:
            self._let_go()

    def record_activity_heartbeat(self, beat: ActivityHeartbeat) -> None:
        self._came.put(Came(beat.task_token, None, tuple(beat.details)))


def activities_of(prepared: Any) -> tuple[list[Callable[..., Any]], list[Any]]:
    """The activities and the interceptors of a setup, with what its plugins bring."""
    setup = prepared.setup
    config: dict[str, Any] = {
        "client": offline(prepared.data_converter, "default", _unheard),
        "activities": list(setup.activities),
        "workflows": list(setup.workflows),
        "interceptors": list(setup.interceptors),
        "workflow_runner": prepared.config["workflow_runner"],
        "workflow_failure_exception_types": [],
        "nexus_service_handlers": [],
        "task_queue": "",
    }
    for plugin in setup.plugins:
        if _is_ours(plugin):
            continue
        configure = getattr(plugin, "configure_worker", None)
        if configure is not None:
            config = configure(config)
    interceptors = [
        each for each in config.get("interceptors") or () if isinstance(each, Interceptor) and not _is_ours(each)
    ]
    return list(config.get("activities") or ()), interceptors


def _unheard(sent: Sent) -> None:
    """Of the client that plugins see, which no activity has."""
    sent.refuse(over=False)


def _is_ours(given: Any) -> bool:
    """Whether it would record the fork's activities, in the place of those that were recorded: a fork does itself."""
    return type(given).__module__.partition(".")[0] == "lockstep_temporal"


def _name(activity: Callable[..., Any]) -> str | None:
    from temporalio.activity import _Definition

    found = _Definition.from_callable(activity)
    return found.name if found is not None else getattr(activity, "__name__", "")


def _worker(
    bridge: Live, activities: list[Callable[..., Any]], interceptors: list[Any], converter: Any, namespace: str,
    task_queue: str, *, pool: ThreadPoolExecutor,
) -> Any:  # fmt: skip
    try:
        from temporalio.worker._activity import _ActivityWorker
    except ImportError as error:
        raise unfit("there is no worker of activities") from error
    given: dict[str, Any] = {
        "bridge_worker": lambda: bridge,
        "task_queue": task_queue,
        "activities": activities,
        "activity_executor": pool,
        "shared_state_manager": None,
        # What a workflow asks for has not been through its codec.
        "data_converter": replace(converter, payload_codec=None),
        "interceptors": interceptors,
        "metric_meter": MetricMeter.noop,
        "client": offline(converter, namespace, bridge.signal),
        "encode_headers": False,
    }
    parameters = inspect.signature(_ActivityWorker.__init__).parameters
    needed = [
        each.name
        for each in parameters.values()
        if each.kind is each.KEYWORD_ONLY and each.default is each.empty and each.name not in given
    ]
    if needed:
        raise unfit(f"the SDK's worker of activities asks for {', '.join(needed)}")
    try:
        return _ActivityWorker(**{name: value for name, value in given.items() if name in parameters})
    except (TypeError, ValueError) as error:
        raise TargetError(Code.BAD_TARGET, f"the SDK does not take these activities: {error}") from error


def _unlimited(worker: Any) -> tuple[None, ...]:
    """What `run` of earlier versions asks for: the limits of payloads that a server has said. There are none."""
    return (None,) if "payload_error_limits" in inspect.signature(worker.run).parameters else ()
