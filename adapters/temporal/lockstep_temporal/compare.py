"""Whether a workflow answers an activation as it did when it was recorded: the first command that is another one.

    found = compare(recorded, now)             # two WorkflowActivationCompletions; None where they say the same
    found.reason, found.path, found.expected, found.actual, found.beside

Everything that the workflow's code decides counts: what is called, in which order, with which arguments, timeouts and
retry policies, and what is returned. What does not: places in the code (stack traces), the SDK's internal flags, and
how a worker is tuned.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp
from temporalio.api.common.v1 import Payload
from temporalio.bridge.proto.workflow_commands import WorkflowCommand
from temporalio.bridge.proto.workflow_completion import WorkflowActivationCompletion

from lockstep.errors import Code
from lockstep.session import difference

# By the name of the message: fields that say nothing of what the workflow's code does.
_ASIDE = {
    "Failure": ("stack_trace",),
    "ScheduleActivity": ("do_not_eagerly_execute",),
    "WorkflowActivationCompletion": ("run_id", "payload_download_metrics", "payload_upload_metrics"),
    "Success": ("used_internal_flags",),
}
# A command's kind: what it is called here, and the fields that name it.
_KINDS = {
    "schedule_activity": ("activity", ("activity_type",)),
    "schedule_local_activity": ("local_activity", ("activity_type",)),
    "request_cancel_activity": ("cancel activity", ("seq",)),
    "request_cancel_local_activity": ("cancel local_activity", ("seq",)),
    "start_timer": ("timer", ("start_to_fire_timeout",)),
    "cancel_timer": ("cancel timer", ("seq",)),
    "start_child_workflow_execution": ("child", ("workflow_type",)),
    "cancel_child_workflow_execution": ("cancel child", ("child_workflow_seq",)),
    "signal_external_workflow_execution": ("signal_external", ("signal_name",)),
    "cancel_signal_workflow": ("cancel signal_external", ("seq",)),
    "request_cancel_external_workflow_execution": ("cancel_external", ("workflow_execution",)),
    "set_patch_marker": ("patch", ("patch_id",)),
    "upsert_workflow_search_attributes": ("search attributes", ()),
    "modify_workflow_properties": ("memo", ()),
    "update_response": ("update response", ()),
    "schedule_nexus_operation": ("nexus operation", ("service", "operation")),
    "request_cancel_nexus_operation": ("cancel nexus operation", ("seq",)),
    "complete_workflow_execution": ("result", ()),
    "fail_workflow_execution": ("failure", ()),
    "cancel_workflow_execution": ("cancelled", ()),
    "continue_as_new_workflow_execution": ("continue as new", ("workflow_type",)),
    "respond_to_query": ("query answer", ("query_id",)),
}
ENDS = frozenset({
    "complete_workflow_execution", "fail_workflow_execution", "cancel_workflow_execution",
    "continue_as_new_workflow_execution",
})  # fmt: skip
_ARGUMENTS = ("arguments", "args", "input")
_SINGLE = (Message, str, bytes, int, float)
_ROWS = 5  # commands shown side by side

type Volatile = Callable[[str, str, str], bool]


class Found(msgspec.Struct, frozen=True):
    """The first difference between two completions.

    index     of the command in what there is now; where nothing is there, of the last one; -1 for none
    kind, name  of the command that was recorded, or of what is there now where none was
    path      the field that differs, "" for the whole command
    expected, actual  what is recorded and what is there now, in short
    beside    the commands of both, in rows, the differing one first marked by "≠": (recorded, now)
    """

    code: Code
    reason: str
    index: int
    kind: str
    name: str
    path: str = ""
    expected: str = ""
    actual: str = ""
    beside: tuple[tuple[str, str], ...] = ()


class Drift(msgspec.Struct, frozen=True):
    """A field that differs and need not be the same: what a framework or the code draws anew each time."""

    kind: str
    name: str
    path: str


def compare(
    recorded: WorkflowActivationCompletion,
    now: WorkflowActivationCompletion,
    volatile: Volatile | None = None,
    drifts: list[Drift] | None = None,
) -> Found | None:
    """The first difference. `volatile(kind, name, path)`: whether a field may differ; those that do go to `drifts`."""
    if now.HasField("failed"):
        if not recorded.HasField("failed"):
            return _raised(recorded, now)
        return None if now.failed.failure.message == recorded.failed.failure.message else _raised(recorded, now)
    if recorded.HasField("failed"):
        told = f"the code raised {recorded.failed.failure.message!r} when this was recorded, and does not now"
        return Found(Code.END, told, -1, "workflow task", "", actual=_listed(now), expected="failed")
    before, after = recorded.successful.commands, now.successful.commands
    for index, (old, new) in enumerate(zip(before, after, strict=False)):
        if old == new:
            continue
        found = _changed(before, after, index, volatile, drifts)
        if found is not None:
            return found
    if len(before) != len(after):
        return _more_or_fewer(before, after)
    return None


def differing(recorded: WorkflowActivationCompletion, now: WorkflowActivationCompletion) -> list[Drift]:
    """Every field of commands that differs, for commands that are of the same kind and name."""
    found: list[Drift] = []
    for old, new in zip(recorded.successful.commands, now.successful.commands, strict=False):
        if old != new and subject(old) == subject(new):
            kind, name = subject(old)
            paths = difference.each(fields(_inner(old)), fields(_inner(new)))
            found += [Drift(kind, name, path) for path, _, _ in paths]
    return found


def ordinary(path: str) -> bool:
    """Whether a path lies in what a command is called with, and not in how it is to be run."""
    return path.startswith(_ARGUMENTS)


def variant(command: WorkflowCommand) -> str:
    return command.WhichOneof("variant") or ""


def subject(command: WorkflowCommand) -> tuple[str, str]:
    """What a command is called in words: ("activity", "charge"), ("timer", "3s")."""
    which = variant(command)
    kind, naming = _KINDS.get(which, (which.replace("_", " "), ()))
    inner = _inner(command)
    told = [fields(value) if isinstance(value, Message) else value for value in (getattr(inner, n) for n in naming)]
    return kind, ".".join(str(part) for part in told)


def told(command: WorkflowCommand) -> str:
    """A command in one line: `activity charge(4711, 4000)  start_to_close_timeout 5s`."""
    kind, name = subject(command)
    shown = fields(_inner(command))
    if command.HasField("complete_workflow_execution"):
        return f"result {_json(shown.get('result'))}"
    if command.HasField("fail_workflow_execution"):
        return f"failure {_failure(command.fail_workflow_execution.failure)}"
    skip = {"seq", "activity_id", "task_queue", *_KINDS.get(variant(command), ("", ()))[1]}
    arguments = next((shown.pop(each) for each in _ARGUMENTS if each in shown), None)
    call = "" if arguments is None else f"({', '.join(_json(each) for each in _list(arguments))})"
    head = f"{kind} {name}".strip() + call
    return "  ".join([
        head,
        *(
            f"{field} {value if isinstance(value, str) else _json(value)}"
            for field, value in shown.items()
            if field not in skip and value not in ({}, [])
        ),
    ])  # fmt: skip


def fields(message: Message) -> Any:
    """A message as data to compare and to show: what is set, by name; payloads as what is in them."""
    if isinstance(message, Payload):
        return _payload(message)
    if isinstance(message, Duration):
        return _duration(message)
    if isinstance(message, Timestamp):
        return message.ToJsonString()
    aside = _ASIDE.get(message.DESCRIPTOR.name, ())
    found: dict[str, Any] = {}
    for field, value in message.ListFields():
        if field.name in aside:
            continue
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            found[field.name] = {str(key): _value(field, value[key]) for key in sorted(value)}
        elif not isinstance(value, _SINGLE):
            found[field.name] = [_value(field, each) for each in value]
        else:
            found[field.name] = _value(field, value)
    if set(found) == {"payloads"}:
        return found["payloads"]
    return found


def _value(field: Any, value: Any) -> Any:
    if isinstance(value, Message):
        return fields(value)
    if field.enum_type is not None:
        named = field.enum_type.values_by_number.get(value)
        return value if named is None else named.name
    return value


def _payload(payload: Payload) -> Any:
    encoding = payload.metadata.get("encoding", b"")
    extra = {key: value.decode("utf-8", "replace") for key, value in payload.metadata.items() if key != "encoding"}
    if encoding.startswith(b"json/"):
        if encoding != b"json/plain":
            extra["encoding"] = encoding.decode("utf-8", "replace")
        try:
            value = json.loads(payload.data, parse_constant=str)  # NaN is not equal to itself
        except (ValueError, RecursionError):
            value = payload.data.decode("utf-8", "backslashreplace")
        return {"value": value, **extra} if extra else value
    if encoding == b"binary/null" and not extra:
        return None
    data = base64.b64encode(payload.data).decode()
    return {"encoding": encoding.decode("utf-8", "replace"), **extra, "data": data}


def _duration(duration: Duration) -> str:
    # To the nanosecond: two that differ have to look different.
    nanos = duration.seconds * 1_000_000_000 + duration.nanos
    whole, rest = divmod(abs(nanos), 1_000_000_000)
    return f"{'-' if nanos < 0 else ''}{whole}{f'.{rest:09d}'.rstrip('0') if rest else ''}s"


def _inner(command: WorkflowCommand) -> Message:
    which = variant(command)
    found: Message = getattr(command, which) if which else command
    return found


def _changed(
    before: Sequence[WorkflowCommand],
    after: Sequence[WorkflowCommand],
    index: int,
    volatile: Volatile | None,
    drifts: list[Drift] | None,
) -> Found | None:
    old, new = before[index], after[index]
    kind, name = subject(old)
    which = variant(old)
    beside = _beside(before, after, index)
    if variant(new) != which:
        if which in ENDS or variant(new) in ENDS:
            reason = f"the workflow {_ending(new)} here, and {_past(old)} when this was recorded"
            return Found(Code.END, reason, index, kind, name, "", told(old), told(new), beside)
        code, reason = _other(before, after, index)
        return Found(code, reason, index, kind, name, "", told(old), told(new), beside)
    if subject(new) != (kind, name) and which not in ENDS and which != "start_timer":
        code, reason = _other(before, after, index)
        return Found(code, reason, index, kind, name, "", told(old), told(new), beside)
    for path, was, is_now in difference.each(_whole(old), _whole(new)):
        if volatile is not None and volatile(kind, name, path):
            if drifts is not None:
                drifts.append(Drift(kind, name, path))
            continue
        code = Code.END if which in ENDS else Code.REQUEST
        where = next((at for at in range(index + 1, len(before)) if _same(before[at], new)), -1)
        if where >= 0 and code is Code.REQUEST:
            return Found(Code.ORDER, _out_of_order(new), index, kind, name, path, was, is_now, beside)
        return Found(code, _reason(which, path), index, kind, name, path, was, is_now, beside)
    return None


def _whole(command: WorkflowCommand) -> Any:
    """A command's fields, with what stands beside its variant (the summary that the UI shows)."""
    found = fields(_inner(command))
    if command.HasField("user_metadata"):
        found = {**found, "user_metadata": fields(command.user_metadata)}
    return found


