"""Replays of a workflow's run: each recorded activation goes into a fresh instance, and what comes out is compared.

An activation holds all that a workflow sees of the world: its start, its clock and seed, and every answer. So a replay
needs neither server nor activities, and an equal answer to each means that today's code does the same. What Temporal's
own replay lets pass (arguments, timeouts, results) is a difference here.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from temporalio.bridge.proto.workflow_activation import WorkflowActivation
from temporalio.bridge.proto.workflow_completion import WorkflowActivationCompletion

from lockstep.adapter.native import Played, ReplayOptions
from lockstep.errors import Code, Difference, TargetError
from lockstep.log.model import Value
from lockstep.log.store import RunReader
from lockstep.session import coverage, sites
from lockstep.session.native.server import Server
from lockstep.session.report import Coverage
from lockstep_temporal import commands, layout
from lockstep_temporal.compare import ENDS, Found, compare, differing, variant
from lockstep_temporal.drift import Drifts
from lockstep_temporal.driver import Drive
from lockstep_temporal.prepared import Prepared, prepare
from lockstep_temporal.recorded import ExecutionTurn, Recorded, RecordedStep
from lockstep_temporal.setup import setup_of
from lockstep_temporal.watching import Stuck, Watch

type Pair = tuple[WorkflowActivation, WorkflowActivationCompletion]

LANE = layout.LANE


def replay(reader: RunReader, target: Any, options: ReplayOptions) -> Played:
    """Replays a branch of a workflow's run. Raises TargetError LS402 where it cannot begin."""
    if asyncio._get_running_loop() is not None:
        # A workflow is a loop itself, and no two can run in one thread.
        with ThreadPoolExecutor(1, thread_name_prefix="lockstep-temporal-replay") as thread:
            return thread.submit(_replay, reader, target, options).result()
    return _replay(reader, target, options)


async def areplay(reader: RunReader, target: Any, options: ReplayOptions) -> Played:
    """The same under a running loop, which goes on meanwhile."""
    return await asyncio.get_running_loop().run_in_executor(None, _replay, reader, target, options)


def _replay(reader: RunReader, target: Any, options: ReplayOptions) -> Played:
    replaying = Replaying(reader, target, options)
    with prepare(replaying.setup) as prepared, Watch(options.deadline) as watch:
        replaying.run(prepared, watch)
    return replaying.played()


