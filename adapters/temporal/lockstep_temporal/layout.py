"""How a workflow's execution stands in the log: names, bodies and keys, for all who write it and all who read it.

A run is a chain of executions (workflow id and first run id), a turn one execution, a step one workflow task with jobs.
In one append: the answers and what else came with the task, the STEP, the commands that wait, the end of the turn.

    turn     BEGIN what="turn", name = workflow type; `turn_request`. END: a result, {"continue_as_new": …}, a failure
    command  BEGIN what = kind, name; {"request", "seq", …}. END ok with the plain value, error with `failure_form`
    inbound  signal, update, cancel: BEGIN and END at once, the END with the list of arguments
    step     STEP what = `step_kind`, name = `step_name`, of = the step before, key = `step_key`; `step_record`

The key of a step says which commands the workflow task gave, so that a recording and a history of one execution have
the same. A history does not say all: so neither numbers, headers, timeouts, retry policies, task queues nor metadata
are in it, nor local activities (a marker says nothing of when they were begun), rejected updates, answered queries,
and what was begun and cancelled in one task, of which the server is never told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any

from lockstep.log import canonical
from lockstep.log.model import Status, Value
from lockstep_temporal import commands as c
from lockstep_temporal.commands import Answered, Command
from lockstep_temporal.protos import to_value

LANE = "main"
TURN, ATTEMPT, REST = "turn", "attempt", "rest"
TASK = "task"  # a step that no job of the table below has led to

FAILURE = "failure"  # in a failure's form: the message

# Where a run comes from.
WORKER, HISTORY, INTERCEPTOR = "worker", "history", "interceptor"

# Why a turn began; the last three: a branch goes on with one that its parent has begun.
STARTED, CONTINUED, CRON, RETRY = "start", "continue_as_new", "cron", "retry"
RESET, RETRIED, FORK = "reset", "retried", "fork"

_STEP_KINDS = {
    c.START: "start", c.ACTIVITY: "activity", c.LOCAL_ACTIVITY: "local_activity", c.TIMER: "timer",
    c.SIGNAL: "signal", c.UPDATE: "update", c.CANCEL: "cancel", c.CHILD: "child", c.CHILD_START: "child",
    c.SIGNAL_EXTERNAL: "signal_external", c.CANCEL_EXTERNAL: "cancel_external", c.NEXUS: "nexus",
}  # fmt: skip
_ASIDE = frozenset({c.PATCH, c.SEED, c.QUERY, c.EVICT})  # jobs that no step is named after while there are others
_MOST_NAMES = 5


def run_name(workflow_id: str, number: int = 1) -> str:
    """What a run is called; from 2 on where earlier executions of the same workflow id have the name. An id that is too
    long for a name is cut, and told from others by a digest."""
    said = "".join(map(_printable, workflow_id.replace("%", "%25")))
    if len(said) > _LONGEST:
        said = f"{said[:_LONGEST]}~{blake2b(workflow_id.encode(), digest_size=8).hexdigest()}"
    return f"temporal/{said}" if number == 1 else f"temporal/{said}-{number}"


def _printable(character: str) -> str:
    if character.isprintable() and character not in "@:/ ":
        return character
    return "".join(f"%{byte:02X}" for byte in character.encode("utf-8", "surrogatepass"))


_LONGEST = 150  # characters; a workflow id may have 1,000


def meta(
    workflow_id: str, first_run_id: str, namespace: str, workflow_type: str, origin: str, *, coded: bool = False
) -> dict[str, Value]:
    """The meta of a new run. `coded`: payloads in it are as the user's codec has them."""
    from temporalio.service import __version__ as temporalio

    native: dict[str, Value] = {
        "workflow_id": workflow_id, "first_run_id": first_run_id, "namespace": namespace,
        "workflow_type": workflow_type,
    }  # fmt: skip
    made: dict[str, Value] = {
        "adapter": "temporal", "steps": "checkpoints", "native": native, "origin": origin,
        "versions": {"temporalio": temporalio},
    }  # fmt: skip
    if coded:
        made["coded"] = True
    return made


def native(meta: Value) -> Mapping[str, Any]:
    """What a run's meta says of its workflow; {} of any other run."""
    if isinstance(meta, Mapping) and meta.get("adapter") == "temporal":
        found = meta.get("native")
        return found if isinstance(found, Mapping) else {}
    return {}


# Turns.