def _same(one: WorkflowCommand, other: WorkflowCommand) -> bool:
    """But for their numbers."""
    if variant(one) != variant(other):
        return False
    left, right = _whole(one), _whole(other)
    for each in (left, right):
        each.pop("seq", None)
        each.pop("activity_id", None)
    return bool(left == right)


def _other(before: Sequence[WorkflowCommand], after: Sequence[WorkflowCommand], index: int) -> tuple[Code, str]:
    """What it means that another command stands here."""
    old, new = before[index], after[index]
    later = any(_same(each, new) for each in before[index + 1 :])
    gone = not any(_same(each, old) for each in after[index + 1 :])
    if later and gone:
        return Code.MISSING, f"{_named(old)} is missing here"
    if later:
        return Code.ORDER, _out_of_order(new)
    if not gone:
        return Code.EXTRA, f"{_named(new)} is not in the recording"
    return Code.REQUEST, f"{_named(new)} stands where {_named(old)} was recorded"


def _more_or_fewer(before: Sequence[WorkflowCommand], after: Sequence[WorkflowCommand]) -> Found:
    index = min(len(before), len(after))
    beside = _beside(before, after, index)
    if len(after) > len(before):
        new = after[index]
        kind, name = subject(new)
        if variant(new) in ENDS:
            return Found(
                Code.END, f"the workflow {_ending(new)} here, and went on when this was recorded", index, kind, name,
                "", "", told(new), beside,
            )  # fmt: skip
        return Found(Code.EXTRA, f"{_named(new)} is not in the recording", index, kind, name, "", "", told(new), beside)
    old = before[index]
    kind, name = subject(old)
    if variant(old) in ENDS:
        reason = f"the workflow goes on here, and {_past(old)} when this was recorded"
        return Found(Code.END, reason, len(after) - 1, kind, name, "", told(old), "", beside)
    return Found(Code.MISSING, f"{_named(old)} is missing here", len(after) - 1, kind, name, "", told(old), "", beside)


