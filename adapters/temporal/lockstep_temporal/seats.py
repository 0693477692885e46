"""One execution on a server, and the instance that is driven in its place: what each of the two is told of the other.

The server's own instance only hands on. So the code keeps the clock, the ids and the random numbers that it had when it
was recorded, and the server knows of nothing but what was open at the cut and what came after. On it, workflow ids have
a prefix, and what an edit or the record answers is a timer that fires when the answer is due.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
from temporalio.bridge.proto.workflow_activation import WorkflowActivation, WorkflowActivationJob
from temporalio.bridge.proto.workflow_commands import WorkflowCommand
from temporalio.bridge.proto.workflow_completion import WorkflowActivationCompletion

from lockstep_temporal.actors import Actor, Given
from lockstep_temporal.asks import ANSWERS, SORTS, Ask, Key, answer
from lockstep_temporal.world import as_before

_STANDS_IN = 1_000_000  # numbers of timers from here on stand for answers

_TERMINAL = (
    "complete_workflow_execution",
    "fail_workflow_execution",
    "cancel_workflow_execution",
    "continue_as_new_workflow_execution",
)
# Which of what was asked for a command cancels, and the field with its number.
_CANCELS = {
    "request_cancel_activity": ("activity", "seq"),
    "request_cancel_local_activity": ("activity", "seq"),
    "cancel_child_workflow_execution": ("child", "child_workflow_seq"),
    "cancel_signal_workflow": ("signal", "seq"),
}
_PASSED = ("cancel_timer", "set_patch_marker")  # as they are


class _Standing(msgspec.Struct, frozen=True):
    """What a timer of ours stands for: a job for the code that answers `key`, a signal of an activity's without one, or
    a command for the server. `at`: when it is due, by the code's clock."""

    at: int
    key: Key | None
    what: WorkflowActivationJob | WorkflowCommand


