"""Edits of a workflow's run: other answers in the place of recorded ones, in the shape that `show --json` prints.

    activity, child       what it returned; {"$": "raise", …} or an exception: what it failed with
    signal, update        the list of arguments; null: it does not come
    cancel                null: it does not come
    timer                 the seconds after which it fires
    external signal, …    {"$": "raise", …}: what went wrong

Answers reach the workflow through the target's data converter. An edited failure is what the activity's own code would
have raised; what is around it (which activity, that it is not tried again) is as the server tells it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import msgspec
from temporalio.api.common.v1 import Payload
from temporalio.api.enums.v1 import RetryState, TimeoutType
from temporalio.api.failure.v1 import Failure
from temporalio.bridge.proto.activity_result import ActivityResolution
from temporalio.bridge.proto.child_workflow import ChildWorkflowResult
from temporalio.bridge.proto.workflow_activation import WorkflowActivationJob

from lockstep.debugger import edits as editing
from lockstep.debugger import outcomes, raised
from lockstep.debugger import plan as plans
from lockstep.debugger.edits import Edit
from lockstep.errors import AddressError, Code, EditError
from lockstep.log.model import Status, Value
from lockstep.log.timeline import Effect, Place, Timeline
from lockstep.session.call import Piece
from lockstep.session.tail import Edit as Answered
from lockstep_temporal import commands, failures, layout
from lockstep_temporal.asks import Ask, child_completed, completed
from lockstep_temporal.protos import of_value, plain
from lockstep_temporal.world import World

_OWN = frozenset({commands.TIMER, *commands.INBOUND})  # what no call of the workflow is answered with


class Edits(msgspec.Struct, frozen=True):
    """What is edited.

    answers   of calls, as the tail of a fork gives them
    own       other edits by the position where their effect began: seconds of a timer, arguments (None: it never comes)
    objects   answers that were given as objects, by the position of the call: failures of these keep what they hold
    first     the position of the first edited answer, None where nothing is edited
    """

    answers: tuple[Answered, ...] = ()
    own: Mapping[int, Any] = {}
    objects: Mapping[int, BaseException] = {}
    told: Mapping[str, Value] = {}
    addresses: Mapping[int, str] = {}
    first: int | None = None


def read(
    place: Place, edits: Sequence[Edit], until: int, plainly: Callable[[Value], Value] | None = None
) -> Edits:  # fmt: skip
    """The edits of a fork that leaves at `place`, up to position `until`. `plainly`: makes plain values of what a codec
    has encoded. Raises AddressError LS206, EditError LS211 to LS213."""
    timeline = _Plain(place.timeline, plainly)
    by = plans.grouped(place, edits, _find)
    answers: list[Answered] = []
    own: dict[int, Any] = {}
    objects: dict[int, BaseException] = {}
    value: Any
    for pos, (effect, given) in by.items():
        plans.in_time(place, given[0], effect.end.pos if effect.end is not None else None, until)
        if effect.kind in _OWN:
            own[pos] = _own(timeline, effect, given)
            continue
        value = given[-1].value
        if isinstance(value, BaseException):
            objects[pos] = value
        changes = [(edit.path, inert(edit.value)) for edit in given]
        told = {editing.told(edit): inert(edit.value) for edit in given}
        made = editing.made(cast(Timeline, timeline), effect, changes, given[0].address)
        answers.append(Answered(pos, told, made))
    ends = [effect.end.pos for effect, _ in by.values() if effect.end is not None]
    return Edits(
        tuple(answers), own, objects, {editing.told(edit): inert(edit.value) for edit in edits},
        {pos: given[0].address for pos, (_, given) in by.items()}, min(ends, default=None),
    )  # fmt: skip


def inert(value: Any) -> Value:
    """An edit's value as data. Dataclasses and the like are as JSON has them: so they go through the converter."""
    if isinstance(value, BaseException):
        return raised.of(value)
    if type(value) is list:
        return [inert(item) for item in value]
    if type(value) is dict and all(type(name) is str for name in value):
        return {name: inert(item) for name, item in value.items()}
    made: Value = value if isinstance(value, bool | int | float | str | bytes) or value is None else _plain(value)
    told: Value = outcomes.to_json(made)
    return told


