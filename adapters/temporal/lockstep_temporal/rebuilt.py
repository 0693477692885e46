"""The commands of a workflow task as its history has them: what the server took, with all that it filled in. Pure.

    rebuilt = commands_in(task, origins)            [Rebuilt(event, WorkflowCommand), …]

A history does not say all that a command said: numbers are found by counting, how a cancellation is waited for is not
known, and neither are the arguments of a local activity, of which there is a marker only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec
from temporalio.bridge.proto.workflow_commands import WorkflowCommand

from lockstep_temporal.tasks import attributes, is_change_version, kind_of, local, patched

ACTIVITY, TIMER, CHILD, EXTERNAL, CANCEL_EXTERNAL = "activity", "timer", "child", "signal_external", "cancel_external"


class Rebuilt(msgspec.Struct, frozen=True):
    """A command, with the event that it became."""

    event: Any
    message: WorkflowCommand


class Origins:
    """What events refer to, by the ids of the events that began it. For the events of one history, in their order.

    seqs      number of a command in its family
    updates   protocol instance ids, by that of the event that accepted the update
    children  their numbers, by workflow id
    scheduled attributes of the events that scheduled activities
    """

    def __init__(self) -> None:
        self.seqs: dict[int, tuple[str, int]] = {}
        self.updates: dict[int, str] = {}
        self.children: dict[str, int] = {}
        self.scheduled: dict[int, Any] = {}
        self._last: dict[str, int] = {}

    def activity(self, event: Any, activity_id: str) -> int:
        """Its number: the SDK calls an activity after it, unless the program has said another id."""
        following = self._last.get(ACTIVITY, 0) + 1
        said = int(activity_id) if activity_id.isdecimal() and str(int(activity_id)) == activity_id else 0
        return self.take(event, ACTIVITY, said if said >= following else following)

    def take(self, event: Any, family: str, seq: int = 0) -> int:
        """The number of a command of this family: the next one where none is given."""
        number = seq or self._last.get(family, 0) + 1
        self._last[family] = max(number, self._last.get(family, 0))
        self.seqs[event.event_id] = family, number
        return number

    def of(self, event_id: int) -> int:
        """The number of the command that became this event; 0 where it is not known."""
        return self.seqs.get(event_id, ("", 0))[1]


def commands_in(events: Iterable[Any], origins: Origins) -> list[Rebuilt]:
    """Those that the events of a task's commands tell of. Nexus operations are not among them."""
    found = []
    for event in events:
        make = _MAKE.get(kind_of(event))
        if make is None:
            continue
        command = WorkflowCommand()
        if event.HasField("user_metadata"):
            command.user_metadata.CopyFrom(event.user_metadata)
        if make(command, attributes(event), event, origins):
            found.append(Rebuilt(event, command))
    return found


def _activity(command: Any, said: Any, event: Any, origins: Origins) -> bool:
    made = command.schedule_activity
    made.seq = origins.activity(event, said.activity_id)
    origins.scheduled[event.event_id] = said
    made.activity_id = said.activity_id
    made.activity_type = said.activity_type.name
    made.task_queue = said.task_queue.name
    made.arguments.extend(said.input.payloads)
    _headers(made.headers, said)
    for timeout in ("schedule_to_close", "schedule_to_start", "start_to_close", "heartbeat"):
        _lasts(made, f"{timeout}_timeout", said)
    if said.HasField("retry_policy"):
        made.retry_policy.CopyFrom(said.retry_policy)
    _priority(made, said)
    return True


def _cancel_activity(command: Any, said: Any, event: Any, origins: Origins) -> bool:
    command.request_cancel_activity.seq = origins.of(said.scheduled_event_id)
    return True


def _timer(command: Any, said: Any, event: Any, origins: Origins) -> bool:
    number = int(said.timer_id) if said.timer_id.isdecimal() else 0
    command.start_timer.seq = origins.take(event, TIMER, number)
    command.start_timer.start_to_fire_timeout.CopyFrom(said.start_to_fire_timeout)
    return True


