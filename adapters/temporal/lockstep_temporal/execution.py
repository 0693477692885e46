"""One cached instance of a workflow, as its worker's activations show it: what of them is new, and belongs in the log.

A worker that does not have an instance any more is given the whole history again: these activations replay, and are
those that the server has accepted. They tell what of the log holds. A task that was recorded and is not among them was
never taken (its worker died, or a signal came in between): from there on the execution goes on in a branch of its own,
`retried`; one that is among them and was not recorded (another worker had it, or recording began later) is recorded
now. A reset is an execution that shares the beginning of another one: a branch likewise, `reset`.

Whatever goes wrong here is ours: the workflow goes on, and its run is called incomplete.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from itertools import takewhile
from typing import Any

import msgspec
from temporalio.bridge.proto.workflow_activation import WorkflowActivation
from temporalio.bridge.proto.workflow_completion import WorkflowActivationCompletion

from lockstep.errors import Code, StoreError
from lockstep_temporal import commands, layout, naming
from lockstep_temporal.books import Books, Workflow, wording_of
from lockstep_temporal.recorded import Recorded
from lockstep_temporal.recording import Recorder

type Task = tuple[WorkflowActivation, WorkflowActivationCompletion]

_MOST_KEPT = 256  # tasks that wait for a store which cannot be written


class Watch(msgspec.Struct, frozen=True):
    """What a worker's instances are recorded with."""

    books: Books
    converter: Any = None
    namer: Callable[[commands.Command], naming.Named] = naming.effect_of

    def execution(self, info: Any) -> Execution:
        """Of an instance with this `temporalio.workflow.Info`."""
        return Execution(
            self.books,
            Workflow(
                info.namespace, info.workflow_id, info.run_id, info.first_execution_run_id or info.run_id,
                info.workflow_type, self.converter, self.namer, task_queue=info.task_queue,
            ),
        )  # fmt: skip


