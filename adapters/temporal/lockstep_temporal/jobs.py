"""The jobs that core makes of a history's events: what came to the workflow with a task. Pure.

    jobs_of(task, origins)             WorkflowActivationJobs, in the order in which core gives them
    resolved_locally(event)            that of the marker of a local activity

Without code only: what is replayed gets its jobs from core itself (`walk`). The random seed is not computed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from temporalio.api.failure.v1 import Failure
from temporalio.bridge.proto.workflow_activation import WorkflowActivationJob

from lockstep_temporal.rebuilt import Origins
from lockstep_temporal.tasks import attributes, kind_of, local, patched

_CANCEL_REQUESTED: Any = 7  # enum RetryState: what core says of activities that are not waited for
_NON_RETRYABLE: Any = 2
_CHILD_EXISTS, _CHILD_NO_NAMESPACE = 1, 2  # enum StartChildWorkflowExecutionFailedCause
# The place of a job in its activation.
_PATCH, _SEED, _INBOUND, _OTHER = 1, 2, 3, 4


def jobs_of(came: Iterable[Any], commanded: Iterable[Any], origins: Origins) -> list[WorkflowActivationJob]:
    """Those of a task. `commanded`: events of its own commands, among them the updates that it accepted, and markers of
    patches, of which core tells the workflow first."""
    found: list[tuple[int, int, WorkflowActivationJob]] = []  # with its place, and the event that it comes behind
    for event in came:
        kind = kind_of(event)
        make = _MAKE.get(kind)
        made = WorkflowActivationJob()
        if make is not None and make(made, attributes(event), event, origins):
            place = _PLACE.get(kind, _OTHER)
            found.append((place, event.event_id if place == _INBOUND else 0, made))
    for event in commanded:
        made = WorkflowActivationJob()
        if event.HasField("workflow_execution_update_accepted_event_attributes"):
            said = attributes(event)
            _update(made, said, event, origins)
            found.append((_INBOUND, said.accepted_request_sequencing_event_id, made))
        elif kind_of(event) == "MARKER_RECORDED" and (patch := patched(event)) is not None:
            made.notify_has_patch.patch_id = patch[0]
            found.append((_PATCH, 0, made))
    return [job for _, _, job in sorted(found, key=lambda each: each[:2])]


def started(event: Any, run_id: str) -> WorkflowActivationJob:
    """That of an execution's first event."""
    said = event.workflow_execution_started_event_attributes
    job = WorkflowActivationJob()
    made = job.initialize_workflow
    made.workflow_type = said.workflow_type.name
    made.workflow_id = said.workflow_id
    made.arguments.extend(said.input.payloads)
    for name in said.header.fields:
        made.headers[name].CopyFrom(said.header.fields[name])
    made.identity = said.identity
    made.continued_from_execution_run_id = said.continued_execution_run_id
    made.continued_initiator = said.initiator
    made.first_execution_run_id = said.first_execution_run_id
    made.attempt = said.attempt
    made.cron_schedule = said.cron_schedule
    if "original_execution_run_id" in made.DESCRIPTOR.fields_by_name:  # of later versions
        made.original_execution_run_id = said.original_execution_run_id or run_id
    made.start_time.CopyFrom(event.event_time)
    return job


def resolved_locally(event: Any) -> WorkflowActivationJob:
    """That of a local activity's marker. Raises StoreError LS202."""
    ran = local(event)
    assert ran is not None
    said = event.marker_recorded_event_attributes
    job = WorkflowActivationJob()
    made = job.resolve_activity
    made.seq, made.is_local = ran.seq, True
    if ran.backoff is not None:
        made.result.backoff.SetInParent()
        made.result.backoff.attempt = ran.attempt + 1
        return job
    if said.HasField("failure"):
        ended = made.result.cancelled if said.failure.HasField("canceled_failure_info") else made.result.failed
        ended.failure.CopyFrom(said.failure)
        return job
    made.result.completed.SetInParent()
    payloads = said.details["result"].payloads if "result" in said.details else ()
    if payloads:
        made.result.completed.result.CopyFrom(payloads[0])
    return job


def cancelled_at_once(scheduled: Any, seq: int) -> WorkflowActivationJob:
    """What core says of an activity whose cancellation is not waited for, as soon as that is asked for."""
    said = scheduled.activity_task_scheduled_event_attributes
    job = WorkflowActivationJob()
    job.resolve_activity.seq = seq
    failure = job.resolve_activity.result.cancelled.failure
    failure.message = "Activity cancelled"
    failure.cause.canceled_failure_info.SetInParent()
    failure.activity_failure_info.activity_type.CopyFrom(said.activity_type)
    failure.activity_failure_info.activity_id = said.activity_id
    failure.activity_failure_info.retry_state = _CANCEL_REQUESTED
    return job