def _cancel_timer(command: Any, said: Any, event: Any, origins: Origins) -> bool:
    command.cancel_timer.seq = origins.of(said.started_event_id)
    return True


def _marker(command: Any, said: Any, event: Any, origins: Origins) -> bool:
    ran = local(event)
    if ran is not None:
        made = command.schedule_local_activity
        made.seq = origins.take(event, ACTIVITY, ran.seq)
        made.activity_id = ran.activity_id
        made.activity_type = ran.activity_type
        made.attempt = ran.attempt
        return True
    patch = patched(event)
    if patch is not None:
        command.set_patch_marker.patch_id, command.set_patch_marker.deprecated = patch
    return patch is not None


def _child(command: Any, said: Any, event: Any, origins: Origins) -> bool:
    made = command.start_child_workflow_execution
    made.seq = origins.take(event, CHILD)
    origins.children[said.workflow_id] = made.seq
    made.namespace = said.namespace
    made.workflow_id = said.workflow_id
    made.workflow_type = said.workflow_type.name
    made.task_queue = said.task_queue.name
    made.input.extend(said.input.payloads)
    for timeout in ("execution", "run", "task"):
        _lasts(made, f"workflow_{timeout}_timeout", said)
    made.parent_close_policy = said.parent_close_policy
    made.workflow_id_reuse_policy = said.workflow_id_reuse_policy
    if said.HasField("retry_policy"):
        made.retry_policy.CopyFrom(said.retry_policy)
    made.cron_schedule = said.cron_schedule
    _headers(made.headers, said)
    _memo(made.memo, said)
    if said.search_attributes.indexed_fields:
        _indexed(made.search_attributes, said.search_attributes)
    _priority(made, said)
    return True


def _signal(command: Any, said: Any, event: Any, origins: Origins) -> bool:
    made = command.signal_external_workflow_execution
    made.seq = origins.take(event, EXTERNAL)
    if said.child_workflow_only:
        made.child_workflow_id = said.workflow_execution.workflow_id
    else:
        made.workflow_execution.namespace = said.namespace
        made.workflow_execution.workflow_id = said.workflow_execution.workflow_id
        made.workflow_execution.run_id = said.workflow_execution.run_id
    made.signal_name = said.signal_name
    made.args.extend(said.input.payloads)
    _headers(made.headers, said)
    return True


def _cancel_other(command: Any, said: Any, event: Any, origins: Origins) -> bool:
    if said.child_workflow_only:
        made = command.cancel_child_workflow_execution
        made.child_workflow_seq = origins.children.get(said.workflow_execution.workflow_id, 0)
        made.reason = said.reason
        # Core asks the server, and waits for what it says, as of a request that the workflow's code has made.
        origins.seqs[event.event_id] = "cancel_child", made.child_workflow_seq
        return True
    asked = command.request_cancel_external_workflow_execution
    asked.seq = origins.take(event, CANCEL_EXTERNAL)
    asked.workflow_execution.namespace = said.namespace
    asked.workflow_execution.workflow_id = said.workflow_execution.workflow_id
    asked.workflow_execution.run_id = said.workflow_execution.run_id
    asked.reason = said.reason
    return True


def _search(command: Any, said: Any, event: Any, origins: Origins) -> bool:
    if is_change_version(event):
        return False
    _indexed(command.upsert_workflow_search_attributes.search_attributes, said.search_attributes)
    return True


def _modified(command: Any, said: Any, event: Any, origins: Origins) -> bool:
    command.modify_workflow_properties.upserted_memo.CopyFrom(said.upserted_memo)
    return True


def _accepted(command: Any, said: Any, event: Any, origins: Origins) -> bool:
    origins.updates[event.event_id] = said.protocol_instance_id
    command.update_response.protocol_instance_id = said.protocol_instance_id
    command.update_response.accepted.SetInParent()
    return True


