"""Workflows that only an interceptor sees: what they tell is put together to workflow tasks, and recorded as such.

A task is what has happened at one length of the history; with local activities it has several parts. What it cannot
have is what an interceptor does not see (timers, patches, the clock), so these runs are shown, and not replayed.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from functools import partial
from typing import Any

import msgspec
from temporalio.bridge.proto.workflow_activation import WorkflowActivation, WorkflowActivationJob
from temporalio.bridge.proto.workflow_commands import WorkflowCommand
from temporalio.bridge.proto.workflow_completion import WorkflowActivationCompletion
from temporalio.converter import DataConverter

from lockstep.errors import Code, StoreError
from lockstep.log import untapped
from lockstep_temporal import attempts, commands, layout
from lockstep_temporal.books import Books, Workflow
from lockstep_temporal.commands import Answered, Command
from lockstep_temporal.inside import Seen, decode
from lockstep_temporal.opened import At
from lockstep_temporal.recorded import Recorded
from lockstep_temporal.recording import Recorder
from lockstep_temporal.scribe import scribe

QUIET = 0.1  # seconds without a word after which a task counts as told
_MOST = 1000  # executions that are on here
_FIRST = 3  # length of a history in its first task, where nothing has come in between


class Observer:
    """Records what the workflows of one worker tell.

    store      path, found as `lockstep.log.store.locate` does
    converter  the worker's
    """

    def __init__(self, store: str | None, converter: DataConverter) -> None:
        self._store = store
        self._converter = converter
        self._on: OrderedDict[str, _Execution] = OrderedDict()
        self._heard: deque[tuple[Seen, int]] = deque()

    def emit(self, said: bytes, problem: bytes) -> None:
        """The extern function: called in a workflow's thread, and waits for nothing."""
        if problem:
            scribe.put(partial(scribe.fault, "a workflow's interceptor", RuntimeError(problem.decode())))
        else:
            scribe.put(partial(self._take, said, untapped.time_ns()))

    # In our thread.

    def _take(self, said: bytes, when: int) -> None:
        self._heard.append((decode(said), when))
        if len(self._heard) == 1 and not self._catch_up(last=False):
            scribe.later(self._catch_up)

    def _catch_up(self, last: bool) -> bool:
        """Whether all that was heard is taken, or lost. `last`: a store that cannot be opened is waited for no
        longer."""
        while self._heard:
            seen, when = self._heard[0]
            try:
                self._told(seen, when)
            except Exception as error:
                if not last and is_busy(error):
                    return False
                scribe.fault(f"workflow {seen.workflow_id}", error)
            self._heard.popleft()
        return True

    def _told(self, seen: Seen, when: int) -> None:
        execution = self._on.get(seen.run_id)
        if execution is None:
            execution = self._on[seen.run_id] = _Execution(seen, self._books().open(self._workflow(seen)))
            if len(self._on) > _MOST:
                self._on.popitem(last=False)[1].close()
        self._on.move_to_end(seen.run_id)
        execution.take(seen, when)
        if execution.over:
            del self._on[seen.run_id]
            execution.close()

    def _books(self) -> Books:
        return Books.of(self._store)

    def _workflow(self, seen: Seen) -> Workflow:
        return Workflow(
            seen.namespace, seen.workflow_id, seen.run_id, seen.first_run_id or seen.run_id, seen.workflow_type,
            self._converter, origin=layout.INTERCEPTOR, task_queue=seen.task_queue,
        )  # fmt: skip


class _Told(msgspec.Struct):
    """A task, or a part of one, while it is being told."""

    seen: Seen
    when: int
    jobs: list[WorkflowActivationJob] = []
    commands: list[WorkflowCommand] = []


