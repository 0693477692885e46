"""The interceptor for workers: what Temporal shows of activities, and of workflows without the plugin.

    worker = Worker(client, task_queue="q", workflows=[…], activities=[…], interceptors=[LockstepInterceptor()])

With `LockstepPlugin` on, workflows are recorded by that, whole, and only attempts of activities come from here.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import Sequence
from typing import Any

import temporalio.client
import temporalio.worker
from temporalio import activity
from temporalio.converter import DataConverter
from temporalio.exceptions import is_cancelled_exception
from temporalio.worker import (
    ActivityInboundInterceptor,
    ActivityOutboundInterceptor,
    ExecuteActivityInput,
    WorkflowInboundInterceptor,
    WorkflowInterceptorClassInput,
)
from temporalio.worker.workflow_sandbox import SandboxRestrictions

from lockstep.log.model import Status
from lockstep_temporal.attempts import Attempt
from lockstep_temporal.inside import EMIT, Inbound
from lockstep_temporal.observing import Observer
from lockstep_temporal.runner import PASSED_THROUGH
from lockstep_temporal.scribe import scribe
from lockstep_temporal.snapshots import Taker, known
from lockstep_temporal.typenames import name_of

log = logging.getLogger("lockstep")

_warned = False

# Workflows are often in the file that imports this, and a sandbox loads that file again for each of them. An
# interceptor cannot tell the worker's runner what to let through, so every sandbox with the SDK's own rules does.
SandboxRestrictions.passthrough_modules_default.update(PASSED_THROUGH)


class LockstepInterceptor(temporalio.client.Interceptor, temporalio.worker.Interceptor):
    """Records activities, signals, updates and children of workflows. For a client or a worker, once.

    Runs that it makes by itself show what happened and cannot be replayed: timers, the clock and the workflow's own
    commands are only known with `LockstepPlugin`.

    store           path of the store; without one as everywhere: LOCKSTEP_STORE, or `.lockstep/store.db` found upward
    data_converter  the worker's, where this is given to a worker and not to its client: what its codec encrypts is
                    written encrypted
    """

    def __init__(
        self, store: str | os.PathLike[str] | None = None, *, data_converter: DataConverter | None = None
    ) -> None:  # fmt: skip
        self._store = os.fspath(store) if store is not None else None
        self._converter = data_converter
        self._client: Any = None

    def intercept_client(self, next: temporalio.client.OutboundInterceptor) -> temporalio.client.OutboundInterceptor:
        """See `temporalio.client.Interceptor`: what the client does is not recorded, only whose workers these are."""
        *_, last = _chain(next)
        self._client = getattr(last, "_client", None)
        return next

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        """See `temporalio.worker.Interceptor`."""
        if any(isinstance(each, _Activity) for each in _chain(next)):
            _warn_twice()
            return next
        return _Activity(next, self._store, self._converter)

    def workflow_interceptor_class(
        self, input: WorkflowInterceptorClassInput
    ) -> type[WorkflowInboundInterceptor] | None:  # fmt: skip
        """See `temporalio.worker.Interceptor`."""
        if EMIT in input.unsafe_extern_functions:
            _warn_twice()
            return None
        try:
            converter = self._converter or _converter_of_worker(sys._getframe(1)) or _converter_of_client(self._client)
            observer = Observer(self._store, known(converter))
            scribe.start()
        except Exception as error:
            scribe.fault("a worker of workflows", error)
            return None
        input.unsafe_extern_functions[EMIT] = observer.emit
        return Inbound


def _chain(interceptor: Any) -> Any:
    while interceptor is not None:
        yield interceptor
        interceptor = getattr(interceptor, "next", None)


def _warn_twice() -> None:
    global _warned
    if not _warned:
        _warned = True
        log.warning(
            "LockstepInterceptor is registered twice, as on a client and on its worker: it records once. One of the two"
            " can go"
        )


# Activities.


class _Activity(ActivityInboundInterceptor):
    """One attempt. Of what goes wrong here, the activity sees nothing."""

    def __init__(self, next: ActivityInboundInterceptor, store: str | None, converter: DataConverter | None) -> None:
        super().__init__(next)
        self._store = store
        self._converter = converter
        self._attempt: Attempt | None = None
        self._taker: Taker | None = None

    def init(self, outbound: ActivityOutboundInterceptor) -> None:
        super().init(_Beats(outbound, self))

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        self._begin(input.args)
        try:
            if self._attempt is not None:
                await _found(self._attempt)
            result = await self.next.execute_activity(input)
        except BaseException as error:
            await self._end(error)
            raise
        await self._end(None, result)
        return result

    def _begin(self, args: Sequence[Any]) -> None:
        try:
            info = activity.info()
            if not info.workflow_id:
                return  # started by a client, for itself
            taker = self._taker = Taker(known(self._converter or _converter_of(self)))
            attempt = Attempt(info, self._store, quick=taker.quick)
            details = info.heartbeat_details
            attempt.begin(taker.values(details) if details else None, [*map(name_of, args)])
            self._attempt = attempt
        except Exception as error:
            scribe.fault("an activity's beginning", error)

    def beat(self, details: tuple[Any, ...]) -> None:
        try:
            if self._attempt is not None and self._taker is not None:
                self._attempt.beat(self._taker.values(details))
        except Exception as error:
            scribe.fault("a heartbeat", error)

    async def _end(self, error: BaseException | None, result: Any = None) -> None:
        attempt, taker = self._attempt, self._taker
        if attempt is None or taker is None:
            return
        try:
            if error is None:
                returned = name_of(result) if result is not None else ""
                attempt.end(Status.OK, (lambda: {"returned": returned}) if returned else None)
            elif isinstance(error, activity._CompleteAsyncError):
                attempt.leave()
            elif is_cancelled_exception(error):
                attempt.end(Status.CANCELLED)
            else:
                attempt.end(Status.ERROR, taker.failure(error))
            await _stored(attempt)
        except Exception as problem:
            scribe.fault("an activity's end", problem)


async def _found(attempt: Attempt) -> None:
    """The answer may come while the function still runs: it can be given from anywhere."""
    try:
        await attempt.written()
    except Exception as problem:
        scribe.fault("an activity's beginning", problem)


async def _stored(attempt: Attempt) -> None:
    """The answer must not be in the log before the attempt. A cancellation that comes now is too late."""
    try:
        await attempt.written()
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is not None:
            task.uncancel()


class _Beats(ActivityOutboundInterceptor):
    """Heartbeats: from any thread, and more of them than the server gets."""

    def __init__(self, next: ActivityOutboundInterceptor, inbound: _Activity) -> None:
        super().__init__(next)
        self._inbound = inbound

    def heartbeat(self, *details: Any) -> None:
        self._inbound.beat(details)
        self.next.heartbeat(*details)


def _converter_of_client(client: Any) -> DataConverter | None:
    return client.data_converter if client is not None else None


def _converter_of_worker(frame: Any) -> DataConverter | None:
    """That of the worker which asks for a class: nothing that it gives says it."""
    found = frame.f_locals.get("data_converter") if frame.f_code.co_name == "__init__" else None
    return found if isinstance(found, DataConverter) else None


def _converter_of(inbound: ActivityInboundInterceptor) -> DataConverter | None:
    """That of the worker at the end of the chain; None in a version that keeps it elsewhere."""
    *_, last = _chain(inbound)
    found = getattr(getattr(last, "_worker", None), "_data_converter", None)
    return found if isinstance(found, DataConverter) else None
