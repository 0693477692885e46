"""What runs inside a workflow, without the plugin: tells what the workflow asks for and what comes to it.

It is the workflow's own thread, under its sandbox and its determinism: nothing here reads a clock, draws a number,
imports, or waits. What is told are the messages that a runner would see, serialised at the time of the call, and they
leave by one extern function. What is replayed from the history was told when it was new.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import msgspec
from temporalio import workflow
from temporalio.api.common.v1 import Payload
from temporalio.api.failure.v1 import Failure
from temporalio.bridge.proto.workflow_activation import WorkflowActivationJob
from temporalio.bridge.proto.workflow_commands import WorkflowCommand
from temporalio.common import RawValue
from temporalio.converter import DefaultFailureConverter
from temporalio.exceptions import is_cancelled_exception
from temporalio.worker import (
    ContinueAsNewInput,
    ExecuteWorkflowInput,
    HandleSignalInput,
    HandleUpdateInput,
    SignalChildWorkflowInput,
    SignalExternalWorkflowInput,
    StartActivityInput,
    StartChildWorkflowInput,
    StartLocalActivityInput,
    WorkflowInboundInterceptor,
    WorkflowOutboundInterceptor,
)

EMIT = "lockstep_emit"  # the extern function
RECORDED = "lockstep_recorded"  # where there is one of this name, a runner records the workflow, or it is driven

_failures = DefaultFailureConverter()


class Seen(msgspec.Struct, frozen=True, array_like=True):
    """One thing that happened.

    count    of what comes in (signals, updates): its number in the execution, from 1; 0 of anything else
    job      a WorkflowActivationJob, serialised; b"" of a command
    command  a WorkflowCommand, serialised; b"" of a job
    length   of the history
    """

    workflow_id: str
    run_id: str
    first_run_id: str
    namespace: str
    workflow_type: str
    task_queue: str
    length: int
    count: int = 0
    job: bytes = b""
    command: bytes = b""


_encode = msgspec.msgpack.Encoder().encode
decode = msgspec.msgpack.Decoder(Seen).decode


class Inbound(WorkflowInboundInterceptor):
    """What comes to the workflow, and how it ends."""

    def __init__(self, next: WorkflowInboundInterceptor) -> None:
        super().__init__(next)
        self._counts = {"signal": 0, "update": 0}
        self._on = False

    def init(self, outbound: WorkflowOutboundInterceptor) -> None:
        self._on = RECORDED not in workflow.extern_functions()
        super().init(Outbound(outbound) if self._on else outbound)

    async def execute_workflow(self, input: ExecuteWorkflowInput) -> Any:
        if not self._on:
            return await self.next.execute_workflow(input)
        _tell_job(_start, input.args)
        try:
            result = await self.next.execute_workflow(input)
        except BaseException as error:
            _tell_command(_raised, error)
            raise
        _tell_command(_completed, result)
        return result

    async def handle_signal(self, input: HandleSignalInput) -> None:
        if not self._on:
            return await self.next.handle_signal(input)
        self._counts["signal"] += 1
        _tell_job(_signal, input, count=self._counts["signal"])
        try:
            await self.next.handle_signal(input)
        except BaseException as error:
            _tell_command(_raised, error)
            raise

    async def handle_update_handler(self, input: HandleUpdateInput) -> Any:
        if self._on:
            self._counts["update"] += 1
            _tell_job(_update, input, count=self._counts["update"])
        return await self.next.handle_update_handler(input)


class Outbound(WorkflowOutboundInterceptor):
    """What the workflow asks for, and the answers."""

    def __init__(self, next: WorkflowOutboundInterceptor) -> None:
        super().__init__(next)
        self._children = self._signals = 0

    def start_activity(self, input: StartActivityInput) -> workflow.ActivityHandle[Any]:
        args = _payloads(input.args)
        return _followed(self.next.start_activity(input), input, args, local=False)

    def start_local_activity(self, input: StartLocalActivityInput) -> workflow.ActivityHandle[Any]:
        args = _payloads(input.args)
        return _followed(self.next.start_local_activity(input), input, args, local=True)

    async def start_child_workflow(self, input: StartChildWorkflowInput) -> workflow.ChildWorkflowHandle[Any, Any]:
        self._children += 1
        number = self._children
        _tell_command(_child, input, number)
        try:
            handle = await self.next.start_child_workflow(input)
        except BaseException as error:
            _tell_job(_child_failed, error, number)
            raise
        handle.add_done_callback(lambda task: _tell_job(_child_over, task, number))
        return handle

    async def signal_child_workflow(self, input: SignalChildWorkflowInput) -> None:
        await self._signalled(self.next.signal_child_workflow, input)

    async def signal_external_workflow(self, input: SignalExternalWorkflowInput) -> None:
        await self._signalled(self.next.signal_external_workflow, input)

    def continue_as_new(self, input: ContinueAsNewInput) -> NoReturn:
        _tell_command(_as_new, input)
        self.next.continue_as_new(input)

    async def _signalled(self, send: Callable[[Any], Any], input: Any) -> None:
        self._signals += 1
        number = self._signals
        _tell_command(_signal_out, input, number)
        try:
            await send(input)
        except BaseException as error:
            _tell_job(_signal_out_over, error, number)
            raise
        _tell_job(_signal_out_over, None, number)


def _followed(
    handle: workflow.ActivityHandle[Any], input: Any, args: list[Payload], local: bool
) -> workflow.ActivityHandle[Any]:  # fmt: skip
    number = getattr(handle, "_seq", None)
    if number is None:
        _tell_command(_unnumbered, handle)
        return handle
    _tell_command(_activity, input, args, number, local)
    # Runs before anything that waits for the handle: callbacks come in the order in which they were added.
    handle.add_done_callback(lambda task: _tell_job(_activity_over, task, number, local))
    return handle


# Telling.


def _tell_job(make: Callable[..., Any], *given: Any, count: int = 0) -> None:
    _tell(make, given, count)


def _tell_command(make: Callable[..., Any], *given: Any) -> None:
    _tell(make, given, 0)


def _tell(make: Callable[..., Any], given: tuple[Any, ...], count: int) -> None:
    """Sends what `make` makes of it. What goes wrong here is told, and nothing to the workflow."""
    if not workflow.in_workflow():
        return  # the collector ends the coroutine of an instance that was let go of
    try:
        if workflow.unsafe.is_replaying_history_events() or _evicting():
            return
        info = workflow.info()
        message = None if _in_replayer(info) else make(*given)
        if message is None:
            return
        data = message.SerializeToString()
        is_job = isinstance(message, WorkflowActivationJob)
        seen = Seen(
            info.workflow_id, info.run_id, info.first_execution_run_id, info.namespace, info.workflow_type,
            info.task_queue, info.get_current_history_length(), count, data if is_job else b"", b"" if is_job else data,
        )  # fmt: skip
        said = _encode(seen)
    except Exception as error:
        said = f"{type(error).__name__}: {error}".encode()
        workflow.extern_functions()[EMIT](b"", said)
        return
    workflow.extern_functions()[EMIT](said, b"")


def _evicting() -> bool:
    """Whether the instance is being let go of: all tasks are cancelled then, and nothing has happened."""
    return bool(getattr(workflow._Runtime.current(), "_deleting", False))


def _is_cancelled() -> bool:
    """Whether somebody has asked to cancel the workflow."""
    asked = getattr(workflow, "cancellation_reason", None)  # not in the oldest versions
    return (
        asked() is not None
        if asked is not None
        else bool(getattr(workflow._Runtime.current(), "_cancel_requested", False))
    )


def _in_replayer(info: workflow.Info) -> bool:
    """Whether it is the SDK's Replayer that runs the workflow: at the end of a cut history its code goes on as if it
    were new."""
    return info.namespace == "ReplayNamespace" or info.task_queue == "replay-None"  # as it calls them by default


def _payloads(values: Sequence[Any]) -> list[Payload]:
    """As they are now. [] for what the SDK will not be able to convert either."""
    if workflow.unsafe.is_replaying_history_events():
        return []
    try:
        return list(workflow.payload_converter().to_payloads(_given(values)))
    except Exception:
        return []


def _given(values: Sequence[Any]) -> Sequence[Any]:
    """The arguments of a dynamic workflow or handler come as one list of raw values, behind its name."""
    for value in values:
        if isinstance(value, list | tuple) and value and all(isinstance(each, RawValue) for each in value):
            return value
    return values


def _set(payload: Payload, value: Any) -> None:
    for made in _payloads([value]):
        payload.CopyFrom(made)


def _failure(error: BaseException) -> Failure:
    failure = Failure()
    _failures.to_failure(error, workflow.payload_converter(), failure)
    return failure


# What is told.


def _start(args: Sequence[Any]) -> WorkflowActivationJob:
    info = workflow.info()
    job = WorkflowActivationJob()
    said: Any = job.initialize_workflow
    said.workflow_type, said.workflow_id = info.workflow_type, info.workflow_id
    said.arguments.extend(_payloads(args))
    said.first_execution_run_id, said.attempt = info.first_execution_run_id, info.attempt
    if info.continued_run_id:
        said.continued_from_execution_run_id = info.continued_run_id
        said.continued_initiator = 2 if info.attempt > 1 else 3 if info.cron_schedule else 1  # retry, cron, as new
    return job


def _signal(input: HandleSignalInput) -> WorkflowActivationJob:
    job = WorkflowActivationJob()
    job.signal_workflow.signal_name = input.signal
    job.signal_workflow.input.extend(_payloads(input.args))
    return job


def _update(input: HandleUpdateInput) -> WorkflowActivationJob:
    job = WorkflowActivationJob()
    job.do_update.id, job.do_update.name = input.id, input.update
    job.do_update.input.extend(_payloads(input.args))
    return job


def _activity(input: Any, args: list[Payload], number: int, local: bool) -> WorkflowCommand:
    command = WorkflowCommand()
    said: Any = command.schedule_local_activity if local else command.schedule_activity
    said.seq, said.activity_type = number, input.activity
    said.activity_id = input.activity_id or str(number)
    said.arguments.extend(args)
    said.cancellation_type = int(input.cancellation_type)
    return command


def _unnumbered(handle: Any) -> NoReturn:
    raise AttributeError(
        f"{type(handle).__name__} has no _seq: this version of temporalio numbers activities otherwise"
    )


def _activity_over(task: Any, number: int, local: bool) -> WorkflowActivationJob:
    job = WorkflowActivationJob()
    job.resolve_activity.seq, job.resolve_activity.is_local = number, local
    _resolved(task, job.resolve_activity.result)
    return job


def _child(input: StartChildWorkflowInput, number: int) -> WorkflowCommand:
    command = WorkflowCommand()
    said = command.start_child_workflow_execution
    said.seq, said.workflow_id, said.workflow_type = number, input.id, input.workflow
    said.input.extend(_payloads(input.args))
    return command


def _child_failed(error: BaseException, number: int) -> WorkflowActivationJob:
    job = WorkflowActivationJob()
    said = job.resolve_child_workflow_execution
    said.seq = number
    kind = said.result.cancelled if is_cancelled_exception(error) else said.result.failed
    kind.failure.CopyFrom(_failure(error))
    return job


def _child_over(task: Any, number: int) -> WorkflowActivationJob:
    job = WorkflowActivationJob()
    job.resolve_child_workflow_execution.seq = number
    _resolved(task, job.resolve_child_workflow_execution.result)
    return job


def _resolved(task: asyncio.Task[Any], result: Any) -> None:
    """How a handle has ended. Asking for its exception in the usual way would stop asyncio from saying that nobody
    else has."""
    error = asyncio.CancelledError() if task.cancelled() else task._exception
    if error is None:
        result.completed.SetInParent()
        _set(result.completed.result, task.result())
    else:
        kind = result.cancelled if is_cancelled_exception(error) else result.failed
        kind.failure.CopyFrom(_failure(error))


def _signal_out(input: Any, number: int) -> WorkflowCommand:
    command = WorkflowCommand()
    said = command.signal_external_workflow_execution
    said.seq, said.signal_name = number, input.signal
    said.args.extend(_payloads(input.args))
    if isinstance(input, SignalChildWorkflowInput):
        said.child_workflow_id = input.child_workflow_id
    else:
        said.workflow_execution.namespace = input.namespace
        said.workflow_execution.workflow_id = input.workflow_id
        said.workflow_execution.run_id = input.workflow_run_id or ""
    return command


def _signal_out_over(error: BaseException | None, number: int) -> WorkflowActivationJob:
    job = WorkflowActivationJob()
    job.resolve_signal_external_workflow.seq = number
    if error is not None:
        job.resolve_signal_external_workflow.failure.CopyFrom(_failure(error))
    return job


def _completed(result: Any) -> WorkflowCommand:
    command = WorkflowCommand()
    command.complete_workflow_execution.SetInParent()
    _set(command.complete_workflow_execution.result, result)
    return command


def _as_new(input: ContinueAsNewInput) -> WorkflowCommand:
    command = WorkflowCommand()
    said = command.continue_as_new_workflow_execution
    said.workflow_type = input.workflow or workflow.info().workflow_type
    said.arguments.extend(_payloads(input.args))
    return command


def _raised(error: BaseException) -> WorkflowCommand | None:
    """The end of the workflow, where it is one: an error of another kind fails the task only, which is tried again."""
    command = WorkflowCommand()
    if isinstance(error, workflow.ContinueAsNewError):
        return None  # told where it was asked for
    if is_cancelled_exception(error) and _is_cancelled():
        command.cancel_workflow_execution.SetInParent()
    elif workflow.is_failure_exception(error):
        command.fail_workflow_execution.failure.CopyFrom(_failure(error))
    else:
        return None
    return command
