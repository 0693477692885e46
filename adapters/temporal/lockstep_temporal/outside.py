"""What came from outside in the record, sent anew to the workflow of a fork on a server.

outside = Outside(inbound, service, target)
outside.of(turn)                       what is still to be sent, by the run of the chain
await outside.send(job)                the server is told that something comes, and nothing of what is in it
outside.seen("signal_workflow")        what that was, when the workflow is told: as the record or an edit has it
"""

from __future__ import annotations

import asyncio
import uuid
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import temporalio.api.common.v1 as common
from temporalio.api.enums.v1 import UpdateWorkflowExecutionLifecycleStage
from temporalio.api.workflowservice.v1 import (
    RequestCancelWorkflowExecutionRequest,
    SignalWorkflowExecutionRequest,
    UpdateWorkflowExecutionRequest,
)
from temporalio.bridge.proto.workflow_activation import WorkflowActivationJob
from temporalio.service import RPCError

from lockstep_temporal.actors import Inbound
from lockstep_temporal.server import NAMESPACE

_IDENTITY = "lockstep-outside"  # activities that signal their workflow do so with the client's
_ACCEPTS = 0.05  # seconds that a workflow is waited for to accept an update


class Outside:
    """`inbound`: of each run of the chain, what came. Sent in an event loop, seen by threads of a worker's."""

    def __init__(self, inbound: Sequence[Sequence[Inbound]]) -> None:
        self._inbound = [list(each) for each in inbound]
        self._sent: deque[WorkflowActivationJob] = deque()  # and not seen yet
        self._updating: set[asyncio.Task[None]] = set()

    def of(self, turn: int) -> list[Inbound]:
        """What is still to be sent to a run. Who sends it takes it out."""
        return self._inbound[turn] if turn < len(self._inbound) else []

    @property
    def is_under_way(self) -> bool:
        """Whether something was sent that no workflow was told of yet."""
        return bool(self._sent)

    async def send(self, service: Any, workflow_id: str, job: WorkflowActivationJob) -> None:
        """Sends one thing. Raises RPCError."""
        self._sent.append(job)
        target = common.WorkflowExecution(workflow_id=workflow_id)
        if job.HasField("signal_workflow"):
            signal = SignalWorkflowExecutionRequest(
                namespace=NAMESPACE, workflow_execution=target, identity=_IDENTITY, request_id=uuid.uuid4().hex
            )
            signal.signal_name = job.signal_workflow.signal_name
            await service.signal_workflow_execution(signal)
        elif job.HasField("cancel_workflow"):
            cancel = RequestCancelWorkflowExecutionRequest(
                namespace=NAMESPACE, workflow_execution=target, identity=_IDENTITY, request_id=uuid.uuid4().hex
            )
            await service.request_cancel_workflow_execution(cancel)
        else:
            update = UpdateWorkflowExecutionRequest(namespace=NAMESPACE, workflow_execution=target)
            update.wait_policy.lifecycle_stage = (
                UpdateWorkflowExecutionLifecycleStage.UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_ACCEPTED
            )
            update.request.meta.update_id = uuid.uuid4().hex
            update.request.meta.identity = _IDENTITY
            update.request.input.name = job.do_update.name
            # It answers once the workflow has accepted it, which it cannot while this is waited for.
            updating = asyncio.get_running_loop().create_task(_update(service, update))
            self._updating.add(updating)
            updating.add_done_callback(self._updating.discard)
            await asyncio.wait({updating}, timeout=_ACCEPTS)

    def told(self, job: WorkflowActivationJob) -> WorkflowActivationJob | None:
        """What the workflow is told where the server tells of something that was sent; None where it was not."""
        kind: Any = job.WhichOneof("variant")
        if kind == "signal_workflow" and job.signal_workflow.identity != _IDENTITY:
            return None
        if kind == "cancel_workflow" and not (self._sent and self._sent[0].HasField(kind)):
            return None
        if kind not in ("signal_workflow", "cancel_workflow", "do_update"):
            return None
        found = next(sent for sent in self._sent if sent.HasField(kind))
        self._sent.remove(found)
        return found


async def _update(service: Any, request: UpdateWorkflowExecutionRequest) -> None:
    with suppress(RPCError):  # the workflow has rejected it, or is over
        await service.update_workflow_execution(request)