class Replaying:
    """One replay: what it goes by, and what has come of it so far."""

    def __init__(self, reader: RunReader, target: Any, options: ReplayOptions) -> None:
        self.options = options
        self.recorded = Recorded(reader)
        self.server = Server(self.recorded.record, options.store, deadline=options.deadline)
        self.recorded.secrets = self.server.secrets
        self._address = f"{reader.info.name}" if reader.branch == "main" else f"{reader.info.name}@{reader.branch}"
        self._refuse()
        self.setup = setup_of(target, options.own)
        self.results: list[Any] = []
        self.error: BaseException | None = None
        self.drifts = Drifts()
        self.compared: list[int] = []  # steps that were the recorded ones
        self._keys: list[Value] = []
        self._together: Counter[int] = Counter()  # by step: local activities that were open at once
        self._turns = self._choose()

    def _refuse(self) -> None:
        native = self.recorded.native
        if self.options.depth != "call":
            raise TargetError(
                Code.BAD_TARGET,
                f"depth {self.options.depth!r} is nothing that a workflow has: activities never run in a replay, and"
                " the workflow's own code always does",
            )
        if self.recorded.origin == layout.INTERCEPTOR:
            raise TargetError(
                Code.BAD_TARGET,
                f"{self._address} was recorded by LockstepInterceptor alone, which sees neither timers nor the clock"
                " nor commands: it can be read, not replayed. Record with LockstepPlugin on client or worker, or fetch"
                f" the execution's history: lockstep temporal pull --workflow-id {native.get('workflow_id')}",
            )

    def _choose(self) -> tuple[ExecutionTurn, ...]:
        every = self.recorded.turns
        number, until = self.options.turn, self.options.until
        if number is not None:
            every = tuple(turn for turn in every if turn.number == number)
            if not every:
                raise TargetError(
                    Code.BAD_TARGET, f"{self._address} has no turn {number}: it has {len(self.recorded.turns)}"
                )
        if until is not None:
            if not 0 <= until < len(self.recorded.steps):
                raise TargetError(
                    Code.BAD_TARGET, f"{self._address} has no step {until}: its last is {len(self.recorded.steps) - 1}"
                )
            every = tuple(turn for turn in every if turn.first <= until)
        return every

    # Running.

    def run(self, prepared: Prepared, watch: Watch) -> None:
        latch = self.server.latch
        for turn in self._turns:
            Turn(self, prepared, watch, turn).run()
            if latch.stopped:
                return
        last = self._turns[-1] if self._turns else None
        if last is not None and not last.status and self.options.until is None:
            latch.come_to_cut()  # what follows is not known: it was cut off, or goes on

    def steps(self, turn: ExecutionTurn) -> list[RecordedStep]:
        """Those that are compared."""
        until = self.options.until
        return [self.recorded.steps[n] for n in turn.steps if until is None or n <= until]

    # The end.

    def played(self) -> Played:
        for told in self.drifts.others:
            self.server.note("drift", told)
        counts = self._counts()
        covered = [Coverage(kind, coverage.RECORDED, count) for kind, count in sorted(counts.items())]
        keys: Value = [*self._keys]
        report = self.server.report(
            end=keys,
            recorded=self._recorded_keys(),
            steps=len(self.compared),
            counts=counts,
            coverage=(*covered, *self.drifts.inputs, *self._races(), *coverage.uncovered(self.server)),
        )
        return Played(report=report, results=self.results, error=self.error)

    def _recorded_keys(self) -> Value:
        found: list[Value] = [self.recorded.steps[n].event.key for n in self.compared]
        return found

    def _counts(self) -> dict[str, int]:
        """The answers that were handed out, by kind."""
        steps = set(self.compared)
        return dict(
            Counter(each.kind for each in self.recorded.effects if each.end is not None and each.answered in steps)
        )

    def _races(self) -> tuple[Coverage, ...]:
        """Temporal's own replay resolves local activities in the order of their calls, which may be another one."""
        if not self._together:
            return ()
        told = ", ".join(str(step) for step in sorted(self._together)[:5])
        return (
            Coverage(
                "local activities", coverage.DIFFERS, 0,
                f"{max(self._together.values())} were open at once (step {told}): they are resolved here as they ended"
                " when they were recorded, and by Temporal's own replay in the order in which they were called",
            ),
        )  # fmt: skip

    def differs(self, step: int, found: Found, source: str) -> None:
        self.server.latch.stop_at(
            Difference(
                code=found.code, reason=found.reason, step=step, lane=LANE, kind=found.kind, name=found.name,
                source=source, path=found.path, expected=found.expected, actual=found.actual,
                same_until=step - 1 if step else None, beside=found.beside,
            )
        )  # fmt: skip


