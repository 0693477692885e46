"""Histories become runs: any past execution is imported without its code, its server or its worker.

    name = imports(store, data)                     a history file's content
    name = take(store, events, workflow_id="order-7", namespace="prod")       events that were pulled

Steps and effects are those of a recording of the same execution: both are written by the same `Recorder`. Each step
keeps its events, all of which are the history again. Executions that continued as new, or by cron or a retry, are turns
of one run, one file each, in their order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from lockstep.errors import Code, StoreError
from lockstep.log.model import Event, Kind, Status, Value
from lockstep.log.store import Store
from lockstep.session.native.journal import Journal
from lockstep_temporal import commands, layout
from lockstep_temporal.decoding import decoded, encodings
from lockstep_temporal.parts import Part, parts_of
from lockstep_temporal.protos import to_value
from lockstep_temporal.reading import events_of
from lockstep_temporal.recorded import Recorded
from lockstep_temporal.recording import Part as Recorded_
from lockstep_temporal.recording import Recorder
from lockstep_temporal.tasks import attributes, kind_of
from lockstep_temporal.wording import Asked, Clear, Coded, Wording, Written, codec_of, run_key

# How an execution ends without a word of its own.
_ENDED = {
    "WORKFLOW_EXECUTION_TERMINATED": ("terminated_failure_info", "the execution was terminated"),
    "WORKFLOW_EXECUTION_TIMED_OUT": ("timeout_failure_info", "the execution timed out"),
}  # fmt: skip


def imports(store: Store, data: bytes, run: str = "") -> str:
    """Takes a history file into a store. `run`: what to call its run, "" for what the workflow's id gives.

    Returns the run's name. Raises StoreError: LS214 for what cannot be read, LS411 for what is not supported, LS203
    where the run has it already, or has another execution in its place.
    """
    return take(store, events_of(data), run=run)


def take(
    store: Store, events: Sequence[Any], *, run: str = "", workflow_id: str = "", namespace: str = "",
    converter: Any = None,
) -> str:  # fmt: skip
    """The same of events that are at hand, which are those of one whole history.

    workflow_id  where the history does not say it, as those of old servers
    namespace    no history says it; "default" if not given
    converter    a DataConverter: with its codec, names and match keys are of what payloads hold. What is written of
                 them stays encoded
    """
    said = attributes(events[0])
    known = said.workflow_id or workflow_id or run.removeprefix("temporal/")
    if not known:
        raise StoreError(
            Code.BAD_FILE,
            "not a history that can be imported: it does not say the workflow's id, as those of old servers: give it "
            "by --run ID",
        )
    execution = _Execution(list(events), known, namespace or "default")
    name, before = _place(store, execution, run)
    meta = layout.meta(
        known, execution.first_run_id, execution.namespace, said.workflow_type.name, layout.HISTORY,
        coded=bool(encodings(events)),
    )  # fmt: skip
    journal = Dated.open(store, name, meta)
    try:
        _write(journal, execution, before, converter)
    finally:
        journal.close()
    if journal.faults:
        raise StoreError(Code.UNWRITABLE, f"the history could not be stored whole: {journal.faults[0]}")
    return name


class Dated(Journal):
    """A journal of what happened some time ago.

    at  nanoseconds since the run began, of what is written next
    """

    at = 0

    def now(self) -> int:
        return self.at


class _Execution:
    def __init__(self, events: list[Any], workflow_id: str, namespace: str) -> None:
        said = attributes(events[0])
        self.events = events
        self.workflow_id = workflow_id
        self.namespace = namespace
        self.original = said.original_execution_run_id or said.first_execution_run_id or workflow_id
        self.reset_of = ""
        self.run_id = self.original
        for event in events:
            if kind_of(event) == "WORKFLOW_TASK_FAILED" and attributes(event).new_run_id:
                self.reset_of, self.run_id = attributes(event).base_run_id, attributes(event).new_run_id
        self.first_run_id = said.first_execution_run_id or self.original
        self.before = said.continued_execution_run_id


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

    def asked(self, command: commands.Command) -> Asked:
        found = self._written.asked(command)
        if command.kind != commands.LOCAL_ACTIVITY:
            return found
        request: Value = {"arguments": None}
        return msgspec.structs.replace(found, request=request, matched=request)


class _Recorder(Recorder):
    """Writes parts of a history, of which the events are kept."""

    def __init__(self, journal: Dated, wording: Wording, events: Sequence[Any]) -> None:
        """`events`: as the server has them."""
        super().__init__(journal, _Said(wording))
        self._as_stored = {event.event_id: event for event in events}
        self._kept: list[Any] = []

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


def _write(journal: Dated, execution: _Execution, began: int, converter: Any) -> None:
    """`began`: nanoseconds since the epoch at which the run's first execution was started, 0 for this one."""
    named = {"namespace": execution.namespace, "workflow_id": execution.workflow_id}
    codec = codec_of(converter, **named)
    wording = Clear() if codec is None else Coded(codec, run_key(journal.secrets.vault))
    clear = execution.events if codec is None else decoded(execution.events, converter, **named)
    made = parts_of(clear, execution.run_id)
    base = began or execution.events[0].event_time.ToNanoseconds()
    recorder = _Recorder(journal, wording, execution.events)
    if began:
        steps = Recorded(journal.reader()).record.steps
        recorder.step = steps[-1][1].pos if steps else 0
    journal.at = max(execution.events[0].event_time.ToNanoseconds() - base, 0)
    queue = attributes(execution.events[0]).task_queue.name
    if made.parts:
        cause = layout.RESET if execution.reset_of else ""
        recorder.begin(made.parts[0].activation, cause, execution.reset_of, task_queue=queue)
    else:
        recorder.begin(_start(execution), task_queue=queue)
    for part in made.parts:
        journal.at = max(part.activation.timestamp.ToNanoseconds() - base, journal.at)
        recorder.part(part)
    if made.rest or recorder.is_open:
        journal.at = max(execution.events[-1].event_time.ToNanoseconds() - base, journal.at)
        recorder.rest(made.rest)
    last = execution.events[-1]
    if kind_of(last) in _ENDED and not recorder.over:
        recorder.over_by(last)
    recorder.close()


