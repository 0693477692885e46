"""A history cut into workflow tasks: what came to the workflow before each, and the commands that it gave. Pure.

    for task in tasks_of(events): task.started, task.completed, task.came, task.commanded

The server writes the commands of a task right behind its WORKFLOW_TASK_COMPLETED; what came while the task was on
stands behind them, and belongs to the next one.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from typing import Any

import msgspec
from temporalio.api.enums.v1 import EventType

from lockstep.errors import Code, StoreError
from lockstep.log.model import Value

_PREFIX = "EVENT_TYPE_"
LOCAL, PATCHED = "core_local_activity", "core_patch"  # names of markers
_CHANGE_VERSION = "TemporalChangeVersion"

COMMANDS = frozenset({
    "ACTIVITY_TASK_SCHEDULED", "ACTIVITY_TASK_CANCEL_REQUESTED", "TIMER_STARTED", "TIMER_CANCELED", "MARKER_RECORDED",
    "START_CHILD_WORKFLOW_EXECUTION_INITIATED", "SIGNAL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED",
    "REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED", "UPSERT_WORKFLOW_SEARCH_ATTRIBUTES",
    "WORKFLOW_PROPERTIES_MODIFIED", "WORKFLOW_EXECUTION_UPDATE_ACCEPTED", "WORKFLOW_EXECUTION_UPDATE_COMPLETED",
    "WORKFLOW_EXECUTION_UPDATE_REJECTED", "WORKFLOW_EXECUTION_COMPLETED", "WORKFLOW_EXECUTION_FAILED",
    "WORKFLOW_EXECUTION_CANCELED", "WORKFLOW_EXECUTION_CONTINUED_AS_NEW", "NEXUS_OPERATION_SCHEDULED",
    "NEXUS_OPERATION_CANCEL_REQUESTED",
})  # fmt: skip


class WorkflowTask(msgspec.Struct, frozen=True):
    """One that was completed.

    number     of it in the history, from 0
    started, completed  ids of its events
    came       events that came before it was started, since the one before
    commanded  events of its commands, in their order
    events     all of them, with its own; those of the tasks before it that failed too
    """

    number: int
    started: int
    completed: int
    came: tuple[Any, ...]
    commanded: tuple[Any, ...]
    events: tuple[Any, ...]

    @property
    def start(self) -> Any:
        """Its WORKFLOW_TASK_STARTED, whose time is the workflow's clock; None where the history has none."""
        return next((event for event in self.events if event.event_id == self.started), None)


class Cut(msgspec.Struct, frozen=True):
    """A history. `rest`: the events after the last task that was completed, with its commands."""

    tasks: tuple[WorkflowTask, ...]
    rest: tuple[Any, ...]


def tasks_of(events: Sequence[Any]) -> Cut:
    """Cuts a history (HistoryEvents)."""
    found: list[WorkflowTask] = []
    kept: list[Any] = []  # since the commands of the last task
    at = 0
    while at < len(events):
        event = events[at]
        kept.append(event)
        at += 1
        if not event.HasField("workflow_task_completed_event_attributes"):
            continue
        started = event.workflow_task_completed_event_attributes.started_event_id
        commanded = []
        while at < len(events) and kind_of(events[at]) in COMMANDS:
            commanded.append(events[at])
            at += 1
        came = tuple(each for each in kept if each.event_id < started)
        # What came while the task was on and stands before its end: of a server that does not keep it back.
        late = [each for each in kept if started < each.event_id < event.event_id]
        own = tuple([*(each for each in kept if each not in late), *commanded] if late else [*kept, *commanded])
        found.append(WorkflowTask(len(found), started, event.event_id, came, tuple(commanded), own))
        kept = late
    return Cut(tuple(found), tuple(kept))


def kind_of(event: Any) -> str:
    """What happened, as in ACTIVITY_TASK_SCHEDULED; its number where this SDK does not know it."""
    return _kind(event.event_type)


@cache
def _kind(number: int) -> str:
    known: Any = EventType
    return str(known.Name(number)).removeprefix(_PREFIX) if number in known.values() else str(number)


def attributes(event: Any) -> Any:
    """What an event says beside its id, type and time; None where it says nothing that is known here."""
    which = event.WhichOneof("attributes")
    return getattr(event, which) if which is not None else None


class Local(msgspec.Struct, frozen=True):
    """What the marker of a local activity says. `scheduled`: when it was begun, in ns since the epoch, 0 where it does
    not say."""

    seq: int
    activity_id: str
    activity_type: str
    attempt: int
    scheduled: int
    backoff: Any = None


def local(event: Any) -> Local | None:
    """The local activity of a marker; None of any other event. Raises StoreError LS202 where it says none."""
    said = event.marker_recorded_event_attributes
    if said.marker_name != LOCAL:
        return None
    told = _marker(event, "data", LOCAL)
    when = told.get("original_schedule_time")
    scheduled = _nanoseconds(when) if isinstance(when, dict) else 0
    try:
        return Local(
            int(told["seq"]), str(told["activity_id"]), str(told["activity_type"]), int(told.get("attempt", 1)),
            scheduled, told.get("backoff"),
        )  # fmt: skip
    except (KeyError, TypeError, ValueError) as error:
        raise _odd(event, f"the marker of a local activity lacks its {error}") from None


def patched(event: Any) -> tuple[str, bool] | None:
    """The id of a patch, and whether it is deprecated, by its marker; None of any other event."""
    if event.marker_recorded_event_attributes.marker_name != PATCHED:
        return None
    told = _marker(event, "patch-data", PATCHED)
    return str(told.get("id", "")), told.get("deprecated") is True


def is_change_version(event: Any) -> bool:
    """Whether it is what core writes for a patch, beside its marker."""
    if not event.HasField("upsert_workflow_search_attributes_event_attributes"):
        return False
    fields = event.upsert_workflow_search_attributes_event_attributes.search_attributes.indexed_fields
    return set(fields) == {_CHANGE_VERSION}


def _marker(event: Any, entry: str, name: str) -> dict[str, Any]:
    payloads = event.marker_recorded_event_attributes.details[entry].payloads
    try:
        told = json.loads(payloads[0].data)
    except (IndexError, ValueError):
        raise _odd(event, f"the marker {name} says nothing that can be read") from None
    if not isinstance(told, dict):
        raise _odd(event, f"the marker {name} holds a {type(told).__name__}")
    return told


def _nanoseconds(when: dict[str, Value]) -> int:
    seconds, nanos = when.get("seconds"), when.get("nanos")
    return (seconds if isinstance(seconds, int) else 0) * 1_000_000_000 + (nanos if isinstance(nanos, int) else 0)


def _odd(event: Any, why: str) -> StoreError:
    return StoreError(Code.DAMAGED, f"event {event.event_id} of a history makes no sense: {why}")
