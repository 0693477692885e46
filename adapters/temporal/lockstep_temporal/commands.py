"""What a workflow asks for and what it is told, read out of completions and activations. Pure functions over messages.

    commands_of(completion)   -> (Command("activity", "charge", 1, {"arguments": [40]}), …)
    answers_of(activation)    -> (Answered("activity", 1, "ok", value), Answered("signal", -1, "", …), …)

A command *waits* if an answer to it comes later, under its number (`seq`), which counts for each family of commands by
itself: `FAMILY` says which one. Its request is what is of meaning to who answers it, so that the same call is found in
another run: arguments, durations, ids that the program chose. Numbers, task queues, headers and timeouts are not in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec
from temporalio.api.common.v1 import Payload
from temporalio.bridge.proto.workflow_activation import WorkflowActivation
from temporalio.bridge.proto.workflow_completion import WorkflowActivationCompletion

from lockstep.log.model import Status, Value
from lockstep_temporal.protos import plain

type Plain = Callable[[Payload], Value]

ACTIVITY, LOCAL_ACTIVITY, TIMER, CHILD = "activity", "local_activity", "timer", "child"
SIGNAL_EXTERNAL, CANCEL_EXTERNAL, NEXUS = "signal_external", "cancel_external", "nexus"
SIGNAL, UPDATE, CANCEL, START = "signal", "update", "cancel", "start"
CHILD_START, PATCH, SEED, QUERY, EVICT = "child_start", "patch", "seed", "query", "evict"

# Which counter a number is of: those of activities count remote and local ones.
FAMILY = {
    ACTIVITY: ACTIVITY, LOCAL_ACTIVITY: ACTIVITY, TIMER: TIMER, CHILD: CHILD, CHILD_START: CHILD,
    SIGNAL_EXTERNAL: SIGNAL_EXTERNAL, CANCEL_EXTERNAL: CANCEL_EXTERNAL, NEXUS: NEXUS,
}  # fmt: skip

INBOUND = frozenset({SIGNAL, UPDATE, CANCEL})  # what comes without being asked for, and is an effect
STARTED, BACKOFF = "started", "backoff"  # answers after which another one comes

# How a workflow ends.
COMPLETE, FAIL, CONTINUE_AS_NEW, CANCELLED = "complete", "fail", "continue_as_new", "cancelled"
ENDS = frozenset({COMPLETE, FAIL, CONTINUE_AS_NEW, CANCELLED})

ACCEPTED, REJECTED, UPDATED = "update_accepted", "update_rejected", "update_completed"


class Command(msgspec.Struct, frozen=True):
    """One command of a workflow task.

    kind     of those that wait: activity, local_activity, timer, child, signal_external, cancel_external, nexus.
             Others: complete, fail, continue_as_new, cancelled, patch, cancel_activity, cancel_timer, cancel_child,
             cancel_signal, cancel_nexus, update_accepted, update_rejected, update_completed, upsert_search_attributes,
             upsert_memo, answer_query
    name     activity type, "3s" of a timer, workflow type of a child, name of a signal, id of a patch
    seq      its number, or that of what it cancels; -1 for none
    request  what is of meaning in it, as plain data
    waits    whether an answer comes
    message  the WorkflowCommand
    """

    kind: str
    name: str
    seq: int
    request: dict[str, Value]
    waits: bool
    message: Any

    @property
    def variant(self) -> Any:
        """What its message says, such as a ScheduleActivity."""
        return getattr(self.message, self.message.WhichOneof("variant"))


class Answered(msgspec.Struct, frozen=True):
    """One job of an activation.

    kind     activity (which of the two kinds, says `local`), timer, child, child_start, signal_external,
             cancel_external, nexus; signal, update, cancel; start, patch, seed, query, evict
    name     signal's, update's or workflow type; id of a patch; "" of what answers a command
    seq      number of the command that it answers, -1 for none
    status   as `Status` has it; "started" and "backoff" where another answer follows; "" of what answers nothing
    value    plain: a result, a list of arguments, an id
    failure  the Failure message of an error or of what was cancelled, else None
    job      the WorkflowActivationJob
    """

    kind: str
    name: str
    seq: int
    status: str
    value: Value
    failure: Any
    job: Any
    local: bool = False

    @property
    def variant(self) -> Any:
        """What its job says, such as a ResolveActivity."""
        return getattr(self.job, self.job.WhichOneof("variant"))

    @property
    def ends(self) -> bool:
        """Whether it is the last answer to its command."""
        return self.seq >= 0 and self.status not in (STARTED, BACKOFF)


def commands_of(completion: WorkflowActivationCompletion, read: Plain = plain) -> tuple[Command, ...]:
    """The commands of a workflow task in their order; none of one that failed. `read`: what a payload holds."""
    return read_commands(completion.successful.commands, read)


def read_commands(messages: Iterable[Any], read: Plain = plain) -> tuple[Command, ...]:
    """The same of WorkflowCommand messages."""
    found = []
    for message in messages:
        variant = message.WhichOneof("variant")
        make = COMMANDS.get(variant or "")
        if make is None:
            found.append(Command(variant or "none", "", -1, {}, False, message))
            continue
        kind, name, seq, request = make(getattr(message, variant or ""), read)
        found.append(Command(kind, name, seq, request, kind in FAMILY, message))
    return tuple(found)


def answers_of(activation: WorkflowActivation, read: Plain = plain) -> tuple[Answered, ...]:
    """The jobs of an activation in their order. `read`: what a payload holds."""
    found = []
    for job in activation.jobs:
        variant = job.WhichOneof("variant")
        make = JOBS.get(variant or "")
        if make is None:
            found.append(Answered(variant or "none", "", -1, "", None, None, job))
        else:
            found.append(make(getattr(job, variant or ""), job, read))
    return tuple(found)


def is_query(activation: WorkflowActivation) -> bool:
    """Whether an activation only asks, which is not in a history."""
    return len(activation.jobs) > 0 and all(job.HasField("query_workflow") for job in activation.jobs)


def is_eviction(activation: WorkflowActivation) -> bool:
    """Whether an activation only says that the instance is let go of."""
    return any(job.HasField("remove_from_cache") for job in activation.jobs)


def started(activation: WorkflowActivation) -> Any:
    """The InitializeWorkflow of an execution's first activation; None in a later one."""
    return next((job.initialize_workflow for job in activation.jobs if job.HasField("initialize_workflow")), None)


