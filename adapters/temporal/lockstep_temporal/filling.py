"""What Temporal's server makes of a command before it writes it into the history. Pure.

    filled(command, started)           a copy, as the history has it

A program leaves most out: timeouts, retry policies, the task queue. So that what it says can be compared with what the
history has, the same is computed here as in the server (its `CommandAttrValidator`, and core where it fills in), by the
attributes of the execution's first event.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from google.protobuf.duration_pb2 import Duration
from temporalio.bridge.proto.workflow_commands import WorkflowCommand

_SECOND = 1_000_000_000
_INITIAL, _COEFFICIENT, _MAXIMUM = _SECOND, 2.0, 100  # a retry policy's defaults; the last one times the first
_TASK_TIMEOUT = 10 * _SECOND
_MOST_TASK_TIMEOUT = 120 * _SECOND
_ALLOW_DUPLICATE = 1  # enum WorkflowIdReusePolicy


def filled(command: WorkflowCommand, started: Any) -> WorkflowCommand:
    """`started`: the WorkflowExecutionStartedEventAttributes of the history."""
    made = WorkflowCommand()
    made.CopyFrom(command)
    fill = _FILL.get(command.WhichOneof("variant") or "")
    if fill is not None:
        fill(getattr(made, command.WhichOneof("variant") or ""), started)
    return made


def _activity(said: Any, started: Any) -> None:
    said.task_queue = said.task_queue or started.task_queue.name
    run = _ns(started.workflow_run_timeout)
    whole, wait, once = (_ns(said.schedule_to_close_timeout), _ns(said.schedule_to_start_timeout),
                         _ns(said.start_to_close_timeout))  # fmt: skip
    if whole:
        wait = min(wait, whole) if wait else whole
        once = min(once, whole) if once else whole
    else:
        whole = run
        wait = wait or run
    beat = _ns(said.heartbeat_timeout)
    if run:
        whole, wait, once, beat = min(whole, run), min(wait, run), min(once, run), min(beat, run)
    _set(said, "schedule_to_close_timeout", whole)
    _set(said, "schedule_to_start_timeout", wait)
    _set(said, "start_to_close_timeout", once)
    _set(said, "heartbeat_timeout", min(beat, once))
    said.retry_policy.SetInParent()
    _retries(said.retry_policy)
    # How the program waits for a cancellation, and which worker may run it, is not in the history.
    said.ClearField("cancellation_type")
    said.ClearField("versioning_intent")
    _no_empty_priority(said)


def _child(said: Any, started: Any) -> None:
    said.task_queue = said.task_queue or started.task_queue.name
    run = _lower(_ns(said.workflow_run_timeout), _ns(said.workflow_execution_timeout))
    _set(said, "workflow_execution_timeout", _ns(said.workflow_execution_timeout))
    _set(said, "workflow_run_timeout", run)
    _set(said, "workflow_task_timeout", _task_timeout(_ns(said.workflow_task_timeout), run))
    if said.HasField("retry_policy"):
        _retries(said.retry_policy)
    said.workflow_id_reuse_policy = said.workflow_id_reuse_policy or _ALLOW_DUPLICATE
    for field in ("cancellation_type", "versioning_intent", "versioning_override"):
        _clear(said, field)
    _no_empty_priority(said)


def _continued(said: Any, started: Any) -> None:
    said.workflow_type = said.workflow_type or started.workflow_type.name
    said.task_queue = said.task_queue or started.task_queue.name
    run = _lower(_ns(said.workflow_run_timeout) or _ns(started.workflow_run_timeout),
                 _ns(started.workflow_execution_timeout))  # fmt: skip
    _set(said, "workflow_run_timeout", run)
    wanted = _ns(said.workflow_task_timeout) or _ns(started.workflow_task_timeout)
    _set(said, "workflow_task_timeout", _task_timeout(wanted, run))
    for field in ("retry_policy", "versioning_intent", "initial_versioning_behavior", "backoff_start_interval"):
        _clear(said, field)


def _local(said: Any, started: Any) -> None:
    """Its marker has nothing of the rest."""
    for descriptor, _ in said.ListFields():
        if descriptor.name not in ("seq", "activity_id", "activity_type"):
            said.ClearField(descriptor.name)


_FILL: dict[str, Callable[[Any, Any], None]] = {
    "schedule_activity": _activity,
    "schedule_local_activity": _local,
    "start_child_workflow_execution": _child,
    "continue_as_new_workflow_execution": _continued,
}


def _retries(policy: Any) -> None:
    initial = _ns(policy.initial_interval) or _INITIAL
    most = _ns(policy.maximum_interval) or initial * _MAXIMUM
    _set(policy, "initial_interval", initial)
    _set(policy, "maximum_interval", most)
    policy.backoff_coefficient = policy.backoff_coefficient or _COEFFICIENT


def _task_timeout(wanted: int, run: int) -> int:
    found = min(wanted or _TASK_TIMEOUT, _MOST_TASK_TIMEOUT)
    return min(found, run) if run else found


def _lower(one: int, other: int) -> int:
    """The lower of two bounds, where 0 is none."""
    return min(one, other) if one and other else one or other


def _ns(duration: Duration) -> int:
    return duration.seconds * _SECOND + duration.nanos


def _set(message: Any, field: str, lasts: int) -> None:
    if lasts:
        getattr(message, field).CopyFrom(Duration(seconds=lasts // _SECOND, nanos=lasts % _SECOND))
    else:
        message.ClearField(field)


def _clear(message: Any, field: str) -> None:
    if field in message.DESCRIPTOR.fields_by_name:  # newer versions have more of them
        message.ClearField(field)


def _no_empty_priority(said: Any) -> None:
    if said.HasField("priority") and not said.priority.ByteSize():
        said.ClearField("priority")
