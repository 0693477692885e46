"""The worker of a fork on a server: the user's own activities, and workflow instances that only hand on.

async with working(address, prepared, "queue", activate) as (client, worked):
    await start(client.workflow_service, "order-7", "Order", "queue")
    await worked           # ends with what goes wrong in the worker
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from dataclasses import fields, replace
from datetime import timedelta
from typing import Any

import temporalio.api.common.v1 as common
from temporalio.api.workflowservice.v1 import StartWorkflowExecutionRequest
from temporalio.bridge.proto.workflow_activation import WorkflowActivation
from temporalio.bridge.proto.workflow_completion import WorkflowActivationCompletion
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import Worker, WorkflowInstance, WorkflowInstanceDetails, WorkflowRunner

from lockstep_temporal import ending
from lockstep_temporal.live import activities_of
from lockstep_temporal.prepared import Prepared
from lockstep_temporal.server import NAMESPACE

type Activate = Callable[[WorkflowActivation], WorkflowActivationCompletion]

_BEATS = timedelta(milliseconds=100)  # how late activities may hear that they are cancelled
_IDENTITY = "lockstep"
_PATIENCE = 5.0  # seconds for which activities may still tidy up
_THREADS = 64
# Older ones have another form of the same request, which no server knows any more.
SKIPS = hasattr(WorkflowEnvironment, "start_time_skipping_v2")


@asynccontextmanager
async def working(
    address: str, prepared: Prepared, task_queue: str, activate: Activate
) -> AsyncIterator[tuple[Client, asyncio.Task[None]]]:
    """A worker until the block ends. `activate`: has an instance of it answer an activation, and never raises."""
    ending.settle()
    converter = prepared.data_converter
    # What is driven has not been through a codec, and nothing of it leaves this machine.
    plain: dict[str, Any] = {"payload_codec": None}
    if any(field.name == "external_storage" for field in fields(converter)):
        plain["external_storage"] = None
    client = await Client.connect(
        address, namespace=NAMESPACE, data_converter=replace(converter, **plain), identity=_IDENTITY
    )
    functions, interceptors = activities_of(prepared)
    runner = _Runner(activate)
    pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="lockstep-temporal-activity")
    worker = Worker(
        client,
        task_queue=task_queue,
        workflows=[each.cls for each in prepared.workflows.values()],
        activities=functions,
        activity_executor=pool,
        interceptors=interceptors,
        workflow_runner=runner,
        unsandboxed_workflow_runner=runner,
        max_heartbeat_throttle_interval=_BEATS,
        default_heartbeat_throttle_interval=_BEATS,
    )
    _patient(worker)
    worked = asyncio.create_task(worker.run())
    try:
        yield client, worked
    finally:
        with suppress(TimeoutError):
            await asyncio.wait_for(worker.shutdown(), _PATIENCE)
        worked.cancel()
        pool.shutdown(wait=False, cancel_futures=True)
        ending.settle()


async def start(
    service: Any, workflow_id: str, workflow_type: str, task_queue: str, retry_policy: Any = None, timeout: int = 0
) -> None:
    """Starts a workflow there, skipping time where it only waits, if the SDK and the server can. `timeout`: of its run,
    in nanoseconds, 0 for none."""
    request = StartWorkflowExecutionRequest(
        namespace=NAMESPACE,
        workflow_id=workflow_id,
        workflow_type=common.WorkflowType(name=workflow_type),
        identity=_IDENTITY,
        request_id=uuid.uuid4().hex,
    )
    request.task_queue.name = task_queue
    if retry_policy is not None:
        request.retry_policy.CopyFrom(retry_policy)
    if timeout:
        request.workflow_run_timeout.FromNanoseconds(timeout)
    if not SKIPS:
        await service.start_workflow_execution(request)
        return
    request.time_skipping_config.enabled = True
    try:
        await service.start_workflow_execution(request)
    except RPCError as error:
        if error.status not in (RPCStatusCode.INVALID_ARGUMENT, RPCStatusCode.UNIMPLEMENTED):
            raise
        request.ClearField("time_skipping_config")  # a server of the user's that is not set up for it
        await service.start_workflow_execution(request)


class _Runner(WorkflowRunner):
    """Makes the server's instances."""

    def __init__(self, activate: Activate) -> None:
        self._activate = activate

    def prepare_workflow(self, defn: Any) -> None:
        """Nothing runs in them."""

    def create_instance(self, det: WorkflowInstanceDetails) -> WorkflowInstance:
        return _Instance(self._activate, det.info)


class _Instance(WorkflowInstance):
    """An execution on the server."""

    def __init__(self, activate: Activate, info: Any) -> None:
        self._activate = activate
        self._info = info

    def activate(self, act: WorkflowActivation) -> WorkflowActivationCompletion:
        return self._activate(act)

    def get_serialization_context(self, command_info: Any) -> Any:
        return None

    def get_external_store_context(self, command_info: Any) -> Any:
        return None

    def get_info(self) -> Any:
        return self._info


def _patient(worker: Worker) -> None:
    """A workflow's code may take as long as it does in a fork without a server: that has a watch of its own."""
    workflows: Any = getattr(worker, "_workflow_worker", None)
    if hasattr(workflows, "_deadlock_timeout_seconds"):
        workflows._deadlock_timeout_seconds = None