def turn_request(
    run_id: str, arguments: list[Value], cause: str, continued_from: str = "", task_queue: str = ""
) -> dict[str, Value]:  # fmt: skip
    """What a turn is begun with. `task_queue`: the workflow's, which no activation says: calls go there where the code
    names no other."""
    made: dict[str, Value] = {"run_id": run_id, "arguments": arguments, "cause": cause}
    if continued_from:
        made["continued_from"] = continued_from
    if task_queue:
        made["task_queue"] = task_queue
    return made


def cause_of(init: Any) -> str:
    """Why an execution began, by its InitializeWorkflow."""
    initiator = {1: CONTINUED, 2: RETRY, 3: CRON}.get(init.continued_initiator)  # enum ContinueAsNewInitiator
    return initiator or (CONTINUED if init.continued_from_execution_run_id else STARTED)


def ending(
    commands: Sequence[Command], workflow_type: str, write: Callable[[Any], Value] | None = None
) -> tuple[str, Value] | None:
    """How a workflow task ended the execution: status and body of the turn's END; None where it goes on.
    `workflow_type`: that of the execution; `write`: as in `failure_form`."""
    for command in commands:
        if command.kind == c.COMPLETE:
            return Status.OK, command.request["result"]
        if command.kind == c.CONTINUE_AS_NEW:
            asked: dict[str, Value] = {"workflow_type": command.name or workflow_type, **command.request}
            return Status.OK, {"continue_as_new": asked}
        if command.kind == c.FAIL:
            return Status.ERROR, failure_form(command.variant.failure, write)
        if command.kind == c.CANCELLED:
            return Status.CANCELLED, None
    return None


# Effects.


def begun(command: Command, request: Value, declared: str = "") -> dict[str, Value]:
    """The body of a command's BEGIN. `request`: as it is stored; `declared`: the class of the effect."""
    body: dict[str, Value] = {"request": request, "seq": command.seq}
    if command.kind == c.LOCAL_ACTIVITY:
        body["local"] = True
    if c.FAMILY[command.kind] == c.ACTIVITY:
        said = command.variant
        if said.activity_id and said.activity_id != str(command.seq):
            body["id"] = said.activity_id
    how = cancellation(command)
    if how:
        body["cancellation"] = how
    if declared:
        body["class"] = declared
    return body


def cancellation(command: Command) -> str:
    """How the end of an activity or a child that is cancelled is waited for: "wait", or not at all, where it is told so
    ("try") or not even that ("abandon"); "" of all else."""
    if c.FAMILY.get(command.kind) == c.ACTIVITY:
        how = _ACTIVITIES
    elif command.kind == c.CHILD:
        how = _CHILDREN
    else:
        return ""
    return how.get(command.variant.cancellation_type, "wait")


_ACTIVITIES = {0: "try", 2: "abandon"}  # enum ActivityCancellationType
_CHILDREN = {0: "abandon", 1: "try"}  # enum ChildWorkflowCancellationType


def is_abandoned(command: Command) -> bool:
    """Whether nobody hears of it where what a command asks for is cancelled."""
    return cancellation(command) == "abandon"


def outcome(answer: Answered) -> Value:
    """The body of an END, by the job that brought it."""
    return failure_form(answer.failure) if answer.failure is not None else answer.value


def failure_form(failure: Any, write: Callable[[Any], Value] | None = None) -> Value:
    """A failure as core has exceptions (`lockstep.session.exceptions`), so that it is shown as one; "failure" is the
    message itself, exactly. `write`: makes data of a message, `to_value` if not given."""
    form = _form(failure)
    form[FAILURE] = (write or to_value)(failure)
    return form


def _form(failure: Any) -> dict[str, Value]:
    info = failure.WhichOneof("failure_info")
    name, text = _ERRORS.get(info or "", "FailureError"), failure.message
    if info == "application_failure_info" and failure.application_failure_info.type:
        text = f"{failure.application_failure_info.type}: {text}"
    form: dict[str, Value] = {"module": "temporalio.exceptions", "name": name, "args": [text]}
    if failure.HasField("cause"):
        form["cause"] = {"exception": _form(failure.cause)}
    return form


_ERRORS = {
    "application_failure_info": "ApplicationError", "timeout_failure_info": "TimeoutError",
    "canceled_failure_info": "CancelledError", "terminated_failure_info": "TerminatedError",
    "server_failure_info": "ServerError", "activity_failure_info": "ActivityError",
    "child_workflow_execution_failure_info": "ChildWorkflowError",
    "nexus_operation_execution_failure_info": "NexusOperationError",
}  # fmt: skip


