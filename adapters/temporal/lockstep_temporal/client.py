"""The client that activities of a fork have: the SDK's own, with nobody behind it but the workflows that are driven.

    client = offline(converter, "default", signals)
    signals.ask(token, request)          in the activity: waits until the fork has taken it
    sent.take(); sent.refuse(error)      in the fork's thread

An activity may signal the workflow that waits for it: so it streams what it has into it
(`temporalio.contrib.workflow_streams`). All else that a client does needs a server.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from typing import Any, NoReturn

import msgspec
from temporalio import activity
from temporalio.api.workflowservice.v1 import SignalWorkflowExecutionRequest
from temporalio.bridge.proto.workflow_activation import WorkflowActivationJob
from temporalio.client import Client
from temporalio.exceptions import ApplicationError
from temporalio.service import ConnectConfig, RPCError, RPCStatusCode, ServiceClient

NO_CLIENT = "LockstepNoClient"  # the type of what is raised where a server is needed
_SIGNAL = "signal_workflow_execution"
_NOWHERE = "127.0.0.1:0"
_IDENTITY = "lockstep"


class Sent(msgspec.Struct, frozen=True):
    """A signal of an activity's. `activity`: its type, "" where it comes from none."""

    request: SignalWorkflowExecutionRequest
    activity: str
    heard: Future[None]

    @property
    def target(self) -> str:
        """The id of the workflow that it is for."""
        return str(self.request.workflow_execution.workflow_id)

    def take(self) -> WorkflowActivationJob:
        """As the workflow gets it: also where nobody waits for that any more, since it was on its way."""
        job = WorkflowActivationJob()
        told, request = job.signal_workflow, self.request
        told.signal_name, told.identity = request.signal_name, request.identity
        told.input.extend(request.input.payloads)
        for key, payload in request.header.fields.items():
            told.headers[key].CopyFrom(payload)
        if self.heard.set_running_or_notify_cancel():
            self.heard.set_result(None)
        return job

    def refuse(self, *, over: bool) -> None:
        """It is for no workflow that goes on. `over`: for one that has ended."""
        error: Exception = _unable(f"signal {self.request.signal_name!r} of workflow {self.target!r}")
        if over:
            error = RPCError("workflow execution already completed", RPCStatusCode.NOT_FOUND, b"")
        if self.heard.set_running_or_notify_cancel():
            self.heard.set_exception(error)


def offline(converter: Any, namespace: str, send: Callable[[Sent], None]) -> Client:
    """A client whose signals go to `send`, which is called in the activity's event loop."""
    # What a workflow is told here has not been through its codec.
    plain = replace(converter, payload_codec=None)
    return Client(_Service(send), namespace=namespace, data_converter=plain)


class _Service(ServiceClient):
    """No service: each call of a client ends here."""

    def __init__(self, send: Callable[[Sent], None]) -> None:
        super().__init__(ConnectConfig(target_host=_NOWHERE, identity=_IDENTITY, lazy=True))
        self._send = send

    async def _rpc_call(self, rpc: str, req: Any, resp_type: Any, **_: Any) -> Any:
        if rpc != _SIGNAL:
            raise _unable(rpc)
        here = activity.info().activity_type if activity.in_activity() else ""
        sent = Sent(req, here, Future())
        self._send(sent)
        await asyncio.wrap_future(sent.heard)
        return resp_type()

    @property
    def worker_service_client(self) -> NoReturn:
        raise _unable("a worker")

    def update_rpc_metadata(self, metadata: Any) -> None:
        """Nothing is sent."""

    def update_api_key(self, api_key: str | None) -> None:
        """Nothing is sent."""


def _unable(what: str) -> ApplicationError:
    return ApplicationError(
        f"activity.client(): {what}: a fork has no server, so its activities' client can only signal the workflows of"
        " the fork. Give the activity an answer with --set, or fork with --server local",
        type=NO_CLIENT,
        non_retryable=True,
    )