class Execution:
    """See above. One thread at a time."""

    def __init__(self, books: Books, workflow: Workflow) -> None:
        self._books = books
        self._workflow = workflow
        self._recorder: Recorder | None = None
        self._logged: frozenset[int] | None = None  # lengths of the history at the tasks in the log, while it replays
        self._accepted: list[int] = []  # the same of what it replays
        self._seen: deque[Task] = deque()  # that is to be looked at
        self._due: list[Task] = []  # tasks of before that are not in the log
        self._again: list[Task] = []  # that the log has, of a workflow task that is on once more
        self._original = ""  # run id of the execution that this one has been reset from, else its own
        self._before = ""  # that of the execution which this one continues

    def activated(self, activation: WorkflowActivation, completion: WorkflowActivationCompletion) -> None:
        """Records what is new in it: durable when it returns, if the store can be written soon. Never raises."""
        if is_something(activation):
            self._seen.append((activation, completion))
            self._books.run(self)

    def work(self) -> None:
        """Records what has been seen, in its order. Raises StoreError LS203 where that has to be tried again."""
        while self._seen:
            try:
                self._take(*self._seen[0])
            except Exception as error:
                if isinstance(error, StoreError) and error.code is Code.UNWRITABLE and len(self._seen) < _MOST_KEPT:
                    raise
                self._books.fault(f"a task of workflow {self._workflow.workflow_id}", error)
                if self._recorder is not None:
                    self._recorder.fault()
            self._seen.popleft()
        if self._recorder is not None:
            self._books.wrote(self._workflow.run_id, self._recorder)

    def _take(self, activation: WorkflowActivation, completion: WorkflowActivationCompletion) -> None:
        init = commands.started(activation)
        if init is not None:
            self._original = getattr(init, "original_execution_run_id", "")  # before 1.32 it is not said
            self._before = init.continued_from_execution_run_id
        if commands.is_eviction(activation):
            self._books.rests(self._workflow.run_id)
        elif activation.is_replaying:
            self._replayed(activation, completion)
        elif completion.HasField("failed"):
            self._ready(activation).note(activation, completion)
        else:
            self._ready(activation)
            while self._due:
                self._record(*self._due[0])
                del self._due[0]
            self._record(activation, completion)

    def _replayed(self, activation: WorkflowActivation, completion: WorkflowActivationCompletion) -> None:
        if self._logged is None:
            self._logged = self._books.lengths(self._workflow)
        self._accepted.append(activation.history_length)
        # A reset may share another execution's tasks, but not the first: it says whose run it is.
        if activation.history_length not in self._logged or commands.started(activation) is not None:
            self._due.append((activation, completion))

    # Against the log.

    def _ready(self, now: WorkflowActivation) -> Recorder:
        """The recorder, with the log as far as the history is."""
        if self._recorder is not None:
            return self._recorder
        recorder = self._books.open(self._workflow)
        if recorder.run_id != self._workflow.run_id and self._is_reset(recorder):
            recorder = self._left(recorder, self._shared(recorder), layout.RESET)
        elif recorder.run_id == self._workflow.run_id:
            shared = self._shared(recorder)
            rest = recorder.lengths[shared:]
            if recorder.loose:
                recorder = self._left(recorder, shared, layout.RETRIED)
            elif rest and shared == len(self._accepted) and set(rest) == {now.history_length}:
                self._again = self._tasks(recorder, shared)
            elif rest:
                recorder = self._left(recorder, shared, layout.RETRIED)
        known = set(recorder.lengths)
        self._due = [task for task in self._due if task[0].history_length not in known]
        self._accepted, self._logged = [], None
        self._recorder = recorder
        return recorder

    def _is_reset(self, recorder: Recorder) -> bool:
        """Whether the execution shares the beginning of the one that the log ends with, and does not follow it."""
        if not recorder.run_id:
            return False
        if self._original:
            return self._original != self._workflow.run_id and recorder.run_id == self._original
        return recorder.continued_from == self._before

    def _shared(self, recorder: Recorder) -> int:
        """How many tasks at the beginning of the log the server has accepted."""
        pairs = zip(recorder.lengths, self._accepted, strict=False)
        return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))

    def _record(self, activation: WorkflowActivation, completion: WorkflowActivationCompletion) -> None:
        recorder = self._recorder
        assert recorder is not None
        if self._again:
            if _same(self._again[0], (activation, completion)):
                del self._again[0]
                return
            recorder = self._left(recorder, len(recorder.lengths) - len(self._again), layout.RETRIED)
            self._recorder = recorder
            self._again = []
        self._write(recorder, activation, completion)

    def _write(self, recorder: Recorder, activation: WorkflowActivation, completion: Any) -> None:
        if recorder.run_id != self._workflow.run_id or recorder.over:
            self._begin(recorder, activation)
        recorder.task(activation, completion)

    def _begin(self, recorder: Recorder, activation: WorkflowActivation) -> None:
        if commands.started(activation) is None:
            raise LookupError(f"the log has no beginning of execution {self._workflow.run_id}")
        cause = layout.RESET if self._original not in ("", self._workflow.run_id) else ""
        recorder.begin(activation, cause, task_queue=self._workflow.task_queue)
        self._books.keep(self._workflow.run_id, recorder)

    # Branches.

    def _left(self, recorder: Recorder, shared: int, cause: str) -> Recorder:
        """A branch that has the first tasks of the execution in the log, and goes on with this one."""
        recorded = Recorded(recorder.journal.reader())
        turn = recorded.turns[-1]
        number, parts = _cut(recorded, turn.steps, shared)
        at = recorded.before(number)
        again = [(effect.begin, recorded.record.body(effect.begin_seq)) for effect in recorded.in_flight(at)]
        tasks = self._tasks(recorder, shared - parts)[:parts]
        journal = recorder.journal.fork(cause, at, latest=True, origin=f":{max(number - 1, 0)}")
        recorder.close()
        if number > turn.first:
            Recorder(journal).go_on(
                self._workflow.run_id, self._workflow.workflow_type, turn.arguments, cause, again,
                self._workflow.task_queue,
            )  # fmt: skip
        journal.flush()
        made = Recorder.resume(journal, wording_of(self._workflow, journal))
        for task in tasks:  # those of the step that is left that hold
            self._write(made, *task)
        self._books.keep(self._workflow.run_id, made)
        return made

    def _tasks(self, recorder: Recorder, shared: int) -> list[Task]:
        """The tasks of the execution in the log from one on."""
        coded: Any = recorder.wording
        decode = coded.payload if coded.coded else None
        recorded = Recorded(recorder.journal.reader(), recorder.journal.secrets, decode)
        found: list[Task] = []
        for number in recorded.turns[-1].steps:
            found += recorded.steps[number].tasks()
        return found[shared:]


def is_something(activation: WorkflowActivation) -> bool:
    """Whether it may be a workflow task, or says that the instance is let go of."""
    return len(activation.jobs) > 0 and not commands.is_query(activation)


def _same(one: Task, other: Task) -> bool:
    """Whether a workflow task that is on once more was given the same jobs and has answered the same."""
    return _said(one) == _said(other)


def _said(task: Task) -> tuple[list[bytes], bytes]:
    completion = WorkflowActivationCompletion()
    completion.CopyFrom(task[1])
    completion.run_id = ""
    jobs = [job.SerializeToString(deterministic=True) for job in task[0].jobs]
    return jobs, completion.SerializeToString(deterministic=True)


def _cut(recorded: Recorded, steps: range, shared: int) -> tuple[int, int]:
    """The number of the first step that is not all of the first tasks, and how many of its parts these are."""
    for number in steps:
        parts = len(recorded.steps[number].lengths)
        if parts > shared:
            return number, shared
        shared -= parts
    return steps.stop, 0
