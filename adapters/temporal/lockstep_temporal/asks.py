"""What a workflow asks of the world around it, and how answers reach it: the data that all around `world` share."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from temporalio.bridge.proto.activity_result import ActivityResolution
from temporalio.bridge.proto.child_workflow import ChildWorkflowResult
from temporalio.bridge.proto.workflow_activation import WorkflowActivationJob

NOT_FOUND = "ExternalWorkflowExecutionNotFound"
LAST = 1 << 30  # behind all that has a place among what happens at once

type Sort = Literal["activity", "timer", "child", "signal", "cancel"]
type Key = tuple[Sort, int]

SORTS: dict[str, Sort] = {
    "start_timer": "timer",
    "schedule_activity": "activity",
    "schedule_local_activity": "activity",
    "start_child_workflow_execution": "child",
    "signal_external_workflow_execution": "signal",
    "request_cancel_external_workflow_execution": "cancel",
}
ANSWERS: dict[str, Sort] = {
    "fire_timer": "timer",
    "resolve_activity": "activity",
    "resolve_child_workflow_execution": "child",
    "resolve_signal_external_workflow": "signal",
    "resolve_request_cancel_external_workflow": "cancel",
}


class Ask(msgspec.Struct, frozen=True):
    """Something that the workflow waits for, and that somebody has to answer.

    sort     what it is; timers are answered here
    seq      its number in the workflow, among those of its sort
    message  the WorkflowCommand, `command` what it says
    at       when it was asked for
    """

    sort: Sort
    seq: int
    message: Any
    at: int

    @property
    def command(self) -> Any:
        return getattr(self.message, self.message.WhichOneof("variant"))

    @property
    def key(self) -> Key:
        return self.sort, self.seq

    @property
    def is_local(self) -> bool:
        return bool(self.command.DESCRIPTOR.name == "ScheduleLocalActivity")


class Stop(msgspec.Struct, frozen=True):
    """The workflow wants something no more that it has asked for. `gone`: it will not hear of it any more."""

    sort: Sort
    seq: int
    reason: str = ""
    gone: bool = False


class Ended(msgspec.Struct, frozen=True):
    """How an execution ended.

    how      the field of the command (complete_workflow_execution, …), "failed_task" for an error that is no failure
             of the workflow, "timed_out" or "terminated"
    command  the field's value; the failure of a failed task
    """

    how: str
    command: Any = None


def answer(ask: Ask, result: Any) -> WorkflowActivationJob:
    """The job that brings an answer, which is as `World.settle` takes it."""
    job = WorkflowActivationJob()
    if ask.sort == "activity":
        job.resolve_activity.seq = ask.seq
        job.resolve_activity.is_local = ask.is_local
        job.resolve_activity.result.CopyFrom(result)
    elif ask.sort == "child":
        job.resolve_child_workflow_execution.seq = ask.seq
        job.resolve_child_workflow_execution.result.CopyFrom(result)
    else:
        signal, cancel = job.resolve_signal_external_workflow, job.resolve_request_cancel_external_workflow
        done: Any = signal if ask.sort == "signal" else cancel
        done.seq = ask.seq
        if result is not None:
            done.failure.CopyFrom(result)
            if "cause" in done.DESCRIPTOR.fields_by_name and result.application_failure_info.type == NOT_FOUND:
                done.cause = 1  # the first of both enums
    return job


def answered(job: WorkflowActivationJob) -> Key | None:
    """What a job answers."""
    kind = job.WhichOneof("variant") or ""
    sort = "child" if kind == "resolve_child_workflow_execution_start" else ANSWERS.get(kind)
    return (sort, getattr(job, kind).seq) if sort is not None else None


def completed(result: Any) -> ActivityResolution:
    """An activity's good end. `result`: a Payload, or None for none."""
    made = ActivityResolution()
    made.completed.SetInParent()
    if result is not None:
        made.completed.result.CopyFrom(result)
    return made


def child_completed(result: Any) -> ChildWorkflowResult:
    made = ChildWorkflowResult()
    made.completed.SetInParent()
    if result is not None:
        made.completed.result.CopyFrom(result)
    return made