def span(duration: Any) -> str:
    """A duration as a timer is named after: "3s", "0.5s", "36h"."""
    seconds = duration.seconds + duration.nanos / 1e9
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= 2 * size and seconds % size == 0:
            return f"{seconds / size:.0f}{unit}"
    return f"{seconds:.9f}".rstrip("0").rstrip(".") + "s"


def seconds(duration: Any) -> Value:
    """A duration in seconds: whole ones as an integer."""
    whole: int = duration.seconds
    return whole + duration.nanos / 1e9 if duration.nanos else whole


# Commands.

type _Made = tuple[str, str, int, dict[str, Value]]


def _arguments(payloads: Any, read: Plain) -> list[Value]:
    return [read(payload) for payload in payloads]


def _payload_map(payloads: Any, read: Plain) -> dict[str, Value]:
    return {key: read(payloads[key]) for key in sorted(payloads)}


def _activity(said: Any, read: Plain) -> _Made:
    return ACTIVITY, said.activity_type, said.seq, {"arguments": _arguments(said.arguments, read)}


def _local_activity(said: Any, read: Plain) -> _Made:
    return LOCAL_ACTIVITY, said.activity_type, said.seq, {"arguments": _arguments(said.arguments, read)}


def _timer(said: Any, read: Plain) -> _Made:
    lasts = said.start_to_fire_timeout
    return TIMER, span(lasts), said.seq, {"seconds": seconds(lasts)}


