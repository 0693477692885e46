"""One execution of a workflow's run, replayed: step after step, until its end or the first difference.

What a worker recorded is driven: each activation goes into a fresh instance. What a history was imported from has no
activations, so the SDK makes them of it (`imported`), and a branch that left such an execution goes on from there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from temporalio.bridge.proto.workflow_activation import WorkflowActivation
from temporalio.bridge.proto.workflow_completion import WorkflowActivationCompletion

from lockstep.errors import Code, TargetError
from lockstep.log.model import Value
from lockstep.session import sites
from lockstep_temporal import commands, layout
from lockstep_temporal.coded import check
from lockstep_temporal.commands import Command
from lockstep_temporal.compare import ENDS, Drift, Found, compare, differing, variant
from lockstep_temporal.driver import Drive, closed
from lockstep_temporal.prepared import Prepared
from lockstep_temporal.recorded import ExecutionTurn, RecordedStep
from lockstep_temporal.watching import Stuck, Watch

if TYPE_CHECKING:
    from lockstep_temporal.replaying import Replaying

type Pair = tuple[WorkflowActivation, WorkflowActivationCompletion]


class Playing:
    """A turn of a replay.

    replaying  the replay, which is told what differs, what was the same, and how the execution ended
    """

    def __init__(self, replaying: Replaying, prepared: Prepared, watch: Watch, turn: ExecutionTurn) -> None:
        self._replaying = replaying
        self._prepared = prepared
        self._watch = watch
        self._turn = turn
        self._drive: Drive | None = None
        self._given: list[WorkflowActivation] = []  # so far
        self._flags: frozenset[int] = frozenset()
        self._queue = ""
        self._names: dict[tuple[str, int], str] = {}  # of commands that are out, by family and number
        self._targets: dict[tuple[str, int], str] = {}  # of those that the present step cancels
        self._local: set[int] = set()  # numbers of local activities that are open

    def run(self) -> None:
        steps = self._replaying.steps(self._turn)
        imported = [step for step in steps if isinstance(step.field("events"), list)]
        try:
            if imported and not self._run_imported(imported):
                return
            for step in steps[len(imported) :]:
                if not self._run_step(step):
                    return
        finally:
            if self._drive is not None:
                closed(self._drive, self._watch.on)

    # What was recorded.

    def _run_step(self, step: RecordedStep) -> bool:
        """Whether it was the recorded one."""
        said: list[Command] = []
        for activation, was in step.tasks():
            if not self._given:
                self._flags = frozenset(was.successful.used_internal_flags)
                self._queue = self._task_queue()
            self._given.append(_flagged(activation, was))
            now = self._activate(step)
            if now is None or self._differs(step, was, now):
                return False
            said += commands.commands_of(now)
            self._follow(step.number, activation, now)
        self._closed(step, said)
        return True

    def _activate(self, step: RecordedStep) -> WorkflowActivationCompletion | None:
        """What today's code answers to the last activation; None where it came to no end, which is told."""
        try:
            with self._watch.on():
                if self._drive is None:
                    self._drive = self._driven()
                    for before in self._given[:-1]:
                        self._drive.activate(before)
                return self._drive.activate(self._given[-1])
        except Stuck as stuck:
            self._is_stuck(step, stuck)
            return None

    def _is_stuck(self, step: RecordedStep, stuck: Stuck) -> None:
        seconds = self._replaying.options.deadline
        found = Found(Code.STUCK, f"the workflow's code came to no stop within {seconds:g} s", -1, TASK, "")
        self._replaying.differs(step.number, found, _place(stuck.frame))

    def _driven(self) -> Drive:
        """A fresh instance."""
        first = self._given[0]
        native = self._replaying.recorded.native
        if not _begins(first):
            raise TargetError(
                Code.BAD_TARGET,
                f"the recording of {self._replaying.address} began in the middle of an execution (turn"
                f" {self._turn.number}), and a workflow can only be run from its start. Its history has all of it:"
                f" lockstep temporal pull --workflow-id {native.get('workflow_id')}",
            )
        namespace = str(native.get("namespace") or "default")
        return Drive(self._prepared, first, namespace=namespace, task_queue=self._queue, flags=self._flags)

    @contextmanager
    def _once(self) -> Iterator[Drive]:
        """An instance beside that of the replay, for as long as the block runs."""
        drive = self._driven()
        try:
            with self._watch.on():
                yield drive
        finally:
            closed(drive, self._watch.on)

    def _task_queue(self) -> str:
        """That of the workflow, which is what its calls name where the code names none."""
        asked = self._replaying.recorded.record.field(self._turn.seqs[0], "request")
        found = asked.get("task_queue") if isinstance(asked, dict) else None
        if isinstance(found, str):
            return found
        for step in self._replaying.steps(self._turn):
            for _, was in step.tasks():
                for command in was.successful.commands:
                    queue = getattr(getattr(command, variant(command)), "task_queue", "")
                    if queue:
                        return str(queue)
        return ""

    def _differs(
        self, step: RecordedStep, was: WorkflowActivationCompletion, now: WorkflowActivationCompletion
    ) -> bool:  # fmt: skip
        """Compares; what differs is told."""
        drifts = self._replaying.drifts
        passed: list[Drift] = []
        found = compare(was, now, drifts.volatile, passed)
        if found is not None and found.path and drifts.learn(differing(now, self._once_more())):
            passed = []
            found = compare(was, now, drifts.volatile, passed)
        drifts.add(passed)
        if found is not None:
            assert self._drive is not None
            self._replaying.differs(step.number, found, _source(self._drive, found, now))
        return found is not None

    def _once_more(self) -> WorkflowActivationCompletion:
        """What the same code answers to the same activations, in another instance."""
        now = WorkflowActivationCompletion()
        with self._once() as drive:
            for activation in self._given:
                now = drive.activate(activation)
        return now

    # What was imported.

    def _run_imported(self, steps: Sequence[RecordedStep]) -> bool:
        """Whether all of them were those of the history."""
        from lockstep_temporal.imported import Against

        native = self._replaying.recorded.native
        events = [step.events() for step in steps]
        check([event for each in events for event in each], self._prepared.data_converter, self._replaying.address)
        self._queue = events[0][0].workflow_execution_started_event_attributes.task_queue.name
        drifts = self._replaying.drifts
        while True:
            try:
                against = Against(
                    self._replaying.setup, events, workflow_id=str(native.get("workflow_id") or ""),
                    namespace=str(native.get("namespace") or "default"), watch=self._watch,
                )  # fmt: skip
            except Stuck as stuck:
                at = next((n for n, each in enumerate(events) if _starts(each, stuck.length)), 0)
                self._is_stuck(steps[at], stuck)
                return False
            passed: list[Drift] = []
            at, wrong = 0, None
            for at in range(len(steps)):
                wrong = against.differs(at, drifts.volatile, passed)
                if wrong is not None:
                    break
            given = [pair for number in range(at + 1) for pair in against.pairs(number)]
            self._given = [activation for activation, _ in given]
            if wrong is None or not wrong.found.path or not self._learned(given):
                break
        drifts.add(passed)
        for number in range(at if wrong is not None else at + 1):
            self._was_same(steps[number], against.pairs(number))
        if wrong is None:
            return True
        upto = sum(len(against.pairs(number)) for number in range(at)) + wrong.pair + 1
        self._replaying.differs(steps[at].number, wrong.found, self._source_of(given[:upto], wrong.found))
        return False

    def _was_same(self, step: RecordedStep, pairs: Sequence[Pair]) -> None:
        for activation, now in pairs:
            self._follow(step.number, activation, now)
        self._closed(step, [command for _, now in pairs for command in commands.commands_of(now)])

    def _learned(self, given: Sequence[Pair]) -> bool:
        """Whether driving it shows something that is drawn anew each time."""
        if not given:
            return False
        with self._once() as drive:
            found = [each for activation, now in given for each in differing(now, drive.activate(activation))]
        return self._replaying.drifts.learn(found)

    def _source_of(self, given: Sequence[Pair], found: Found) -> str:
        """Where in the code the last pair's command was issued, by driving it: the SDK's own replay does not tell."""
        if not given:
            return ""
        try:
            with self._once() as drive:
                now = WorkflowActivationCompletion()
                for activation, _ in given:
                    now = drive.activate(activation)
                return _source(drive, found, now)
        except Stuck as stuck:
            return _place(stuck.frame)

    # What came of it.

    def _follow(self, step: int, activation: WorkflowActivation, now: WorkflowActivationCompletion) -> None:
        for job in activation.jobs:
            if job.HasField("resolve_activity") and job.resolve_activity.is_local:
                self._local.discard(job.resolve_activity.seq)
        for answer in commands.answers_of(activation):
            if answer.ends:  # to cancel it has no effect any more, so no history has that
                self._names.pop((commands.FAMILY.get(answer.kind, answer.kind), answer.seq), None)
        for given in commands.commands_of(now):
            target = layout.CANCELS.get(given.kind, ""), given.seq
            if target in self._names:
                self._targets[target] = self._names[target]
        for command in now.successful.commands:
            if command.HasField("schedule_local_activity"):
                self._local.add(command.schedule_local_activity.seq)
            if variant(command) in ENDS:
                self._ended(command)
        self._replaying.together(step, len(self._local))

    def _ended(self, command: Any) -> None:
        """How the execution ended: what it returned or raised."""
        replaying, converter = self._replaying, self._prepared.data_converter
        replaying.error = None
        which = variant(command)
        if which == "complete_workflow_execution":
            replaying.results.append(self._result(command.complete_workflow_execution))
        elif which == "fail_workflow_execution":
            failure = command.fail_workflow_execution.failure
            replaying.error = converter.failure_converter.from_failure(failure, converter.payload_converter)
        elif which == "cancel_workflow_execution":
            from temporalio.exceptions import CancelledError

            replaying.error = CancelledError("the workflow was cancelled")
        else:
            replaying.results.append(None)  # it went on as new

    def _result(self, said: Any) -> Any:
        if not said.HasField("result"):
            return None
        returns = self._prepared.definition(self._turn.workflow_type).ret_type
        converter = self._prepared.data_converter.payload_converter
        try:
            return converter.from_payloads([said.result], [returns] if returns is not None else None)[0]
        except Exception:  # it is not what the workflow says that it returns
            return converter.from_payloads([said.result])[0]

    def _closed(self, step: RecordedStep, said: list[Command]) -> None:
        """A step that was the recorded one: what it adds to the digest."""
        recorded = self._replaying.recorded
        key: Value = step.event.key  # where it is made of what may differ, or with a key that is not ours
        if not (self._replaying.drifts.seen or recorded.meta.get("coded")):
            normal = layout.normal_commands(said, self._targets, self._turn.workflow_type)
            key = layout.step_key(self._replaying.server.hide(normal))
        self._targets = {}
        for command in said:
            if command.waits and command.kind != commands.LOCAL_ACTIVITY and not layout.is_abandoned(command):
                self._names[(commands.FAMILY[command.kind], command.seq)] = command.name
        self._replaying.same(step, key)