def _raised(recorded: WorkflowActivationCompletion, now: WorkflowActivationCompletion) -> Found:
    text = _failure(now.failed.failure)
    reason = f"the workflow's code raised {text}, which fails the workflow task"
    was = (
        f"failed: {recorded.failed.failure.message}"
        if recorded.HasField("failed")
        else _listed(recorded) or "no command"
    )
    return Found(Code.END, reason, -1, "workflow task", "", "", was, f"failed: {text}")


def _failure(failure: Any) -> str:
    """With what it came from: the SDK wraps what went wrong in a converter."""
    name = failure.application_failure_info.type
    text = f"{name}: {failure.message}" if name else str(failure.message)
    return f"{text}: {_failure(failure.cause)}" if failure.HasField("cause") else text


def _reason(which: str, path: str) -> str:
    top = path.partition("[")[0].partition(".")[0]
    if which == "complete_workflow_execution":
        return "the workflow returned something else"
    if which == "fail_workflow_execution":
        return "the workflow failed with something else"
    if which == "update_response":
        return "an update was answered otherwise"
    what = "an argument differs" if top in _ARGUMENTS else f"{top} differs"
    if which == "start_timer" and top == "start_to_fire_timeout":
        what = "it waits for another time"
    return f"{_KINDS.get(which, (which,))[0]}: {what}"