class _Execution:
    """One execution of a workflow."""

    def __init__(self, seen: Seen, recorder: Recorder) -> None:
        self._recorder = recorder
        self._told: _Told | None = None
        self._due: deque[_Told] = deque()  # what is told, and not stored yet
        self._heard = 0.0
        self._waits = False  # whether our thread comes back to it
        self._counts: dict[str, int] = {}  # of what came in
        self._asked: set[At] = set()
        self._open: set[At] = set()
        self.over = False
        if recorder.run_id == seen.run_id:
            self._remember(Recorded(recorder.journal.reader()))

    def take(self, seen: Seen, when: int) -> None:
        """Something has happened."""
        job = WorkflowActivationJob.FromString(seen.job) if seen.job else None
        command = WorkflowCommand.FromString(seen.command) if seen.command else None
        if not self._is_new(seen, job, command):
            return
        if self._told is not None and (self._told.seen.length != seen.length or self._answers_itself(job)):
            self._write()
        if self._told is None:
            self._told = _Told(seen, when, [], [])
        if job is not None and job.HasField("initialize_workflow"):
            self._told.jobs.insert(0, job)  # the code of signals and updates may have run before
        elif job is not None:
            self._told.jobs.append(job)
        if command is not None:
            self._told.commands.append(command)
        self._heard = untapped.monotonic()
        if command is not None and _ends(command):
            self._write()
            self.over = True
        elif not self._waits:
            self._waits = True
            scribe.later(self._settle)

    def close(self) -> None:
        self._write()
        self._recorder.close()

    def _settle(self, last: bool) -> bool:
        if not last and (self._lacks_beginning() or untapped.monotonic() - self._heard < QUIET):
            return False
        self._waits = False
        self._write()
        return True

    def _lacks_beginning(self) -> bool:
        """Whether what began the execution is still to come: the code of a signal or update goes first, and is slow."""
        told = self._told
        return (
            told is not None
            and told.seen.length <= _FIRST
            and self._recorder.run_id != told.seen.run_id
            and not any(job.HasField("initialize_workflow") for job in told.jobs)
        )

    def _write(self) -> None:
        told, self._told = self._told, None
        if told is not None:
            self._due.append(told)
            if len(self._due) == 1 and not self._stored(last=False):
                scribe.later(self._stored)

    def _stored(self, last: bool) -> bool:
        """Whether all that was told is in the log, or lost. `last`: a store that cannot be written is waited for no
        longer."""
        while self._due:
            try:
                self._store(self._due[0])
            except Exception as error:
                if not last and is_busy(error):
                    return False
                self._recorder.fault()
                scribe.fault(f"workflow {self._due[0].seen.workflow_id}", error)
            self._due.popleft()
            attempts.look()
        return True

    def _store(self, told: _Told) -> None:
        activation = WorkflowActivation(run_id=told.seen.run_id, history_length=told.seen.length, jobs=told.jobs)
        activation.timestamp.FromNanoseconds(told.when)
        completion = WorkflowActivationCompletion(run_id=told.seen.run_id)
        completion.successful.commands.extend(told.commands)
        if self._recorder.run_id != told.seen.run_id or self._recorder.over:
            if commands.started(activation) is not None:
                self._recorder.begin(activation)
            else:  # it began before anybody recorded it, or shares its beginning with one that was reset
                cause = layout.RESET if self._recorder.run_id else layout.STARTED
                self._recorder.go_on(told.seen.run_id, told.seen.workflow_type, [], cause)
        self._recorder.task(activation, completion)

    def _remember(self, recorded: Recorded) -> None:
        """What this execution has told before, to another process or before it was let go of."""
        for effect in recorded.effects:
            if effect.run_id != self._recorder.run_id:
                continue
            if effect.inbound:
                self._counts[effect.kind] = self._counts.get(effect.kind, 0) + 1
                continue
            at = commands.FAMILY.get(effect.kind, commands.ACTIVITY), effect.seq
            self._asked.add(at)
            if effect.end is None:
                self._open.add(at)

    def _is_new(self, seen: Seen, job: Any, command: Any) -> bool:
        """Whether it was not recorded before: a task that failed is run again, in this process or another."""
        if command is not None:
            (found,) = _commands(command)
            at = commands.FAMILY.get(found.kind, ""), found.seq
            if found.waits:
                new = at not in self._asked
                self._asked.add(at)
                if new:
                    self._open.add(at)
                return new
            return True
        (came,) = _jobs(job)
        if came.kind == commands.START:
            return self._recorder.run_id != seen.run_id
        if came.kind in commands.INBOUND:
            known = self._counts.get(came.kind, 0)
            self._counts[came.kind] = max(known, seen.count)
            return seen.count > known
        at = commands.FAMILY[came.kind], came.seq
        new = at in self._open
        self._open.discard(at)
        return new

    def _answers_itself(self, job: Any) -> bool:
        """Whether a job answers a command of the part that is being told: a local activity is over."""
        if job is None or not job.HasField("resolve_activity") or self._told is None:
            return False
        number = job.resolve_activity.seq
        return any(each.seq == number and each.waits for each in _commands(*self._told.commands))


def is_busy(error: Exception) -> bool:
    """Whether the store cannot be written now, and may be in a moment."""
    return isinstance(error, StoreError) and error.code is Code.UNWRITABLE


def _commands(*given: WorkflowCommand) -> tuple[Command, ...]:
    completion = WorkflowActivationCompletion()
    completion.successful.commands.extend(given)
    return commands.commands_of(completion)


def _jobs(*given: WorkflowActivationJob) -> tuple[Answered, ...]:
    return commands.answers_of(WorkflowActivation(jobs=given))


def _ends(command: WorkflowCommand) -> bool:
    return _commands(command)[0].kind in commands.ENDS