type _Make = Callable[[Any, Any, Any, Origins], bool]


def _activity_done(job: Any, said: Any, event: Any, origins: Origins) -> bool:
    job.resolve_activity.seq = origins.of(said.scheduled_event_id)
    done = job.resolve_activity.result.completed
    done.SetInParent()
    if said.result.payloads:
        done.result.CopyFrom(said.result.payloads[0])
    return True


def _activity_failed(message: str) -> _Make:
    def make(job: Any, said: Any, event: Any, origins: Origins) -> bool:
        job.resolve_activity.seq = origins.of(said.scheduled_event_id)
        failure = job.resolve_activity.result.failed.failure
        failure.message = message
        if said.HasField("failure"):
            failure.cause.CopyFrom(said.failure)
        _of_activity(failure, said, origins)
        failure.activity_failure_info.retry_state = said.retry_state
        return True

    return make


def _activity_cancelled(job: Any, said: Any, event: Any, origins: Origins) -> bool:
    job.resolve_activity.seq = origins.of(said.scheduled_event_id)
    failure = job.resolve_activity.result.cancelled.failure
    failure.message = "Activity cancelled"
    failure.cause.canceled_failure_info.SetInParent()
    if said.HasField("details"):
        failure.cause.canceled_failure_info.details.CopyFrom(said.details)
    _of_activity(failure, said, origins)
    failure.activity_failure_info.retry_state = _CANCEL_REQUESTED
    return True


def _of_activity(failure: Failure, said: Any, origins: Origins) -> None:
    info = failure.activity_failure_info
    info.scheduled_event_id = said.scheduled_event_id
    info.started_event_id = said.started_event_id
    info.identity = getattr(said, "identity", "")
    scheduled = origins.scheduled.get(said.scheduled_event_id)
    if scheduled is not None:
        info.activity_type.CopyFrom(scheduled.activity_type)
        info.activity_id = scheduled.activity_id


def _fired(job: Any, said: Any, event: Any, origins: Origins) -> bool:
    job.fire_timer.seq = origins.of(said.started_event_id)
    return True


def _signal(job: Any, said: Any, event: Any, origins: Origins) -> bool:
    made = job.signal_workflow
    made.signal_name = said.signal_name
    made.input.extend(said.input.payloads)
    made.identity = said.identity
    for name in said.header.fields:
        made.headers[name].CopyFrom(said.header.fields[name])
    if "originating_event_id" in made.DESCRIPTOR.fields_by_name:  # older versions have none
        made.originating_event_id = event.event_id
    return True


def _cancel(job: Any, said: Any, event: Any, origins: Origins) -> bool:
    job.cancel_workflow.SetInParent()
    job.cancel_workflow.reason = said.cause
    return True


def _update(job: Any, said: Any, event: Any, origins: Origins) -> bool:
    made = job.do_update
    request = said.accepted_request
    made.id = request.meta.update_id or said.protocol_instance_id
    made.protocol_instance_id = said.protocol_instance_id
    made.name = request.input.name
    made.input.extend(request.input.args.payloads)
    for name in request.input.header.fields:
        made.headers[name].CopyFrom(request.input.header.fields[name])
    made.meta.CopyFrom(request.meta)
    return True


def _child_started(job: Any, said: Any, event: Any, origins: Origins) -> bool:
    made = job.resolve_child_workflow_execution_start
    made.seq = origins.of(said.initiated_event_id)
    made.succeeded.run_id = said.workflow_execution.run_id
    return True


def _child_not_started(job: Any, said: Any, event: Any, origins: Origins) -> bool:
    made = job.resolve_child_workflow_execution_start
    made.seq = origins.of(said.initiated_event_id)
    made.failed.workflow_id = said.workflow_id
    made.failed.workflow_type = said.workflow_type.name
    # Core has an enum of its own, of which the first value is that it knows none.
    made.failed.cause = {_CHILD_EXISTS: 1}.get(said.cause, 0)
    return True


def _child_done(job: Any, said: Any, event: Any, origins: Origins) -> bool:
    made = job.resolve_child_workflow_execution
    made.seq = origins.of(said.initiated_event_id)
    made.result.completed.SetInParent()
    if said.result.payloads:
        made.result.completed.result.CopyFrom(said.result.payloads[0])
    return True