def _plain(value: Any) -> Value:
    from temporalio.converter import default

    try:
        (payload,) = default().payload_converter.to_payloads([value])
    except Exception as error:
        raise EditError(Code.UNEDITABLE, f"an edit's value cannot be made a payload: {error}") from None
    return plain(payload)


def _find(timeline: Timeline, address: str) -> Effect:
    step, _, number = address.partition(".")
    if number:
        return timeline.effect(int(step), int(number))
    found = timeline.step(int(step))
    if len(found.effects) == 1:
        return found.effects[0]
    last = len(found.effects)
    more = f"Its answers are {step}.1 to {step}.{last}" if last else "Nothing was answered in it"
    raise AddressError(Code.NO_ADDRESS, f"step {step} has not one answer that could be edited. {more}")


def _own(timeline: Any, effect: Effect, edits: Sequence[Edit]) -> Any:
    """What becomes of a timer, or of what came from outside."""
    address = edits[0].address
    if effect.kind == commands.TIMER:
        return _seconds(edits[-1], address)
    if edits[-1].value is None and not edits[-1].path:
        return None
    if effect.kind == commands.CANCEL:
        raise EditError(Code.UNEDITABLE, f"{address}: a request to cancel is left out with null, and has no answer")
    changes = [(edit.path, inert(edit.value)) for edit in edits]
    (piece,) = editing.made(timeline, effect, changes, address)
    if piece.status is not Status.OK or not isinstance(piece.value, list):
        raise EditError(Code.UNEDITABLE, f"{address}: an edit of a {effect.kind} is the list of its arguments, or null")
    return piece.value


def _seconds(edit: Edit, address: str) -> float:
    value = edit.value
    if edit.path or isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e10:
        raise EditError(
            Code.UNEDITABLE, f"{address}: an edit of a timer is the number of seconds after which it fires, as in 10"
        )
    return float(value)


class _Plain:
    """A timeline whose values are plain."""

    def __init__(self, timeline: Timeline, plainly: Callable[[Value], Value] | None) -> None:
        self._timeline = timeline
        self._plainly = plainly

    def outcome(self, effect: Effect) -> Value:
        found = self._timeline.outcome(effect)
        return self._plainly(found) if self._plainly is not None and effect.status is Status.OK else found

    def __getattr__(self, name: str) -> Any:
        return getattr(self._timeline, name)


# What the workflow is told.