def failure_in(form: Value) -> Value:
    """The message, as data, in what `failure_form` made; None where there is none, as in an edited answer."""
    return form.get(FAILURE) if isinstance(form, dict) else None


# Steps.


def step_kind(jobs: Iterable[Answered]) -> str:
    """`what` of a step with these jobs."""
    counted = [job for job in jobs if job.kind not in _ASIDE]
    if not counted:
        return TASK
    first = counted[0]
    kind = c.LOCAL_ACTIVITY if first.kind == c.ACTIVITY and first.local else first.kind
    return _STEP_KINDS.get(kind, TASK)


def step_name(names: Iterable[str]) -> str:
    """`name` of a step, by the names of what was resolved in it or came, in their order."""
    told = [name for name in names if name]
    more = len(told) - _MOST_NAMES
    return ", ".join(told[:_MOST_NAMES]) + (f", +{more}" if more > 0 else "")


def step_record(
    run_id: str, lengths: Sequence[int], jobs: Sequence[str], commands: Sequence[str], at: Any = None, **exact: Value
) -> dict[str, Value]:
    """The body of a STEP. `lengths`: of the history, at each activation; `at`: the workflow's clock at the last one, as
    a Timestamp; `exact`: tasks or events, and notes."""
    moment = f"{at.seconds:012d}.{at.nanos:09d}" if at is not None else ""
    clock: dict[str, Value] = {"clock": at.ToNanoseconds()} if at is not None else {}
    return {
        "channels": {}, "whole": True, "id": moment, **clock, "run_id": run_id,
        "history_length": lengths[-1] if lengths else 0, "lengths": list(lengths), "jobs": list(jobs),
        "commands": list(commands), **exact,
    }  # fmt: skip


def job_text(job: Answered, name: str) -> str:
    """A job in a word or two. `name`: that of what it answers."""
    kind = c.LOCAL_ACTIVITY if job.local else c.CHILD if job.kind == c.CHILD_START else job.kind
    words = {c.STARTED: "started", Status.OK: "fired" if kind == c.TIMER else "done"}
    told = [kind.replace("_", " "), name or job.name]
    if job.seq >= 0:
        told.append(words.get(job.status, job.status))
    return " ".join(filter(None, told))


def command_text(command: Command, name: str = "") -> str:
    """A command in a word or two. `name`: that of what it cancels."""
    return " ".join(filter(None, (command.kind.replace("_", " "), name or command.name)))


def step_key(normal: Value) -> bytes:
    """The key of a step, by `normal_commands` with its secrets hidden."""
    return canonical.digest(normal)


def normal_commands(
    commands: Sequence[Command], names: Mapping[tuple[str, int], str], workflow_type: str
) -> list[Value]:
    """The commands of a step as a history has them too. `names`: by family and number, of what it cancels, but for
    local activities and what is abandoned. `workflow_type`: of the execution, which need not be named to go on."""
    never = unsent(commands)
    found: list[Value] = []
    for command in commands:
        family = CANCELS.get(command.kind)
        if family is not None:
            name = names.get((family, command.seq))
            if name is not None:
                found.append([command.kind, name])
        elif command.waits:
            if command.kind != c.LOCAL_ACTIVITY and (c.FAMILY[command.kind], command.seq) not in never:
                found.append([command.kind, command.name, command.request])
        elif command.kind == c.CONTINUE_AS_NEW:
            found.append([command.kind, command.name or workflow_type, command.request])
        elif command.kind in (c.ACCEPTED, c.UPDATED):
            found.append([command.kind, command.request.get("result")])
        elif command.kind not in _UNTOLD:
            found.append([command.kind, command.name, command.request])
    return found


def unsent(commands: Sequence[Command]) -> frozenset[tuple[str, int]]:
    """Family and number of what was begun and cancelled in one task: the server is not told of it, and it is no
    effect. Of a local activity it is told."""
    asked = {(c.FAMILY[each.kind], each.seq) for each in commands if each.waits and each.kind != c.LOCAL_ACTIVITY}
    return frozenset(asked & {(CANCELS[each.kind], each.seq) for each in commands if each.kind in CANCELS})


# Of which family the number is that a command cancels.
CANCELS = {
    "cancel_timer": c.TIMER, "cancel_activity": c.ACTIVITY, "cancel_child": c.CHILD,
    "cancel_signal": c.SIGNAL_EXTERNAL, "cancel_nexus": c.NEXUS,
}  # fmt: skip
_UNTOLD = frozenset({c.REJECTED, "answer_query"})