def _child_ended(how: str, message: str) -> _Make:
    def make(job: Any, said: Any, event: Any, origins: Origins) -> bool:
        made = job.resolve_child_workflow_execution
        made.seq = origins.of(said.initiated_event_id)
        failure = (made.result.cancelled if how == "cancelled" else made.result.failed).failure
        failure.message = message
        if how == "failed":
            failure.cause.CopyFrom(said.failure)
        elif how == "cancelled":
            failure.cause.canceled_failure_info.SetInParent()
            if said.HasField("details"):
                failure.cause.canceled_failure_info.details.CopyFrom(said.details)
        elif how == "timed out":
            failure.cause.message = "Timed out"
            failure.cause.timeout_failure_info.timeout_type = 1  # start to close
        else:
            failure.cause.terminated_failure_info.SetInParent()
        info = failure.child_workflow_execution_failure_info
        info.namespace = said.namespace
        info.workflow_execution.CopyFrom(said.workflow_execution)
        info.workflow_type.CopyFrom(said.workflow_type)
        info.initiated_event_id = said.initiated_event_id
        info.started_event_id = said.started_event_id
        info.retry_state = getattr(said, "retry_state", 0) or _NON_RETRYABLE
        return True

    return make


def _signalled(job: Any, said: Any, event: Any, origins: Origins) -> bool:
    job.resolve_signal_external_workflow.seq = origins.of(said.initiated_event_id)
    return True


def _not_signalled(job: Any, said: Any, event: Any, origins: Origins) -> bool:
    made = job.resolve_signal_external_workflow
    made.seq = origins.of(said.initiated_event_id)
    made.failure.message = "Unable to signal external workflow because it was not found"
    _not_found(made, said)
    return True


def _cancel_asked(job: Any, said: Any, event: Any, origins: Origins) -> bool:
    family, seq = origins.seqs.get(said.initiated_event_id, ("", 0))
    if family == "cancel_child":
        return False
    job.resolve_request_cancel_external_workflow.seq = seq
    return True


def _cancel_not_asked(job: Any, said: Any, event: Any, origins: Origins) -> bool:
    if not _cancel_asked(job, said, event, origins):
        return False
    made = job.resolve_request_cancel_external_workflow
    made.failure.message = "Unable to cancel external workflow because it was not found"
    _not_found(made, said)
    return True


def _not_found(made: Any, said: Any) -> None:
    made.failure.application_failure_info.SetInParent()
    if "cause" in made.DESCRIPTOR.fields_by_name:  # older versions tell neither cause nor type
        made.cause = said.cause
        made.failure.application_failure_info.type = "ExternalWorkflowExecutionNotFound"


def _seed(job: Any, said: Any, event: Any, origins: Origins) -> bool:
    if not said.new_run_id:
        return False
    job.update_random_seed.SetInParent()
    return True


_MAKE: dict[str, _Make] = {
    "ACTIVITY_TASK_COMPLETED": _activity_done,
    "ACTIVITY_TASK_FAILED": _activity_failed("Activity task failed"),
    "ACTIVITY_TASK_TIMED_OUT": _activity_failed("Activity task timed out"),
    "ACTIVITY_TASK_CANCELED": _activity_cancelled,
    "TIMER_FIRED": _fired,
    "WORKFLOW_EXECUTION_SIGNALED": _signal,
    "WORKFLOW_EXECUTION_CANCEL_REQUESTED": _cancel,
    "CHILD_WORKFLOW_EXECUTION_STARTED": _child_started,
    "START_CHILD_WORKFLOW_EXECUTION_FAILED": _child_not_started,
    "CHILD_WORKFLOW_EXECUTION_COMPLETED": _child_done,
    "CHILD_WORKFLOW_EXECUTION_FAILED": _child_ended("failed", "Child Workflow execution failed"),
    "CHILD_WORKFLOW_EXECUTION_CANCELED": _child_ended("cancelled", "Child Workflow execution cancelled"),
    "CHILD_WORKFLOW_EXECUTION_TIMED_OUT": _child_ended("timed out", "Child Workflow execution timed out"),
    "CHILD_WORKFLOW_EXECUTION_TERMINATED": _child_ended("terminated", "Child Workflow execution terminated"),
    "EXTERNAL_WORKFLOW_EXECUTION_SIGNALED": _signalled,
    "SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_FAILED": _not_signalled,
    "EXTERNAL_WORKFLOW_EXECUTION_CANCEL_REQUESTED": _cancel_asked,
    "REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_FAILED": _cancel_not_asked,
    "WORKFLOW_TASK_FAILED": _seed,
}
KINDS = frozenset(_MAKE)
_PLACE = {
    "WORKFLOW_EXECUTION_SIGNALED": _INBOUND,
    "WORKFLOW_TASK_FAILED": _SEED,
}