def _updated(command: Any, said: Any, event: Any, origins: Origins) -> bool:
    made = command.update_response
    made.protocol_instance_id = origins.updates.get(said.accepted_event_id, said.meta.update_id)
    if said.outcome.HasField("failure"):
        made.rejected.CopyFrom(said.outcome.failure)
    else:
        made.completed.SetInParent()
        if said.outcome.success.payloads:
            made.completed.CopyFrom(said.outcome.success.payloads[0])
    return True


def _completed(command: Any, said: Any, event: Any, origins: Origins) -> bool:
    command.complete_workflow_execution.SetInParent()
    if said.result.payloads:
        command.complete_workflow_execution.result.CopyFrom(said.result.payloads[0])
    return True


def _failed(command: Any, said: Any, event: Any, origins: Origins) -> bool:
    command.fail_workflow_execution.failure.CopyFrom(said.failure)
    return True


def _cancelled(command: Any, said: Any, event: Any, origins: Origins) -> bool:
    command.cancel_workflow_execution.SetInParent()
    return True


def _continued(command: Any, said: Any, event: Any, origins: Origins) -> bool:
    made = command.continue_as_new_workflow_execution
    made.workflow_type = said.workflow_type.name
    made.task_queue = said.task_queue.name
    made.arguments.extend(said.input.payloads)
    for timeout in ("run", "task"):
        _lasts(made, f"workflow_{timeout}_timeout", said)
    _memo(made.memo, said)
    _headers(made.headers, said)
    if said.search_attributes.indexed_fields:
        _indexed(made.search_attributes, said.search_attributes)
    return True


_MAKE: dict[str, Callable[[Any, Any, Any, Origins], bool]] = {
    "ACTIVITY_TASK_SCHEDULED": _activity,
    "ACTIVITY_TASK_CANCEL_REQUESTED": _cancel_activity,
    "TIMER_STARTED": _timer,
    "TIMER_CANCELED": _cancel_timer,
    "MARKER_RECORDED": _marker,
    "START_CHILD_WORKFLOW_EXECUTION_INITIATED": _child,
    "SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED": _signal,
    "REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED": _cancel_other,
    "UPSERT_WORKFLOW_SEARCH_ATTRIBUTES": _search,
    "WORKFLOW_PROPERTIES_MODIFIED": _modified,
    "WORKFLOW_EXECUTION_UPDATE_ACCEPTED": _accepted,
    "WORKFLOW_EXECUTION_UPDATE_COMPLETED": _updated,
    "WORKFLOW_EXECUTION_COMPLETED": _completed,
    "WORKFLOW_EXECUTION_FAILED": _failed,
    "WORKFLOW_EXECUTION_CANCELED": _cancelled,
    "WORKFLOW_EXECUTION_CONTINUED_AS_NEW": _continued,
}


def _lasts(made: Any, name: str, said: Any) -> None:
    """A duration, unless it is none: the server writes 0 for what has no bound."""
    lasts = getattr(said, name)
    if lasts.seconds or lasts.nanos:
        getattr(made, name).CopyFrom(lasts)


def _headers(made: Any, said: Any) -> None:
    for name in said.header.fields:
        made[name].CopyFrom(said.header.fields[name])


def _memo(made: Any, said: Any) -> None:
    for name in said.memo.fields:
        made[name].CopyFrom(said.memo.fields[name])


def _indexed(made: Any, attributes: Any) -> None:
    # Before 1.30 a command had a plain map here.
    there = made.indexed_fields if hasattr(made, "indexed_fields") else made
    for name in attributes.indexed_fields:
        there[name].CopyFrom(attributes.indexed_fields[name])


def _priority(made: Any, said: Any) -> None:
    if said.HasField("priority") and said.priority.ByteSize():
        made.priority.CopyFrom(said.priority)