class Seat:
    """An execution. `prefix`: of workflow ids on the server; `task_queue`: the only one there is."""

    def __init__(self, actor: Actor, prefix: str, namespace: str, task_queue: str) -> None:
        self.actor = actor
        self.given: set[Key] = set()  # what is answered here, and what the server knows nothing of
        self.never: dict[Key, Given] = {}
        self.due: list[WorkflowActivationJob] = []  # for a further activation of the present task
        self.updates: dict[str, str] = {}  # id of an update in a workflow, as recorded: as on the server
        self._prefix = prefix
        self._namespace = namespace
        self._task_queue = task_queue
        self._out: list[WorkflowCommand] = []
        self._last: list[WorkflowCommand] = []  # ends the task
        self._held: dict[Key, WorkflowCommand] = {}  # asked for, and not decided yet
        self._standing: dict[int, _Standing] = {}
        self._came: list[_Standing] = []
        self._said: list[tuple[frozenset[bytes], list[WorkflowCommand]]] = []  # to each activation, by its jobs
        self._again: int | None = None  # which one of them is told once more
        self._real = self._length = self._numbers = 0
        self._now = actor.world.now
        self._before = actor.world.last.history_length

    # What the server tells.

    def seated(self, first: WorkflowActivation) -> None:
        """The server's first activation of it."""
        self._real, self._length = first.timestamp.ToNanoseconds(), first.history_length

    def activation(self, told: WorkflowActivation, jobs: Iterable[WorkflowActivationJob]) -> WorkflowActivation:
        """What the code is told, with the clock going on where it was at the cut."""
        world = self.actor.world
        length = self._before + told.history_length - self._length
        made = WorkflowActivation(run_id=world.run_id, history_length=length)
        made.history_size_bytes = world.last.history_size_bytes
        made.timestamp.FromNanoseconds(max(world.now, self._now + told.timestamp.ToNanoseconds() - self._real))
        made.available_internal_flags.extend(world.last.available_internal_flags)
        made.continue_as_new_suggested = told.continue_as_new_suggested
        as_before(made, world.last)
        made.jobs.extend(jobs)
        return made

    def further(self) -> WorkflowActivation:
        """What the code is told yet in the same task, of its own answers: after it has been told of all others."""
        last = self.actor.world.last
        made = WorkflowActivation(run_id=last.run_id, history_length=last.history_length)
        made.history_size_bytes = last.history_size_bytes
        made.timestamp.FromNanoseconds(self.actor.world.now)
        made.available_internal_flags.extend(last.available_internal_flags)
        as_before(made, last)
        made.jobs.extend(self.due)
        self.due = []
        return made

    def answers(self, job: WorkflowActivationJob) -> Iterator[WorkflowActivationJob]:
        """What the code is told of an answer. Of what is answered here, `came` tells."""
        kind = job.WhichOneof("variant") or ""
        if kind == "fire_timer" and job.fire_timer.seq >= _STANDS_IN:
            self._came.append(self._standing.pop(job.fire_timer.seq))
            return
        key = (ANSWERS[kind], getattr(job, kind).seq) if kind in ANSWERS else None
        if key in self.given:
            return
        told = WorkflowActivationJob()
        told.CopyFrom(job)
        if kind == "resolve_child_workflow_execution":
            self._unprefixed(told, key)
        yield told

    def came(self) -> list[WorkflowActivationJob]:
        """What was answered here and has come by now, that of one moment after the other: the code is told of it when
        it has been told of what else has come, for that may have come earlier."""
        first = min((each.at for each in self._came), default=0)
        now = [each for each in self._came if each.at == first]
        self._came = [each for each in self._came if each.at != first]
        self._out += [each.what for each in now if isinstance(each.what, WorkflowCommand)]
        waits = self.actor.world.waits_for
        return [
            each.what
            for each in now
            if isinstance(each.what, WorkflowActivationJob) and (each.key is None or waits(each.key))
        ]

    @property
    def comes(self) -> bool:
        """Whether there is more of that."""
        return bool(self._came)

    def _unprefixed(self, job: WorkflowActivationJob, key: Key | None) -> None:
        """Failures of a child name it as the code does."""
        result: Any = job.resolve_child_workflow_execution.result
        which = result.WhichOneof("status")
        failure = getattr(getattr(result, which), "failure", None) if which in ("failed", "cancelled") else None
        while failure is not None:
            if failure.HasField("child_workflow_execution_failure_info"):
                info = failure.child_workflow_execution_failure_info
                info.namespace = self.actor.world.namespace
                info.workflow_execution.workflow_id = info.workflow_execution.workflow_id.removeprefix(self._prefix)
                if key is not None and info.workflow_execution.run_id:
                    info.workflow_execution.run_id = self.actor.world.begun(key[1])
            failure = failure.cause if failure.HasField("cause") else None

    # What the server is told.

    def hold(self, completion: WorkflowActivationCompletion) -> None:
        """Keeps back what is asked for until it is decided who answers."""
        for command in completion.successful.commands:
            kind = command.WhichOneof("variant") or ""
            sort = SORTS.get(kind)
            if sort is not None and sort != "timer":
                self._held[sort, getattr(command, kind).seq] = command

    def ask(self, ask: Ask) -> None:
        """The server is asked."""
        self._held.pop(ask.key, None)
        command = WorkflowCommand()
        command.CopyFrom(ask.message)
        self._out.append(self._placed(command))

    def timer(self, ask: Ask) -> None:
        """A timer that was on at the cut is set for what is left of it."""
        at = self.actor.world.fires(ask.seq)
        command = WorkflowCommand()
        command.start_timer.seq = ask.seq
        left = (at if at is not None else self._now) - self._now
        command.start_timer.start_to_fire_timeout.FromNanoseconds(max(left, 0))
        self._out.append(command)

    def give(self, ask: Ask, given: Given) -> None:
        """It is answered here."""
        world = self.actor.world
        self._held.pop(ask.key, None)
        self.given.add(ask.key)
        if ask.sort == "child" and given.run_id and not world.begun(ask.seq):
            job = WorkflowActivationJob()
            job.resolve_child_workflow_execution_start.seq = ask.seq
            job.resolve_child_workflow_execution_start.succeeded.run_id = given.run_id
            self.later(ask.at + given.started - world.now, ask.key, job)
        for each in given.signals:
            self.later(ask.at + each.after - world.now, None, each.job)
        if given.never:
            self.never[ask.key] = given
        elif ask.is_local:
            self._now += given.after
            self.due.append(answer(ask, given.result))
        else:
            self.later(ask.at + given.after - world.now, ask.key, answer(ask, given.result))

    def later(self, wait: int, key: Key | None, what: WorkflowActivationJob | WorkflowCommand) -> None:
        """A job for the code, or a command for the server, when so many nanoseconds have passed."""
        self._numbers += 1
        number = _STANDS_IN + self._numbers
        self._standing[number] = _Standing(self.actor.world.now + max(wait, 0), key, what)
        command = WorkflowCommand()
        command.start_timer.seq = number
        command.start_timer.start_to_fire_timeout.FromNanoseconds(max(wait, 0))
        self._out.append(command)

    def cancel_later(self, ask: Ask) -> None:
        """What was cancelled before the cut, and is waited for all the same: core would not even ask for what is
        cancelled in the task that asks for it."""
        command = WorkflowCommand()
        if ask.sort == "activity":
            command.request_cancel_activity.seq = ask.seq
        elif ask.sort == "child":
            command.cancel_child_workflow_execution.child_workflow_seq = ask.seq
        else:
            return
        self.later(0, None, command)

    def pass_on(self, completion: WorkflowActivationCompletion) -> None:
        """All else that the code commands."""
        for given in completion.successful.commands:
            command = WorkflowCommand()
            command.CopyFrom(given)
            kind = command.WhichOneof("variant") or ""
            if kind in _CANCELS:
                sort, field = _CANCELS[kind]
                key: Any = (sort, getattr(getattr(command, kind), field))
                if self._held.pop(key, None) is not None:
                    self.given.add(key)  # the server has never heard of it
                if key not in self.given:
                    self._out.append(command)
            elif kind == "start_timer" or kind in _PASSED:
                self._out.append(command)
            elif kind in _TERMINAL:
                self._last.append(self._placed(command))
            elif kind == "update_response":
                known = self.updates.get(command.update_response.protocol_instance_id)
                if known is not None:  # else it was accepted before the cut, and nobody waits for it
                    command.update_response.protocol_instance_id = known
                    self._out.append(command)

    def rewind(self) -> None:
        """The server tells it all once more, in another instance of its own: what was answered is answered again."""
        self._again = 0

    def unheard(self, told: WorkflowActivation) -> list[WorkflowActivationJob]:
        """The jobs of an activation that the code was not told of before."""
        if self._again is None:
            return list(told.jobs)
        heard, said = self._said[self._again]
        self._again += 1
        self._out, self._last = [*said], []
        if self._again < len(self._said):
            return []
        self._again = None  # from here on all is new
        del self._said[-1]
        ends = [command for command in said if command.WhichOneof("variant") in _TERMINAL]
        self._out, self._last = [command for command in said if command not in ends], ends
        return [job for job in told.jobs if not job.HasField("initialize_workflow") and _bytes(job) not in heard]

    def taken(self, told: WorkflowActivation) -> list[WorkflowCommand]:
        """The commands that the server is told now."""
        found = [*self._out, *self._last]
        self._out, self._last = [], []
        if self._again is None:
            self._said.append((frozenset(_bytes(job) for job in told.jobs), found))
        return found

    @property
    def stands(self) -> bool:
        """Whether something is answered here, and not yet."""
        return bool(self._standing)

    def _placed(self, command: WorkflowCommand) -> WorkflowCommand:
        """Where nothing is but this server, its one task queue, and what has a prefix."""
        kind = command.WhichOneof("variant") or ""
        said: Any = getattr(command, kind)
        fields = said.DESCRIPTOR.fields_by_name
        if "task_queue" in fields:
            said.task_queue = self._task_queue
        if kind in ("start_child_workflow_execution", "continue_as_new_workflow_execution"):
            # The code is told by us what it begins with; and search attributes would have to be known to the server.
            for field in ("input", "arguments", "headers", "memo", "search_attributes"):
                if field in fields:
                    said.ClearField(field)
        if kind == "start_child_workflow_execution":
            said.namespace = self._namespace
            said.workflow_id = self._prefix + said.workflow_id
        if kind == "continue_as_new_workflow_execution":
            said.workflow_type = said.workflow_type or self.actor.world.init.workflow_type
        if kind == "signal_external_workflow_execution" and said.child_workflow_id:
            said.child_workflow_id = self._prefix + said.child_workflow_id
        elif "workflow_execution" in fields and kind.endswith("external_workflow_execution"):
            target = said.workflow_execution
            target.namespace, target.run_id = self._namespace, ""
            target.workflow_id = self._prefix + target.workflow_id
        return command


def _bytes(job: WorkflowActivationJob) -> bytes:
    made: bytes = job.SerializeToString(deterministic=True)
    return made