class Turn:
    """One execution of the chain, driven through a fresh instance."""

    def __init__(self, replaying: Replaying, prepared: Prepared, watch: Watch, turn: ExecutionTurn) -> None:
        self.replaying = replaying
        self.prepared = prepared
        self.watch = watch
        self.turn = turn
        self._names: dict[tuple[str, int], str] = {}  # of commands that are out, by family and number
        self._local: set[int] = set()  # numbers of local activities that are open

    def run(self) -> None:
        drive: Drive | None = None
        given: list[Pair] = []
        try:
            for step in self.replaying.steps(self.turn):
                said: list[commands.Command] = []
                for activation, was in step.tasks():
                    given.append((activation, was))
                    drive = drive or self._drive(given)
                    now = self._activate(drive, step, activation, was)
                    if now is None or self._differs(drive, step, given, was, now):
                        return
                    said += commands.commands_of(now)
                    self._count(step.number, activation, now)
                self._closed(step, said)
        finally:
            if drive is not None:
                drive.close()

    def _drive(self, given: list[Pair]) -> Drive:
        first, was = given[0]
        if not any(job.HasField("initialize_workflow") for job in first.jobs):
            native = self.replaying.recorded.native
            raise TargetError(
                Code.BAD_TARGET,
                f"the recording of {self.replaying._address} began in the middle of an execution (turn"
                f" {self.turn.number}), and a workflow can only be run from its start. Its history has all of it:"
                f" lockstep temporal pull --workflow-id {native.get('workflow_id')}",
            )
        return Drive(
            self.prepared, first,
            namespace=str(self.replaying.recorded.native.get("namespace") or "default"),
            task_queue=self._task_queue(),
            flags=frozenset(was.successful.used_internal_flags),
        )  # fmt: skip

    def _task_queue(self) -> str:
        """That of the workflow, which is what its calls name where the code names none."""
        asked = self.replaying.recorded.record.field(self.turn.seqs[0], "request")
        found = asked.get("task_queue") if isinstance(asked, dict) else None
        if isinstance(found, str):
            return found
        for step in self.replaying.steps(self.turn):
            for _, was in step.tasks():
                for command in was.successful.commands:
                    queue = getattr(getattr(command, variant(command)), "task_queue", "")
                    if queue:
                        return str(queue)
        return ""

    def _activate(
        self, drive: Drive, step: RecordedStep, activation: WorkflowActivation, was: WorkflowActivationCompletion
    ) -> WorkflowActivationCompletion | None:
        """What today's code answers; None where it came to no end, which is told."""
        # Flags of the SDK that came to be used in the middle of the execution, by a worker of a later version.
        activation.available_internal_flags.extend(
            flag
            for flag in was.successful.used_internal_flags
            if flag not in activation.available_internal_flags and not _begins(activation)
        )
        try:
            with self.watch.on():
                return drive.activate(activation)
        except Stuck as stuck:
            seconds = self.replaying.options.deadline
            reason = f"the workflow's code came to no stop within {seconds:g} s"
            found = Found(Code.STUCK, reason, -1, "workflow task", "")
            self.replaying.differs(step.number, found, _frame(stuck.frame))
            return None

    def _differs(
        self,
        drive: Drive,
        step: RecordedStep,
        given: list[Pair],
        was: WorkflowActivationCompletion,
        now: WorkflowActivationCompletion,
    ) -> bool:
        """Compares; what differs is latched."""
        drifts = self.replaying.drifts
        passed: list[Any] = []
        found = compare(was, now, drifts.volatile, passed)
        if found is not None and found.path and drifts.learn(differing(now, self._once_more(given))):
            passed = []
            found = compare(was, now, drifts.volatile, passed)
        drifts.add(passed)
        if found is None:
            return False
        error = drive.error if now.HasField("failed") else None
        source = sites.of_exception(error) if error is not None else ""
        self.replaying.differs(step.number, found, source or str(drive.source(found.index)))
        return True

    def _once_more(self, given: list[Pair]) -> WorkflowActivationCompletion:
        """What the same code answers to the same activations, in another instance."""
        with self._drive(given) as drive, self.watch.on():
            now = WorkflowActivationCompletion()
            for activation, _ in given:
                now = drive.activate(activation)
        return now

    def _count(self, step: int, activation: WorkflowActivation, now: WorkflowActivationCompletion) -> None:
        for job in activation.jobs:
            if job.HasField("resolve_activity") and job.resolve_activity.is_local:
                self._local.discard(job.resolve_activity.seq)
        for command in now.successful.commands:
            if command.HasField("schedule_local_activity"):
                self._local.add(command.schedule_local_activity.seq)
            if variant(command) in ENDS:
                self._ended(command)
        if len(self._local) > 1:
            self.replaying._together[step] = max(self.replaying._together[step], len(self._local))

    def _ended(self, command: Any) -> None:
        """How the execution ended: what it returned or raised."""
        replaying, converter = self.replaying, self.prepared.data_converter
        replaying.error = None
        which = variant(command)
        if which == "complete_workflow_execution":
            replaying.results.append(self._result(command.complete_workflow_execution))
        elif which == "fail_workflow_execution":
            replaying.error = converter.failure_converter.from_failure(
                command.fail_workflow_execution.failure, converter.payload_converter
            )
        elif which == "cancel_workflow_execution":
            from temporalio.exceptions import CancelledError

            replaying.error = CancelledError("the workflow was cancelled")
        else:
            replaying.results.append(None)  # it went on as new

    def _result(self, said: Any) -> Any:
        if not said.HasField("result"):
            return None
        definition = self.prepared.definition(self.turn.workflow_type)
        hints = [definition.ret_type] if definition.ret_type is not None else None
        return self.prepared.data_converter.payload_converter.from_payloads([said.result], hints)[0]

    def _closed(self, step: RecordedStep, said: list[commands.Command]) -> None:
        """A step that was the recorded one."""
        replaying = self.replaying
        replaying.compared.append(step.number)
        if replaying.drifts.seen or replaying.recorded.meta.get("coded"):
            replaying._keys.append(step.event.key)  # it is made of what may differ, or with a key that is not ours
            return
        normal = replaying.server.hide(layout.normal_commands(said, self._names))
        replaying._keys.append(layout.step_key(normal))
        for command in said:
            if command.waits and command.kind != commands.LOCAL_ACTIVITY:
                self._names[(commands.FAMILY[command.kind], command.seq)] = command.name


def _begins(activation: WorkflowActivation) -> bool:
    return any(job.HasField("initialize_workflow") for job in activation.jobs)


def _frame(frame: Any) -> str:
    while frame is not None:
        if sites.users(frame.f_code.co_filename):
            return sites.place(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_qualname)
        frame = frame.f_back
    return ""