def _child(said: Any, read: Plain) -> _Made:
    request: dict[str, Value] = {"workflow_id": said.workflow_id, "arguments": _arguments(said.input, read)}
    return CHILD, said.workflow_type, said.seq, request


def _signal_external(said: Any, read: Plain) -> _Made:
    request: dict[str, Value] = {"arguments": _arguments(said.args, read)}
    if said.WhichOneof("target") == "child_workflow_id":
        request = {"child": said.child_workflow_id, **request}
    else:
        request = {**_execution(said.workflow_execution), **request}
    return SIGNAL_EXTERNAL, said.signal_name, said.seq, request


def _cancel_external(said: Any, read: Plain) -> _Made:
    target = said.workflow_execution
    return CANCEL_EXTERNAL, target.workflow_id, said.seq, _execution(target)


def _execution(target: Any) -> dict[str, Value]:
    named: dict[str, Value] = {"workflow_id": target.workflow_id}
    if target.run_id:
        named["run_id"] = target.run_id
    return named


def _nexus(said: Any, read: Plain) -> _Made:
    request: dict[str, Value] = {"endpoint": said.endpoint, "input": read(said.input)}
    return NEXUS, f"{said.service}.{said.operation}", said.seq, request


def _complete(said: Any, read: Plain) -> _Made:
    return COMPLETE, "", -1, {"result": read(said.result) if said.HasField("result") else None}


def _fail(said: Any, read: Plain) -> _Made:
    return FAIL, failure_type(said.failure), -1, {"failure": failure_value(said.failure, read)}


def _continue_as_new(said: Any, read: Plain) -> _Made:
    return CONTINUE_AS_NEW, said.workflow_type, -1, {"arguments": _arguments(said.arguments, read)}


def _cancelled(said: Any, read: Plain) -> _Made:
    return CANCELLED, "", -1, {}


def _patch(said: Any, read: Plain) -> _Made:
    return PATCH, said.patch_id, -1, {"deprecated": True} if said.deprecated else {}


def _cancels(kind: str) -> Callable[[Any, Plain], _Made]:
    return lambda said, read: (kind, "", said.seq, {})


def _cancel_child(said: Any, read: Plain) -> _Made:
    return "cancel_child", "", said.child_workflow_seq, {}


def _update_response(said: Any, read: Plain) -> _Made:
    response = said.WhichOneof("response")
    if response == "completed":
        return UPDATED, "", -1, {"id": said.protocol_instance_id, "result": read(said.completed)}
    if response == "rejected":
        return REJECTED, "", -1, {"id": said.protocol_instance_id, "failure": failure_value(said.rejected, read)}
    return ACCEPTED, "", -1, {"id": said.protocol_instance_id}


def _upsert_search(said: Any, read: Plain) -> _Made:
    # Search attributes are never encoded, and since 1.30 what they hold is named otherwise.
    return "upsert_search_attributes", "", -1, _payload_map(said.search_attributes.indexed_fields, plain)


def _upsert_memo(said: Any, read: Plain) -> _Made:
    return "upsert_memo", "", -1, _payload_map(said.upserted_memo.fields, read)


def _answer_query(said: Any, read: Plain) -> _Made:
    return "answer_query", "", -1, {"id": said.query_id}