def _named(command: WorkflowCommand) -> str:
    kind, name = subject(command)
    return f"{kind} {name}".strip()


def _out_of_order(command: WorkflowCommand) -> str:
    return f"{_named(command)} was recorded later: the commands are in another order"


def _ending(command: WorkflowCommand) -> str:
    return _VERBS.get(variant(command), ("goes on", ""))[0]


def _past(command: WorkflowCommand) -> str:
    return _VERBS.get(variant(command), ("", "went on"))[1]


_VERBS = {
    "complete_workflow_execution": ("returns", "returned"),
    "fail_workflow_execution": ("fails", "failed"),
    "cancel_workflow_execution": ("ends as cancelled", "ended as cancelled"),
    "continue_as_new_workflow_execution": ("continues as new", "continued as new"),
}


def _beside(
    before: Sequence[WorkflowCommand], after: Sequence[WorkflowCommand], index: int
) -> tuple[tuple[str, str], ...]:
    """The commands from the differing one on, in rows."""
    rows = max(len(before), len(after))
    return tuple(
        (told(before[at]) if at < len(before) else "", told(after[at]) if at < len(after) else "")
        for at in range(index, min(rows, index + _ROWS))
    )


def _listed(completion: WorkflowActivationCompletion) -> str:
    return "; ".join(_named(command) for command in completion.successful.commands)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=repr)


def _list(value: Any) -> Iterable[Any]:
    return value if isinstance(value, list) else [value]