class Converter:
    """Makes what a workflow is told of edited answers. `base`: the target's data converter."""

    def __init__(self, base: Any) -> None:
        self._payloads = base.payload_converter
        self._failures = base.failure_converter

    def result(self, world: World, ask: Ask, piece: Piece, recorded: Any, error: BaseException | None) -> Any:
        """An edited answer, in the form that `World.settle` takes. `recorded`: the answer in whose place it stands;
        `error`: the exception that was given, of which nothing is lost."""
        if piece.status is Status.OK:
            return self._good(ask, piece.value, recorded)
        failure = self._failure(piece.value, error)
        if ask.sort == "activity":
            return self._activity(world, ask, failure)
        if ask.sort == "child":
            result = ChildWorkflowResult()
            if failure.HasField("child_workflow_execution_failure_info"):
                result.failed.failure.CopyFrom(failure)
                return result
            state = RetryState.RETRY_STATE_NON_RETRYABLE_FAILURE
            made = world.child_failure(ask.seq, "Child Workflow execution failed", failure, state)
            result.failed.failure.CopyFrom(made)
            return result
        return failure

    def arguments(self, job: WorkflowActivationJob, values: Sequence[Value]) -> WorkflowActivationJob:
        """A signal or an update with other arguments."""
        made = WorkflowActivationJob()
        made.CopyFrom(job)
        inbound = made.signal_workflow if made.HasField("signal_workflow") else made.do_update
        before = [*(job.signal_workflow if job.HasField("signal_workflow") else job.do_update).input]
        del inbound.input[:]
        for at, value in enumerate(values):
            like = before[at] if at < len(before) else None
            inbound.input.append(self.payload(outcomes.from_json(value), like))
        return made

    def payload(self, value: Value, like: Payload | None = None) -> Payload:
        """A value as a payload. `like`: the one in whose place it stands: an equal value leaves it as it is, and JSON
        of a kind stays of that kind."""
        if like is not None and repr(plain(like)) == repr(value):
            return like
        if (
            like is not None
            and like.metadata.get("encoding", b"").startswith(b"json/")
            and not isinstance(value, bytes)
        ):
            import json

            made = Payload(data=json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode())
            for key, text in like.metadata.items():
                made.metadata[key] = text
            return made
        (found,) = self._payloads.to_payloads([value])
        payload: Payload = found
        return payload

    def _good(self, ask: Ask, value: Value, recorded: Any) -> Any:
        if ask.sort not in ("activity", "child"):
            return None
        like = recorded.completed.result if recorded is not None and recorded.HasField("completed") else None
        if like is not None and not recorded.completed.HasField("result"):
            like = None
        payload = None if value is None and like is None else self.payload(value, like)
        return completed(payload) if ask.sort == "activity" else child_completed(payload)

    def _activity(self, world: World, ask: Ask, failure: Failure) -> ActivityResolution:
        result = ActivityResolution()
        state = RetryState.RETRY_STATE_NON_RETRYABLE_FAILURE
        at = world.events_of(ask.key)
        if failure.HasField("activity_failure_info"):
            made = failure
        elif failure.HasField("canceled_failure_info"):
            local = ask.is_local
            made = failures.local_cancelled(ask.command) if local else failures.activity_cancelled(ask.command, at)
            result.cancelled.failure.CopyFrom(made)
            return result
        elif failure.HasField("timeout_failure_info"):
            local = ask.is_local
            made = (
                failures.local_timed_out(ask.command, failure)
                if local
                else failures.activity_timed_out(ask.command, failure, RetryState.RETRY_STATE_TIMEOUT, at)
            )
        else:
            made = failure if ask.is_local else failures.activity_failed(ask.command, failure, state, at)
        result.failed.failure.CopyFrom(made)
        return result

    def _failure(self, form: Value, error: BaseException | None) -> Failure:
        """The failure of an error that is raised."""
        made = Failure()
        if error is not None:
            self._failures.to_failure(error, self._payloads, made)
            made.stack_trace = ""
            return made
        kept = layout.failure_in(form)
        if kept is not None and isinstance(form, dict):
            found = of_value(kept, Failure)
            return _reworded(found, form)
        return _built(form)


def _built(form: Any) -> Failure:
    """Of an error as core has it: {"module", "name", "args", …}."""
    module, name = str(form.get("module") or ""), str(form.get("name") or "Exception")
    args = form.get("args")
    message = str(args[0]) if isinstance(args, list) and args and isinstance(args[0], str) else ""
    made = Failure(message=message)
    if module == "temporalio.exceptions":
        if name == "TimeoutError":
            made.timeout_failure_info.timeout_type = TimeoutType.TIMEOUT_TYPE_START_TO_CLOSE
            return made
        if name == "CancelledError":
            made.canceled_failure_info.SetInParent()
            return made
        kind, _, rest = message.partition(": ")
        if name == "ApplicationError" and rest and kind.isidentifier():
            made.message = rest
            made.application_failure_info.type = kind
            return made
    made.application_failure_info.type = name.rpartition(".")[2]
    return made


def _reworded(failure: Failure, form: Mapping[str, Any]) -> Failure:
    """A recorded failure of which an edit has changed the message: of its innermost error, where that is what a caller
    sees of it."""
    args = form.get("args")
    now = str(args[0]) if isinstance(args, list) and args else ""
    info = failure.application_failure_info
    before = f"{info.type}: {failure.message}" if info.type else failure.message
    if now and now != before:
        failure.message = now.removeprefix(f"{info.type}: ") if info.type else now
    return failure