COMMANDS: dict[str, Callable[[Any, Plain], _Made]] = {
    "schedule_activity": _activity,
    "schedule_local_activity": _local_activity,
    "start_timer": _timer,
    "start_child_workflow_execution": _child,
    "signal_external_workflow_execution": _signal_external,
    "request_cancel_external_workflow_execution": _cancel_external,
    "schedule_nexus_operation": _nexus,
    "complete_workflow_execution": _complete,
    "fail_workflow_execution": _fail,
    "continue_as_new_workflow_execution": _continue_as_new,
    "cancel_workflow_execution": _cancelled,
    "set_patch_marker": _patch,
    "cancel_timer": _cancels("cancel_timer"),
    "request_cancel_activity": _cancels("cancel_activity"),
    "request_cancel_local_activity": _cancels("cancel_activity"),
    "cancel_signal_workflow": _cancels("cancel_signal"),
    "request_cancel_nexus_operation": _cancels("cancel_nexus"),
    "cancel_child_workflow_execution": _cancel_child,
    "update_response": _update_response,
    "upsert_workflow_search_attributes": _upsert_search,
    "modify_workflow_properties": _upsert_memo,
    "respond_to_query": _answer_query,
}

# Jobs.


def _start(said: Any, job: Any, read: Plain) -> Answered:
    return Answered(START, said.workflow_type, -1, "", list(_arguments(said.arguments, read)), None, job)


def _resolved(kind: str, seq: int, result: Any, job: Any, read: Plain, local: bool = False) -> Answered:
    """Of an activity, a child or a Nexus operation: `result` has a oneof of how it ended."""
    how = result.WhichOneof("status")
    said: Any = getattr(result, how) if how else None
    if how == "completed":
        held = getattr(said, "result", said)
        value = read(held) if kind == NEXUS or said.HasField("result") else None
        return Answered(kind, "", seq, Status.OK, value, None, job, local)
    if how == "backoff":
        value = {"attempt": said.attempt, "seconds": seconds(said.backoff_duration)}
        return Answered(kind, "", seq, BACKOFF, value, None, job, local)
    failure = getattr(said, "failure", said)
    status = Status.CANCELLED if how == "cancelled" else Status.ERROR
    return Answered(kind, "", seq, status, None, failure, job, local)


def _resolve_activity(said: Any, job: Any, read: Plain) -> Answered:
    return _resolved(ACTIVITY, said.seq, said.result, job, read, said.is_local)


def _resolve_child(said: Any, job: Any, read: Plain) -> Answered:
    return _resolved(CHILD, said.seq, said.result, job, read)


def _resolve_nexus(said: Any, job: Any, read: Plain) -> Answered:
    return _resolved(NEXUS, said.seq, said.result, job, read)


def _resolve_child_start(said: Any, job: Any, read: Plain) -> Answered:
    how = said.WhichOneof("status")
    if how == "succeeded":
        return Answered(CHILD_START, "", said.seq, STARTED, said.succeeded.run_id, None, job)
    if how == "cancelled":
        return Answered(CHILD_START, "", said.seq, Status.CANCELLED, None, said.cancelled.failure, job)
    from temporalio.api.failure.v1 import Failure

    cause = type(said.failed).DESCRIPTOR.fields_by_name["cause"].enum_type.values_by_number
    name = cause[said.failed.cause].name if said.failed.cause in cause else str(said.failed.cause)
    failure = Failure(message=f"workflow {said.failed.workflow_id} of type {said.failed.workflow_type}: {name}")
    failure.application_failure_info.type = "WorkflowAlreadyStartedError"
    return Answered(CHILD_START, "", said.seq, Status.ERROR, None, failure, job)


def _resolve_nexus_start(said: Any, job: Any, read: Plain) -> Answered:
    if said.WhichOneof("status") == "failed":
        return Answered(NEXUS, "", said.seq, Status.ERROR, None, said.failed, job)
    return Answered(NEXUS, "", said.seq, STARTED, said.operation_token, None, job)


def _resolve_external(kind: str) -> Callable[[Any, Any, Plain], Answered]:
    def make(said: Any, job: Any, read: Plain) -> Answered:
        if said.HasField("failure"):
            return Answered(kind, "", said.seq, Status.ERROR, None, said.failure, job)
        return Answered(kind, "", said.seq, Status.OK, None, None, job)

    return make


