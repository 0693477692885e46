"""How the executions of a history are written: by the recorder that writes those of a worker, with times of then."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from temporalio.bridge.proto.workflow_activation import WorkflowActivation

from lockstep.log.model import Event, Kind, Status, Value
from lockstep.session.native.journal import Journal
from lockstep_temporal import commands, jobs, layout
from lockstep_temporal.decoding import decoded
from lockstep_temporal.parts import Part, Parts, parts_of
from lockstep_temporal.placing import Execution, Place
from lockstep_temporal.protos import exact, to_value
from lockstep_temporal.recorded import ExecutionTurn, Recorded
from lockstep_temporal.recording import Part as Recorded_
from lockstep_temporal.recording import Recorder
from lockstep_temporal.tasks import attributes, kind_of
from lockstep_temporal.wording import Asked, Clear, Coded, Wording, Written, codec_of, run_key

# How an execution ends without a word of its own.
_ENDED = {
    "WORKFLOW_EXECUTION_TERMINATED": ("terminated_failure_info", "the execution was terminated"),
    "WORKFLOW_EXECUTION_TIMED_OUT": ("timeout_failure_info", "the execution timed out"),
}


class Dated(Journal):
    """A journal of what happened some time ago.

    at  nanoseconds since the run began, of what is written next
    """

    at = 0

    def now(self) -> int:
        return self.at


def write(journal: Dated, execution: Execution, place: Place, converter: Any = None) -> None:
    """Writes an execution into the branch that a journal has open, or into one that leaves it. Raises StoreError."""
    named = {"namespace": execution.namespace, "workflow_id": execution.workflow_id}
    codec = codec_of(converter, **named)
    wording = _Said(Clear() if codec is None else Coded(codec, run_key(journal.secrets.vault)))
    clear = execution.events if codec is None else decoded(execution.events, converter, **named)
    made = parts_of(clear, execution.run_id)
    base = place.began or execution.events[0].event_time.ToNanoseconds()
    journal.at = max(execution.events[0].event_time.ToNanoseconds() - base, 0)
    if place.left:
        recorder, parts = _left(journal, wording, execution, made)
    else:
        recorder, parts = _begun(journal, wording, execution, made), made.parts
    recorder.keeps(execution.events)
    dated: Any = recorder.journal
    for part in parts:
        dated.at = max(part.activation.timestamp.ToNanoseconds() - base, dated.at)
        recorder.part(part)
    if made.rest or recorder.is_open:
        dated.at = max(execution.events[-1].event_time.ToNanoseconds() - base, dated.at)
        recorder.rest(made.rest)
    last = execution.events[-1]
    if kind_of(last) in _ENDED and not recorder.over:
        recorder.over_by(last)
    recorder.close()
    if recorder.journal is not journal:
        recorder.journal.close()


def _begun(journal: Dated, wording: Wording, execution: Execution, made: Parts) -> _Recorder:
    """An execution as a turn of its own."""
    recorder = _Recorder(journal, wording)
    steps = Recorded(journal.reader()).record.steps
    recorder.step = steps[-1][1].pos if steps else 0
    cause = layout.RESET if execution.reset_of else ""
    first = made.parts[0].activation if made.parts else _start(execution)
    recorder.begin(first, cause, execution.reset_of, task_queue=attributes(execution.events[0]).task_queue.name)
    return recorder


def _left(
    journal: Dated, wording: Wording, execution: Execution, made: Parts
) -> tuple[_Recorder, Sequence[Part]]:  # fmt: skip
    """A reset: a branch that has the steps which the execution shares with the one that was reset."""
    recorded = Recorded(journal.reader())
    turn = next(turn for turn in recorded.turns if turn.run_id == execution.reset_of)
    number, shared = _shared(recorded, turn, execution.events)
    at = recorded.before(number)
    told: Any = journal.fork(layout.RESET, at, latest=True, origin=f":{max(number - 1, 0)}")
    branch: Dated = told
    branch.at = journal.at
    if number == turn.first:
        return _begun(branch, wording, execution, made), made.parts
    again = [(effect.begin, recorded.record.body(effect.begin_seq)) for effect in recorded.in_flight(at)]
    queue = attributes(execution.events[0]).task_queue.name
    _Recorder(branch, wording).go_on(
        execution.run_id, turn.workflow_type, turn.arguments, layout.RESET, again, task_queue=queue
    )
    branch.flush()
    recorder: Any = _Recorder.resume(branch, wording)
    left = list(made.parts)
    while left and (not left[0].events or left[0].events[-1].event_id <= shared):
        del left[0]
    return recorder, left


def _shared(recorded: Recorded, turn: ExecutionTurn, events: Sequence[Any]) -> tuple[int, int]:
    """The number of the first step of a turn that is not all in these events, and how many events come before it."""
    shared = 0
    for number in turn.steps:
        own = recorded.steps[number].events()
        same = [exact(event) for event in own] == [exact(event) for event in events[shared : shared + len(own)]]
        if not same:
            return number, shared
        shared += len(own)
    return turn.steps.stop, shared


def _start(execution: Execution) -> Any:
    """What an execution began with whose first workflow task is not over."""
    activation = WorkflowActivation(run_id=execution.run_id)
    activation.jobs.append(jobs.started(execution.events[0], execution.run_id))
    return activation


class _Said:
    """As a history says it: what local activities were given is in none."""

    def __init__(self, wording: Wording) -> None:
        self.coded = wording.coded
        self._wording = wording

    def task(self) -> Written:
        return _SaidTask(self._wording.task())


class _SaidTask:
    def __init__(self, written: Written) -> None:
        self._written = written

    def __getattr__(self, name: str) -> Any:
        return getattr(self._written, name)

    def message(self, message: Any) -> Value:
        return {}  # what is kept of a task exactly are its events

    def asked(self, command: commands.Command) -> Asked:
        found = self._written.asked(command)
        if command.kind != commands.LOCAL_ACTIVITY:
            return found
        request: Value = {"arguments": None}
        return msgspec.structs.replace(found, request=request, matched=request)


class _Recorder(Recorder):
    """Writes parts of a history, of which the events are kept."""

    def __init__(self, journal: Journal, wording: Wording | None = None, *, effects: bool = True) -> None:
        super().__init__(journal, wording, effects=effects)
        self._as_stored: dict[int, Any] = {}
        self._kept: list[Any] = []

    def keeps(self, events: Sequence[Any]) -> None:
        """The events as the server has them."""
        self._as_stored = {event.event_id: event for event in events}

    def part(self, part: Part) -> None:
        self._kept += [self._as_stored[event.event_id] for event in part.events]
        self.task(part.activation, part.completion)

    def _exact(self, parts: Sequence[Recorded_]) -> dict[str, Value]:
        kept, self._kept = self._kept, []
        return {"events": [to_value(event) for event in kept]}

    def rest(self, events: Sequence[Any]) -> None:
        """The events after the last step."""
        told = [self._as_stored[event.event_id] for event in events]
        body: Value = {"events": [to_value(event) for event in (*self._kept, *told)]}
        journal = self.journal
        hidden = journal.hide(body)
        journal.append(
            [Event(Kind.WRITES, journal.position(), journal.now(), layout.LANE, layout.REST, "", self.step, -1, b"",
                   hidden)]
        )  # fmt: skip

    def over_by(self, event: Any) -> None:
        """The execution was ended from outside."""
        from temporalio.api.failure.v1 import Failure

        field, text = _ENDED[kind_of(event)]
        failure = Failure(message=getattr(attributes(event), "reason", "") or text)
        getattr(failure, field).SetInParent()
        body = self.journal.hide(layout.failure_form(failure))
        journal = self.journal
        journal.append(
            [Event(Kind.END, journal.position(), journal.now(), layout.LANE, Status.ERROR, "", self._turn, -1, b"",
                   body)]
        )  # fmt: skip
        self._ended(Status.ERROR)