TASK = "workflow task"


def _flagged(activation: WorkflowActivation, was: WorkflowActivationCompletion) -> WorkflowActivation:
    """With the SDK's flags that came to be used in the middle of the execution, by a worker of a later version."""
    if not _begins(activation):
        there = activation.available_internal_flags
        there.extend(flag for flag in was.successful.used_internal_flags if flag not in there)
    return activation


def _begins(activation: WorkflowActivation) -> bool:
    return any(job.HasField("initialize_workflow") for job in activation.jobs)


def _starts(events: Sequence[Any], number: int) -> bool:
    """Whether the workflow task that was started by this event is of these."""
    return any(
        event.HasField("workflow_task_completed_event_attributes")
        and event.workflow_task_completed_event_attributes.started_event_id == number
        for event in events
    )


def _source(drive: Drive, found: Found, now: WorkflowActivationCompletion) -> str:
    error = drive.error if now.HasField("failed") else None
    source = sites.of_exception(error) if error is not None else ""
    return source or str(drive.source(found.index))


def _place(frame: Any) -> str:
    """The nearest frame of the user's own code."""
    for each in _outwards(frame):
        if sites.users(each.f_code.co_filename):
            return sites.place(each.f_code.co_filename, each.f_lineno, each.f_code.co_qualname)
    return ""


def _outwards(frame: Any) -> Iterator[Any]:
    while frame is not None:
        yield frame
        frame = frame.f_back