def _fired(said: Any, job: Any, read: Plain) -> Answered:
    return Answered(TIMER, "", said.seq, Status.OK, None, None, job)


def _signal(said: Any, job: Any, read: Plain) -> Answered:
    return Answered(SIGNAL, said.signal_name, -1, "", list(_arguments(said.input, read)), None, job)


def _update(said: Any, job: Any, read: Plain) -> Answered:
    return Answered(UPDATE, said.name, -1, "", list(_arguments(said.input, read)), None, job)


def _cancel(said: Any, job: Any, read: Plain) -> Answered:
    return Answered(CANCEL, "", -1, "", [said.reason] if said.reason else [], None, job)


def _has_patch(said: Any, job: Any, read: Plain) -> Answered:
    return Answered(PATCH, said.patch_id, -1, "", None, None, job)


def _seed(said: Any, job: Any, read: Plain) -> Answered:
    return Answered(SEED, "", -1, "", said.randomness_seed, None, job)


def _query(said: Any, job: Any, read: Plain) -> Answered:
    return Answered(QUERY, said.query_type, -1, "", list(_arguments(said.arguments, read)), None, job)


def _evict(said: Any, job: Any, read: Plain) -> Answered:
    return Answered(EVICT, "", -1, "", said.message, None, job)


JOBS: dict[str, Callable[[Any, Any, Plain], Answered]] = {
    "initialize_workflow": _start,
    "fire_timer": _fired,
    "update_random_seed": _seed,
    "query_workflow": _query,
    "cancel_workflow": _cancel,
    "signal_workflow": _signal,
    "resolve_activity": _resolve_activity,
    "notify_has_patch": _has_patch,
    "resolve_child_workflow_execution_start": _resolve_child_start,
    "resolve_child_workflow_execution": _resolve_child,
    "resolve_signal_external_workflow": _resolve_external(SIGNAL_EXTERNAL),
    "resolve_request_cancel_external_workflow": _resolve_external(CANCEL_EXTERNAL),
    "do_update": _update,
    "resolve_nexus_operation_start": _resolve_nexus_start,
    "resolve_nexus_operation": _resolve_nexus,
    "remove_from_cache": _evict,
}

# Failures.


def failure_type(failure: Any) -> str:
    """What kind of failure it is, as its program calls it: an application's type, else that of Temporal's error."""
    info = failure.WhichOneof("failure_info")
    if info == "application_failure_info":
        return str(failure.application_failure_info.type)
    words = (info or "failure").removesuffix("_info").removesuffix("_failure")
    return "".join(word.capitalize() for word in words.split("_")) + "Error"


def failure_value(failure: Any, read: Plain = plain) -> Value:
    """A failure as plain data to be read and compared: {"type", "message", "details", "cause", …}. Neither stack traces
    nor who was at work are in it."""
    found: dict[str, Value] = {"type": failure_type(failure), "message": failure.message}
    info = failure.WhichOneof("failure_info")
    said = getattr(failure, info) if info else None
    if info == "application_failure_info" and said is not None:
        if said.non_retryable:
            found["non_retryable"] = True
        if said.HasField("details") and said.details.payloads:
            found["details"] = _arguments(said.details.payloads, read)
    elif info == "timeout_failure_info" and said is not None:
        found["timeout"] = said.DESCRIPTOR.fields_by_name["timeout_type"].enum_type.values_by_number[
            said.timeout_type
        ].name.removeprefix("TIMEOUT_TYPE_").lower()  # fmt: skip
    elif info == "activity_failure_info" and said is not None:
        found["activity"] = said.activity_type.name
    elif info == "child_workflow_execution_failure_info" and said is not None:
        found["child"] = said.workflow_type.name
    if failure.HasField("encoded_attributes"):
        found["encoded"] = read(failure.encoded_attributes)
    if failure.HasField("cause"):
        found["cause"] = failure_value(failure.cause, read)
    return found