def _start(execution: _Execution) -> Any:
    """What an execution began with whose first workflow task is not over."""
    from temporalio.bridge.proto.workflow_activation import WorkflowActivation

    from lockstep_temporal import jobs

    activation = WorkflowActivation(run_id=execution.run_id)
    activation.jobs.append(jobs.started(execution.events[0], execution.run_id))
    return activation


# Which run it belongs to.


def _place(store: Store, execution: _Execution, run: str) -> tuple[str, int]:
    """The run's name, and when its first execution began; 0 where it is a new one. Raises StoreError LS203, LS214."""
    number = 1
    while True:
        name = run or layout.run_name(execution.workflow_id, number)
        if not store.has_run(name):
            return name, 0
        reader = store.run(name)
        told: Any = reader.meta
        native = layout.native(told)
        ours = native.get("first_run_id") == execution.first_run_id and told.get("origin") == layout.HISTORY
        if ours:
            return name, _following(Recorded(reader), name, execution)
        if run:
            raise StoreError(Code.UNWRITABLE, f"{name} is taken by another run: call this one otherwise, by --run NAME")
        number += 1


def _following(recorded: Recorded, name: str, execution: _Execution) -> int:
    """That an execution comes right after the last one of a run; when that run's first one began."""
    known = [turn.run_id for turn in recorded.turns]
    if execution.run_id in known:
        raise StoreError(
            Code.UNWRITABLE,
            f"{name} has execution {execution.run_id} already. To take it in again: lockstep rm {name}, or --run NAME",
        )
    if execution.before != known[-1]:
        raise StoreError(
            Code.BAD_FILE,
            f"not a history that can be imported: {name} ends with execution {known[-1]}, and this one follows "
            f"{execution.before or 'none'}: import those in between first, all in one call",
        )
    first = recorded.steps[0].events() if recorded.steps else recorded.rest()
    return first[0].event_time.ToNanoseconds() if first else 1
