"""A history file becomes events, or a clear error.

What is read: the SDK's `WorkflowHistory.to_json`, `temporal workflow show --output json`, and the UI's download, which
has to be the encoded one: the decoded one has values in the place of payloads, and cannot be replayed by anybody.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from google.protobuf.json_format import ParseError

from lockstep.errors import Code, StoreError
from lockstep_temporal.jobs import KINDS
from lockstep_temporal.tasks import COMMANDS, attributes, kind_of

_PAYLOAD = frozenset({"metadata", "data", "externalPayloads", "external_payloads"})
_STARTED = "WORKFLOW_EXECUTION_STARTED"
_SCHEDULER = "temporal-sys-scheduler"  # the server's own workflows, which schedules are


def events_of(data: bytes) -> list[Any]:
    """The events (HistoryEvent) of a history file. Raises StoreError LS214 where they cannot be read, LS411 where they
    are of something that is not supported."""
    from temporalio.client import WorkflowHistory

    told = _json(data)
    _no_decoded(told)
    try:
        found = list(WorkflowHistory.from_json("", told).events)
    except ParseError as error:
        raise _bad(f"it is not what Temporal writes: {error}") from None
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise _bad(f"it is not what Temporal writes ({type(error).__name__}: {error})") from None
    _whole(found)
    _supported(found)
    return found


def _json(data: bytes) -> dict[str, Any]:
    try:
        told = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise _bad(f"it is no whole JSON: {error}") from None
    if isinstance(told, list):
        told = {"events": told}
    if isinstance(told, dict) and isinstance(inner := told.get("history"), dict):
        told = inner  # as the HTTP API answers
    if not isinstance(told, dict) or not isinstance(told.get("events"), list):
        raise _bad('it has no list "events"')
    told["events"].sort(key=_number)  # a page may show the newest first
    return told


def _number(event: Any) -> int:
    said = event.get("eventId", event.get("event_id")) if isinstance(event, dict) else None
    return int(said) if isinstance(said, int | str) and str(said).isdecimal() else 0


def _no_decoded(told: dict[str, Any]) -> None:
    for event in told["events"]:
        for payload in _payloads(event):
            if not _is_payload(payload):
                where = event.get("eventId", "?") if isinstance(event, dict) else "?"
                raise _bad(
                    f"it is a decoded download: event {where} has {_short(payload)} where a payload should be, so "
                    "what the workflow was given is lost. Download it encoded (in the UI: turn the decoding off "
                    "in the dialogue), or take it from the server: lockstep temporal pull --workflow-id ID"
                )


def _payloads(value: Any) -> Iterator[Any]:
    """What stands where payloads do."""
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, dict):
            for name, inner in item.items():
                if name == "payloads" and isinstance(inner, list):
                    yield from inner
                elif name == "input" and isinstance(inner, list):
                    yield from inner  # a decoded download has the values at once
                else:
                    stack.append(inner)
        elif isinstance(item, list):
            stack.extend(item)


def _is_payload(value: Any) -> bool:
    if not isinstance(value, dict) or not set(value) <= _PAYLOAD:
        return False
    metadata = value.get("metadata", {})
    encoding = metadata.get("encoding") if isinstance(metadata, dict) else None
    # Base64 has no slash before its fifth letter here: "json/plain" is "anNvbi9wbGFpbg==".
    return isinstance(value.get("data", ""), str) and encoding not in ("json/plain", "binary/null", "binary/plain")


def _whole(events: Sequence[Any]) -> None:
    """That it begins with its start, and has each event once, in order."""
    if not events:
        raise _bad("it has no events")
    first = events[0]
    if kind_of(first) != _STARTED or attributes(first) is None:
        raise _bad(
            f"it begins with {kind_of(first)}, not with {_STARTED}: only whole histories can be imported. "
            "An interrupted download, or the pages after the first one?"
        )
    for expected, event in enumerate(events, 1):
        if event.event_id != expected:
            raise _bad(f"event {expected} is missing: {kind_of(event)} with id {event.event_id} stands in its place")
    _typed(events)
    _referring(events)


def _typed(events: Sequence[Any]) -> None:
    """That events are of the type that they say, and workflow tasks one after the other: Temporal's core panics at
    anything else."""
    for event, following in zip(events, [*events[1:], None], strict=True):
        kind, said = kind_of(event), event.WhichOneof("attributes")
        if said is not None and said != f"{kind.lower()}_event_attributes":
            raise _bad(f"event {event.event_id} is called {kind} and says {said}")
        if kind == "WORKFLOW_TASK_STARTED" and following is not None and kind_of(following) not in _OVER:
            raise _bad(
                f"a workflow task is not over when something else is written: event {following.event_id} "
                f"({kind_of(following)}) comes right behind event {event.event_id} ({kind})"
            )


# What comes behind the start of a workflow task.
_OVER = frozenset({
    "WORKFLOW_TASK_COMPLETED", "WORKFLOW_TASK_FAILED", "WORKFLOW_TASK_TIMED_OUT", "WORKFLOW_EXECUTION_TERMINATED",
    "WORKFLOW_EXECUTION_TIMED_OUT",
})  # fmt: skip


def _referring(events: Sequence[Any]) -> None:
    """That events refer to earlier ones of the right kind."""
    kinds = {event.event_id: kind_of(event) for event in events}
    for event in events:
        said = attributes(event)
        kind = kind_of(event)
        if (said is None and (kind in KINDS or kind in _REFERS)) or (
            kind in COMMANDS and (said is None or not said.ByteSize())
        ):
            raise _bad(f"it is not what Temporal writes: event {event.event_id} ({kind}) says nothing")
        for field, wanted in _REFERS.get(kind, ()):
            number: int = getattr(said, field)
            if not 0 < number < event.event_id or kinds[number] != wanted:
                raise _bad(f"event {event.event_id} ({kind}) is about event {number}, which is no earlier {wanted}")


_SCHEDULED = (("scheduled_event_id", "ACTIVITY_TASK_SCHEDULED"),)
_INITIATED = (("initiated_event_id", "START_CHILD_WORKFLOW_EXECUTION_INITIATED"),)
_REFERS = {
    "WORKFLOW_TASK_COMPLETED": (("started_event_id", "WORKFLOW_TASK_STARTED"),),
    "ACTIVITY_TASK_STARTED": _SCHEDULED, "ACTIVITY_TASK_COMPLETED": _SCHEDULED, "ACTIVITY_TASK_FAILED": _SCHEDULED,
    "ACTIVITY_TASK_TIMED_OUT": _SCHEDULED, "ACTIVITY_TASK_CANCELED": _SCHEDULED,
    "ACTIVITY_TASK_CANCEL_REQUESTED": _SCHEDULED,
    "TIMER_FIRED": (("started_event_id", "TIMER_STARTED"),), "TIMER_CANCELED": (("started_event_id", "TIMER_STARTED"),),
    "CHILD_WORKFLOW_EXECUTION_STARTED": _INITIATED, "CHILD_WORKFLOW_EXECUTION_COMPLETED": _INITIATED,
    "CHILD_WORKFLOW_EXECUTION_FAILED": _INITIATED, "CHILD_WORKFLOW_EXECUTION_CANCELED": _INITIATED,
    "CHILD_WORKFLOW_EXECUTION_TIMED_OUT": _INITIATED, "CHILD_WORKFLOW_EXECUTION_TERMINATED": _INITIATED,
    "START_CHILD_WORKFLOW_EXECUTION_FAILED": _INITIATED,
}  # fmt: skip


def _supported(events: Sequence[Any]) -> None:
    started = attributes(events[0])
    if started.workflow_type.name.startswith(_SCHEDULER):
        raise unsupported("it is that of a schedule, which is a workflow of the server's own: import one of the "
                          "executions that it has started")  # fmt: skip
    for event in events:
        kind = kind_of(event)
        if kind.startswith("NEXUS_OPERATION"):
            raise unsupported(f"it calls a Nexus operation (event {event.event_id}), and these are not supported yet")
        said = attributes(event)
        if kind == "WORKFLOW_TASK_COMPLETED" and getattr(said, "versioning_behavior", False):
            raise unsupported(
                f"its worker was versioned (event {event.event_id}: worker versioning, deployment "
                f"{said.worker_deployment_name or said.deployment_version.deployment_name or '?'}), and which version "
                "a task is given to is not supported yet"
            )


def unsupported(what: str) -> StoreError:
    return StoreError(Code.UNSUPPORTED, f"this history cannot be imported: {what}")


def _bad(why: str) -> StoreError:
    return StoreError(Code.BAD_FILE, f"not a history that can be imported: {why}")


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 40 else f"{text[:37]}…"
