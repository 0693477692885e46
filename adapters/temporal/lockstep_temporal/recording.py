"""Writes the workflow tasks of one execution into a branch of its run, as `lockstep_temporal.layout` has them.

    recorder = Recorder.resume(journal, wording)          or, of a new run or branch: Recorder(journal, wording)
    recorder.begin(first)                                 a turn, by the activation that initializes its execution
    recorder.task(activation, completion)                 durable when it returns; the position of the STEP, or 0

A worker's recording gives it each activation with its completion, and all that follows from them is written here. A
fork's tail (`effects=False`) has its calls answered by `Forking`, which writes their beginnings and ends itself: begin
them in the order of the commands once `task` has returned, and end them when `ends` says so, which is in their place
among what else the task tells.

One thread at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import msgspec
from msgspec.structs import replace
from temporalio.bridge.proto.workflow_activation import WorkflowActivation
from temporalio.bridge.proto.workflow_completion import WorkflowActivationCompletion

from lockstep.log.model import Event, Kind, Status, Value
from lockstep.log.steps import TURN, rest
from lockstep.session.native.journal import Journal
from lockstep_temporal import commands, layout, opened
from lockstep_temporal.batch import Batch
from lockstep_temporal.commands import FAMILY, Answered, Command
from lockstep_temporal.opened import At, Open, backoff_of, waiting
from lockstep_temporal.wording import Asked, Clear, Wording

type Ends = Callable[[At, str, Value], None]  # a command's answer: which one's, its status, and what is stored of it
type Copies = Iterable[tuple[Event, Value]]

_MOST_NOTES = 10


class Part(msgspec.Struct, frozen=True):
    """An activation with its completion, written down: a step, or with local activities a part of one. `targets`: names
    of what its commands cancel."""

    length: int
    timestamp: Any
    jobs: tuple[Answered, ...]
    job_texts: list[str]
    names: list[str]
    commands: tuple[Command, ...]
    command_texts: list[str]
    targets: dict[At, str]
    exact: Value


class State(msgspec.Struct):
    """What is on: commands that wait, the parts of the step that is open, and commands of these that begin with it."""

    open: dict[At, Open]
    parts: list[Part]
    due: dict[At, tuple[Command, Asked, Open]] = {}

    def copy(self) -> State:
        return State(dict(self.open), list(self.parts), dict(self.due))


class Recorder:
    """One execution, being written.

    journal   the branch
    run_id    of the execution, "" before it began; `workflow_type`: likewise; `continued_from`: the one before it
    lengths   of the history, at each activation of it that is written: what it is known by
    step      position of the last STEP of the branch, 0 for none
    loose     whether the log has the beginning of a step that was cut off in the middle of its workflow task
    """

    def __init__(self, journal: Journal, wording: Wording | None = None, *, effects: bool = True) -> None:
        self.journal = journal
        self.wording: Wording = wording if wording is not None else Clear()
        self.run_id = ""
        self.workflow_type = ""
        self.continued_from = ""
        self.lengths: list[int] = []
        self.step = 0
        self.loose = False
        self.ends: Ends | None = None
        self._effects = effects
        self._state = State({}, [])
        self._turn = 0
        self._began_here = False
        self._notes: list[Value] = []  # what is no step: told with the next one
        self._rejected: list[Value] = []
        self._faults = 0

    @property
    def is_open(self) -> bool:
        """Whether a step is open: its workflow task goes on with another activation."""
        return bool(self._state.parts)

    @property
    def over(self) -> bool:
        """Whether the execution has ended, or has not begun."""
        return not self._turn

    def begin(
        self, activation: WorkflowActivation, cause: str = "", continued_from: str = "", task_queue: str = ""
    ) -> None:
        """A turn begins, or goes on in this branch, by the activation that initializes the workflow. `cause`: where it
        is another one than that says; `task_queue`: the workflow's. It is stored with what comes next."""
        init = commands.started(activation)
        batch = Batch(self.journal, self.wording.task())
        start = next(job for job in batch.written.answers(activation) if job.kind == commands.START)
        before = continued_from or init.continued_from_execution_run_id
        request = layout.turn_request(
            activation.run_id, start.value if isinstance(start.value, list) else [], cause or layout.cause_of(init),
            before, task_queue,
        )  # fmt: skip
        self.continued_from = before
        self._begin(batch, activation.run_id, init.workflow_type, request)

    def _begin(self, batch: Batch, run_id: str, workflow_type: str, request: Value) -> None:
        self._turn, self._began_here = batch.add(Kind.BEGIN, TURN, workflow_type, body={"request": request}), True
        batch.tell()
        self._state.parts, self._state.due = [], {}
        self.workflow_type = workflow_type
        if run_id != self.run_id:
            self.run_id = run_id
            self.lengths = []
            self._state.open = {}

    def task(self, activation: WorkflowActivation, completion: WorkflowActivationCompletion) -> int:
        """A workflow task, or a part of one: neither a query nor an eviction. Returns the position of its STEP, 0 where
        that stays open. Raises StoreError; then nothing of it is written."""
        if completion.HasField("failed"):
            self.note(activation, completion)
            return 0
        if _only_rejects(activation, completion):
            names = [self.journal.hide(job.do_update.name) for job in activation.jobs]
            self._rejected = [*self._rejected, *names][-_MOST_NOTES:]
            return 0
        batch = Batch(self.journal, self.wording.task())
        state = self._state.copy()
        parent = self.step
        if state.parts and state.parts[-1].length != activation.history_length and not opened.runs_locally(state.open):
            parent = self._close(batch, state, parent)  # what was to come within its workflow task has not
        part = self._part(batch, state, activation, completion)
        state.parts.append(part)
        end = batch.written.ending(completion, part.commands, self.workflow_type)
        closed = end is not None or not opened.goes_on(state.open, part.commands)
        if closed:
            self._close(batch, state, parent)
        if end is not None:
            batch.add(Kind.END, end[0], of=self._turn, body=end[1])
        self._store(batch)
        self._state = state
        self.lengths.append(activation.history_length)
        if end is not None:
            self._ended(end[0])
        return self.step if closed else 0

    def _store(self, batch: Batch) -> None:
        steps = [event.pos for event in batch.append(self._faults) if event.kind is Kind.STEP]
        self._faults = 0
        if steps:
            self.step = steps[-1]
            self._notes, self._rejected = [], []

    def end(self, status: str, body: Value) -> None:
        """The execution that goes on in this branch was over: it ends as its parent says. Raises StoreError."""
        batch = Batch(self.journal, self.wording.task())
        batch.add(Kind.END, status, of=self._turn, body=body)
        self._store(batch)
        self._ended(status)

    def note(self, activation: WorkflowActivation, completion: WorkflowActivationCompletion) -> None:
        """A workflow task that failed, which the server will give again: the step that follows tells of it."""
        written = self.wording.task()
        form: Any = layout.failure_form(completion.failed.failure, written.message)
        written.finish()
        last: Any = self._notes[-1] if self._notes else None
        if last is not None and last["failure"]["args"] == form["args"]:
            self._notes[-1] = {**last, "times": int(str(last["times"])) + 1}
        else:
            told: Value = {"history_length": activation.history_length, "failure": form, "times": 1}
            self._notes = [*self._notes[1 - _MOST_NOTES :], told]

    def fault(self) -> None:
        """Something of this execution could not be recorded: with the next task its run is called incomplete."""
        self._faults += 1

    def close(self) -> None:
        """Lets go of the branch. What is recorded stays."""
        self.journal.give_up_turn()

    def activity(self, activity_id: str) -> Open | None:
        """The activity of this id that waits."""
        for (family, seq), found in self._state.open.items():
            if family == commands.ACTIVITY and activity_id == (found.id or str(seq)):
                return found
        return None

    def go_on(
        self, run_id: str, workflow_type: str, arguments: list[Value], cause: str, again: Copies = (),
        task_queue: str = "",
    ) -> None:  # fmt: skip
        """The turn that the branch has left in the middle goes on in it. Otherwise as `begin`.

        arguments  as stored
        again      of each command that has no answer yet: what its BEGIN was, with its body as stored. Calls in flight
                   where a branch leaves are not part of it, so they begin again; those of a fork are asked anew instead
        """
        batch = Batch(self.journal, self.wording.task())
        request = layout.turn_request(run_id, arguments, cause, task_queue=task_queue)
        turn = batch.add(Kind.BEGIN, TURN, workflow_type, body={"request": request}, finish=_as_it_is)
        for begin, body in again:
            batch.add(Kind.BEGIN, begin.what, begin.name, body=body, finish=partial(_with_key, begin.key))
        batch.tell()
        self._turn, self._began_here = turn, True
        self.run_id, self.workflow_type = run_id, workflow_type

    def waits(self, given: Iterable[Command]) -> None:
        """These were asked for before the branch left, and still wait. For a fork, which writes of them itself."""
        written = self.wording.task()
        for command in given:
            self._state.open[FAMILY[command.kind], command.seq] = waiting(command, written.asked(command))
        written.finish()

    @classmethod
    def resume(cls, journal: Journal, wording: Wording | None = None, *, effects: bool = True) -> Recorder:
        """Goes on with what a branch has. Raises StoreError."""
        from lockstep_temporal.recorded import Recorded

        made = cls(journal, wording, effects=effects)
        recorded = Recorded(journal.reader())
        steps = recorded.record.steps
        made.step = steps[-1][1].pos if steps else 0
        turn = recorded.turns[-1] if recorded.turns else None
        if turn is None:
            return made
        made.run_id, made.workflow_type, made.continued_from = turn.run_id, turn.workflow_type, turn.continued_from
        for number in turn.steps:
            made.lengths += recorded.steps[number].lengths
        if turn.status or turn.left:
            return made
        made._turn = turn.pos
        made.loose = recorded.before(len(steps)) < recorded.record.heads[-1][1].pos
        for effect in recorded.effects:
            if effect.run_id == turn.run_id and effect.end is None and effect.seq >= 0:
                body = recorded.record.body(effect.begin_seq)
                made._state.open[FAMILY.get(effect.kind, commands.ACTIVITY), effect.seq] = opened.found_open(
                    effect, body
                )
        return made

    # Parts and steps.

    def _part(
        self, batch: Batch, state: State, activation: WorkflowActivation, completion: WorkflowActivationCompletion
    ) -> Part:  # fmt: skip
        """Writes down an activation with its completion: ends what it answers, and begins what waits from now on."""
        written = batch.written
        given = commands.commands_of(completion)
        rejected = {each.request["id"] for each in given if each.kind == commands.REJECTED}
        jobs = written.answers(activation)
        job_texts, names = [], []
        for job in jobs:
            text, name = self._job(batch, state.open, job, rejected)
            job_texts.append(text)
            names.append(name)
        texts = [layout.command_text(each, opened.target(each, state.open)) for each in given]
        targets = opened.targets(given, state.open)
        self._cancel(batch, state.open, given)
        self._begin_commands(batch, state, given)
        done: Any = written.message(completion)
        exact: Value = [written.message(activation), {**done, "run_id": activation.run_id}]
        clock = activation.timestamp
        return Part(activation.history_length, clock, jobs, job_texts, names, given, texts, targets, exact)

    def _job(self, batch: Batch, open_: dict[At, Open], job: Answered, rejected: set[Value]) -> tuple[str, str]:
        """How a job is told, and what the step is named after."""
        if job.kind in commands.INBOUND:
            if job.kind == commands.UPDATE and job.variant.protocol_instance_id in rejected:
                return f"{layout.job_text(job, job.name)} rejected", ""  # no history has it
            batch.came(job)
            return layout.job_text(job, job.name), job.name or job.kind
        if job.seq < 0:
            return layout.job_text(job, job.name), job.name if job.kind == commands.START else ""
        at = FAMILY.get(job.kind, job.kind), job.seq
        found = open_.get(at)
        name = found.name if found is not None else ""
        text = layout.job_text(job, name)
        if found is None:
            return text, ""
        if job.status == commands.BACKOFF:
            open_[at] = replace(found, backoff=backoff_of(job))
            return text, ""
        if job.ends:
            del open_[at]
            if not self._effects:
                self._tell_end(batch, at, job.status, batch.written.outcome(job))
            elif found.pos:
                batch.end(found, job.status, batch.written.outcome(job))
        return text, name

    def _cancel(self, batch: Batch, open_: dict[At, Open], given: Sequence[Command]) -> None:
        """A timer that the workflow itself cancels is over: no answer comes."""
        for command in given:
            found = open_.pop((commands.TIMER, command.seq), None) if command.kind == "cancel_timer" else None
            if found is not None and not self._effects:
                self._tell_end(batch, (commands.TIMER, command.seq), Status.CANCELLED, None)
            elif found is not None and found.pos:
                batch.end(found, Status.CANCELLED, None)

    def _tell_end(self, batch: Batch, at: At, status: str, body: Value) -> None:
        """Somebody else writes the end of a call, behind what has come before it."""
        if self.ends is not None:
            batch.tell()
            self.ends(at, status, body)

    def _begin_commands(self, batch: Batch, state: State, given: Sequence[Command]) -> None:
        """The commands that wait, which are now open. Local activities run at once; the server is told of all else with
        the end of the workflow task."""
        unsent = layout.unsent(given)
        for command in given:
            at = FAMILY.get(command.kind, ""), command.seq
            if not command.waits or at in unsent:
                continue
            asked = batch.written.asked(command)
            waits = waiting(command, asked)
            before = opened.tried(command, state.open) if waits.local else None
            if before is not None:  # one effect, however often it is tried
                earlier = state.open.pop(before)
                waits = replace(waits, pos=earlier.pos, key=earlier.key, name=earlier.name)
            state.open[at] = waits
            if not self._effects or waits.pos:
                continue
            if waits.local:
                batch.begin(command, asked, waits)
            else:
                state.due[at] = command, asked, waits

    def _close(self, batch: Batch, state: State, parent: int) -> int:
        """The STEP over the parts that are on, and the beginnings of what they have asked for."""
        pos = self._step(batch, state.parts, parent)
        for at, (command, asked, waits) in state.due.items():
            if at in state.open:
                batch.begin(command, asked, waits)
        state.parts, state.due = [], {}
        return pos

    def _step(self, batch: Batch, parts: Sequence[Part], parent: int) -> int:
        given = [command for part in parts for command in part.commands]
        # What the step itself has begun is no target: the server is told of neither.
        here = {(FAMILY[command.kind], command.seq) for command in given if command.waits}
        targets = {at: name for part in parts for at, name in part.targets.items() if at not in here}
        normal = batch.written.key(layout.normal_commands(given, targets, self.workflow_type))
        more: dict[str, Value] = {"failed": list(self._notes)} if self._notes else {}
        if self._rejected:
            more["rejected"] = list(self._rejected)
        body = layout.step_record(
            self.run_id, [part.length for part in parts], [text for part in parts for text in part.job_texts],
            [text for part in parts for text in part.command_texts], parts[-1].timestamp,
            **self._exact(parts), **more,
        )  # fmt: skip
        name = layout.step_name(name for part in parts for name in part.names)
        what = layout.step_kind(job for part in parts for job in part.jobs)
        return batch.step(what, name, parent, body, normal)

    def _exact(self, parts: Sequence[Part]) -> dict[str, Value]:
        """What of a step is kept exactly."""
        return {"tasks": [part.exact for part in parts]}

    def _ended(self, status: str) -> None:
        if not self._began_here:
            self.journal.rest(rest(status))
        self.journal.give_up_turn()
        self._turn = 0
        self._state.open = {}


def _only_rejects(activation: WorkflowActivation, completion: WorkflowActivationCompletion) -> bool:
    """Whether nothing has come but updates that are rejected, of which a history has nothing."""
    given = completion.successful.commands
    return (
        all(job.HasField("do_update") for job in activation.jobs)
        and len(given) == len(activation.jobs)
        and all(each.HasField("update_response") and each.update_response.HasField("rejected") for each in given)
    )


def _as_it_is(event: Event) -> Event:
    return event


def _with_key(key: bytes, event: Event) -> Event:
    return replace(event, key=key)
