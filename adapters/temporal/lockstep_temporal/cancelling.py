"""What it means to cancel what a workflow waits for: who hears of it, and what the workflow is told at once.

Rules of sdk-core's state machines, by the cancellation type that the command was given. What has not reached the server
yet never gets there.
"""

from __future__ import annotations

from typing import Any

import msgspec
from temporalio.api.enums.v1 import RetryState
from temporalio.api.failure.v1 import Failure
from temporalio.bridge.proto.workflow_activation import WorkflowActivationJob

from lockstep_temporal import failures
from lockstep_temporal.asks import Ask, Stop

TRY_CANCEL, WAIT, ABANDON = 0, 1, 2  # of activities
CHILD_ABANDON, CHILD_TRY_CANCEL = 0, 1
BOTH = 2  # events less of what was begun and cancelled in one task: of either command


class Cancelled(msgspec.Struct, frozen=True):
    """stop  who else hears of it; `job`: what core tells the workflow itself, None: it goes on to wait. `events`: more
    that there are in the history"""

    stop: Stop | None = None
    job: WorkflowActivationJob | None = None
    events: int = 0


def activity(ask: Ask, *, sent: bool) -> Cancelled:
    """An activity is cancelled; `sent`: that somebody knows of."""
    kind = ask.command.cancellation_type
    events = 0
    if not ask.is_local and (not sent or kind == ABANDON):
        events = -1 if sent else -BOTH
    waits = kind == WAIT and sent
    stop = Stop("activity", ask.seq, gone=not waits) if sent and kind != ABANDON else None
    if waits:
        return Cancelled(stop, None, events)
    job = WorkflowActivationJob()
    job.resolve_activity.seq = ask.seq
    job.resolve_activity.is_local = ask.is_local
    failure = failures.local_cancelled(ask.command) if ask.is_local else failures.activity_cancelled(ask.command)
    job.resolve_activity.result.cancelled.failure.CopyFrom(failure)
    return Cancelled(stop, job, events + (1 if ask.is_local else 0))  # a local one's marker


def child(ask: Ask, reason: str, *, sent: bool, at: tuple[int, int], run_id: str) -> Cancelled:
    """A child is cancelled. `at`: the events that recorded it and its start; `run_id`: that it has started with."""
    kind = ask.command.cancellation_type
    events = 0
    if not sent or kind == CHILD_ABANDON:
        events = -1 if sent else -BOTH
    job = WorkflowActivationJob()
    if not sent:
        message = f"Child Workflow Execution cancelled before scheduled: {reason}"
        start = job.resolve_child_workflow_execution_start
        start.seq = ask.seq
        start.cancelled.failure.CopyFrom(_child(message, ask.command, "", failures.cancelled(), (0, at[1])))
        return Cancelled(None, job, events)
    gone = kind in (CHILD_ABANDON, CHILD_TRY_CANCEL)
    stop = Stop("child", ask.seq, reason, gone=gone) if kind != CHILD_ABANDON else None
    if not gone:
        return Cancelled(stop, None, events)
    job.resolve_child_workflow_execution.seq = ask.seq
    told = job.resolve_child_workflow_execution.result.cancelled
    told.failure.CopyFrom(_child("Child Workflow execution cancelled", ask.command, run_id, failures.cancelled(), at))
    return Cancelled(stop, job, events)


def signal(seq: int) -> WorkflowActivationJob:
    """A signal of another workflow is cancelled before it was sent."""
    failure = Failure(message="Signal was cancelled before being sent")
    failure.canceled_failure_info.SetInParent()
    job = WorkflowActivationJob()
    job.resolve_signal_external_workflow.seq = seq
    job.resolve_signal_external_workflow.failure.CopyFrom(failure)
    return job


def _child(message: str, command: Any, run_id: str, cause: Failure, at: tuple[int, int]) -> Failure:
    state = RetryState.RETRY_STATE_NON_RETRYABLE_FAILURE
    return failures.child(message, command, run_id, cause, state, at)
