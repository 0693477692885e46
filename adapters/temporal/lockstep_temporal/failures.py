"""The failures that a workflow gets told: those that core and the server make of what happened, word for word."""

from __future__ import annotations

from typing import Any

from temporalio.api.enums.v1 import RetryState, TimeoutType
from temporalio.api.failure.v1 import Failure
from temporalio.bridge.proto.workflow_commands import (
    ScheduleActivity,
    ScheduleLocalActivity,
    StartChildWorkflowExecution,
)

type Scheduled = ScheduleActivity | ScheduleLocalActivity

_TIMEOUTS = {
    TimeoutType.TIMEOUT_TYPE_START_TO_CLOSE: "activity StartToClose timeout",
    TimeoutType.TIMEOUT_TYPE_SCHEDULE_TO_CLOSE: "activity ScheduleToClose timeout",
    TimeoutType.TIMEOUT_TYPE_SCHEDULE_TO_START: "activity ScheduleToStart timeout",
    TimeoutType.TIMEOUT_TYPE_HEARTBEAT: "activity Heartbeat timeout",
}


def activity_failed(command: Scheduled, cause: Failure, state: RetryState.ValueType, at: tuple[int, int]) -> Failure:
    """Of an activity on a task queue. `at`: the events that scheduled and started it."""
    return _of_activity("Activity task failed", command, cause, state, at)


def activity_timed_out(command: Scheduled, cause: Failure, state: RetryState.ValueType, at: tuple[int, int]) -> Failure:
    return _of_activity("Activity task timed out", command, cause, state, at)


def activity_cancelled(command: Scheduled, at: tuple[int, int] = (0, 0), details: Any = None) -> Failure:
    cause = cancelled(details)
    return _of_activity("Activity cancelled", command, cause, RetryState.RETRY_STATE_CANCEL_REQUESTED, at)


def local_cancelled(command: Scheduled) -> Failure:
    state = RetryState.RETRY_STATE_CANCEL_REQUESTED
    return _of_activity("Local Activity cancelled", command, cancelled(), state, (0, 0))


def local_timed_out(command: Scheduled, cause: Failure) -> Failure:
    state = RetryState.RETRY_STATE_CANCEL_REQUESTED  # core has no other for it
    return _of_activity("Local Activity timed out", command, cause, state, (0, 0))


def timeout(kind: TimeoutType.ValueType, last: Failure | None = None, beat: Any = None) -> Failure:
    """`last`: of the attempt before; `beat`: the last heartbeat's details (Payloads)."""
    made = Failure(message=_TIMEOUTS[kind], source="Server")
    made.timeout_failure_info.timeout_type = kind
    if beat is not None and beat.payloads:
        made.timeout_failure_info.last_heartbeat_details.CopyFrom(beat)
    if last is not None:
        made.cause.CopyFrom(last)
    return made


def no_time(last: Failure | None, beat: Any) -> Failure:
    """In the place of an attempt's timeout, where the next attempt would come too late."""
    made = timeout(TimeoutType.TIMEOUT_TYPE_SCHEDULE_TO_CLOSE, last, beat)
    made.message = "Not enough time to schedule next retry before activity ScheduleToClose timeout, giving up retrying"
    return made


def cancelled(details: Any = None) -> Failure:
    made = Failure()
    made.canceled_failure_info.SetInParent()
    if details is not None and details.payloads:
        made.canceled_failure_info.details.CopyFrom(details)
    return made


def child(
    message: str, command: StartChildWorkflowExecution, run_id: str, cause: Failure | None,
    state: RetryState.ValueType, at: tuple[int, int],
) -> Failure:  # fmt: skip
    """Of a child workflow. `at`: the events that asked for it and that told of its start."""
    made = Failure(message=message)
    if cause is not None:
        made.cause.CopyFrom(cause)
    info = made.child_workflow_execution_failure_info
    info.namespace = command.namespace
    info.workflow_type.name = command.workflow_type
    info.workflow_execution.workflow_id = command.workflow_id
    info.workflow_execution.run_id = run_id
    info.initiated_event_id, info.started_event_id = at
    info.retry_state = state
    return made


def application(message: str, kind: str) -> Failure:
    made = Failure(message=message)
    made.application_failure_info.type = kind
    return made


def _of_activity(
    message: str, command: Scheduled, cause: Failure, state: RetryState.ValueType, at: tuple[int, int]
) -> Failure:  # fmt: skip
    made = Failure(message=message)
    made.cause.CopyFrom(cause)
    info = made.activity_failure_info
    info.activity_type.name = command.activity_type
    info.activity_id = command.activity_id
    info.scheduled_event_id, info.started_event_id = at
    info.retry_state = state
    return made
