"""What stands around one workflow execution past the cut of a fork: the server and core, as far as its code sees them.

    world = World(first)                          the activation that initializes it
    world.see(activation); world.take(completion)     for each of the part that is served
    asks = world.take(completion)                 its commands, as they reach the server
    world.settle(…), world.deliver(…)             what came of them, and what comes from outside
    activation = world.next(now)                  what the workflow is told next; None: nothing yet
    world.due()                                   when something will be

Pure: it runs nothing, waits for nothing and has no clock. Times are nanoseconds since the epoch, of a clock that others
move on. Nothing in it is random: one course of events gives one course of activations, byte by byte.

Its rules are those of sdk-core's state machines (`sdk-core/src/worker/workflow/machines`) and of the server:

* Commands reach the server when their workflow task closes, which it does when no local activity is outstanding. What
  is cancelled before that never gets there.
* Local activities are resolved in further activations of the task that asked for them, one at a time; whatever else
  happens waits for the next task. Likewise what core itself resolves, as a cancelled activity that is not waited for.
* All that has happened when a task begins is told in its one activation: signals and updates first, then the rest in
  its order.
"""

from __future__ import annotations

import heapq
from collections.abc import Container, Iterable
from typing import Any

import msgspec
from temporalio.api.enums.v1 import RetryState
from temporalio.api.failure.v1 import Failure
from temporalio.bridge.proto.workflow_activation import (
    InitializeWorkflow,
    WorkflowActivation,
    WorkflowActivationJob,
)
from temporalio.bridge.proto.workflow_completion import WorkflowActivationCompletion

from lockstep_temporal import counting, failures
from lockstep_temporal.asks import ANSWERS, LAST, SORTS, Ask, Ended, Key, Stop, answer, answered

TRY_CANCEL, WAIT, ABANDON = 0, 1, 2  # of activities
CHILD_ABANDON, CHILD_TRY_CANCEL = 0, 1
_BOTH = 2  # events less of what was begun and cancelled in one task: of either command
_SUGGESTS = 4096  # events of a history, at which the server suggests to continue as new


_INBOUND = ("signal_workflow", "do_update")
_TERMINAL = (
    "complete_workflow_execution",
    "fail_workflow_execution",
    "cancel_workflow_execution",
    "continue_as_new_workflow_execution",
)
_CHILD_ENDS = {
    "completed": "complete_workflow_execution",
    "failed": "fail_workflow_execution",
    "cancelled": "cancel_workflow_execution",
}
_NEVER = {
    "schedule_nexus_operation": "a Nexus operation",
    "request_cancel_nexus_operation": "a Nexus operation",
}


class _Pending(msgspec.Struct):
    ask: Ask
    sent: bool = False
    event: int = 0  # that recorded it
    started: int = 0  # child: the event that told of its start
    run_id: str = ""
    cancelled: bool = False


class _Happening(msgspec.Struct, frozen=True, order=True):
    at: int
    rank: int
    number: int
    key: Key | None = None
    events: int = 0
    job: Any = None


class World:
    """One execution (one run id). `ended`: how it did, None while it goes on; `steps`: workflow tasks closed so far;
    `refused`: what it asked for that cannot be emulated, "" for nothing; `last`: the last activation; `sent`: signals
    and cancellations of other workflows; `children`: those that have ended, by their ids."""

    def __init__(self, first: WorkflowActivation, namespace: str = "default", task_queue: str = "") -> None:
        init = _initializing(first)
        self.namespace = namespace
        self.task_queue = task_queue
        self.first = first
        self.init: InitializeWorkflow = init
        self.run_id = first.run_id
        self.now = first.timestamp.ToNanoseconds()
        self.steps = 0
        self.ended: Ended | None = None
        self.refused = ""
        self.sent: list[Ask] = []
        self.children: dict[str, Ended] = {}
        self.memo = dict(init.memo.fields)
        self.search_attributes = dict(init.search_attributes.indexed_fields)
        self._pending: dict[Key, _Pending] = {}
        self._happenings: list[_Happening] = []
        self._immediate: list[WorkflowActivationJob] = []  # for a further activation of the present task
        self._told = 0
        self._unheard = 0
        self._length = first.history_length  # of the history, up to the present task's start
        self._size = first.history_size_bytes
        self._unsent: list[Ask] = []
        self._events = 0  # that the present task's commands make
        self._flags: list[int] = list(first.available_internal_flags)
        self.last = first
        self._patched: set[str] = set()

    # What is told to it.

    def see(self, activation: WorkflowActivation) -> None:
        """The workflow is given this activation, which was recorded."""
        self.now = max(self.now, activation.timestamp.ToNanoseconds())
        self._length = activation.history_length
        self._size = activation.history_size_bytes
        self._flags = sorted({*self._flags, *activation.available_internal_flags})
        self.last = activation
        self._immediate = []
        for job in activation.jobs:
            kind = job.WhichOneof("variant")
            if kind == "resolve_child_workflow_execution_start":
                self._start_told(job.resolve_child_workflow_execution_start)
            elif kind in ANSWERS:
                if kind == "resolve_child_workflow_execution":
                    self._child_over(job.resolve_child_workflow_execution)
                self._forget((ANSWERS[kind], getattr(job, kind).seq))

    def take(self, completion: WorkflowActivationCompletion) -> tuple[Ask | Stop, ...]:
        """What the workflow did with the last activation: asks that have reached somebody, and cancellations."""
        if completion.HasField("failed"):
            self.ended = Ended("failed_task", completion.failed.failure)
            return ()
        self._flags = sorted({*self._flags, *completion.successful.used_internal_flags})
        stops: list[Stop] = []
        sent: list[Ask | Stop] = []
        for command in completion.successful.commands:
            kind = command.WhichOneof("variant")
            if kind is None:
                continue
            given = getattr(command, kind)
            if kind in _NEVER:
                self.refused = _NEVER[kind]
            elif kind in SORTS:
                ask = Ask(SORTS[kind], given.seq, command, self.now)
                if ask.sort in ("signal", "cancel"):
                    self.sent.append(ask)
                self._begin(ask)
            elif kind in _TERMINAL:
                self.ended = Ended(kind, given)
            self._events += counting.of_command(kind, given, self._patched)
            if kind not in SORTS and kind not in _TERMINAL:
                self._change(kind, given, stops)
        for pending in self._pending.values():
            if not pending.sent and pending.ask.is_local:
                pending.sent = True
                sent.append(pending.ask)
        if self.ended is not None or not (self._outstanding or self._immediate):
            sent = [*self._close(), *sent]
        return (*sent, *stops)

    def settle(self, key: Key, at: int, result: Any, rank: int = LAST) -> None:
        """An ask is answered at a time: an ActivityResolution, a ChildWorkflowResult, or the Failure of an external
        signal or cancel (None: it went well). What nobody waits for any more is dropped. `rank`: its place among what
        happens at the same time, where that is known."""
        if key not in self._pending:
            return
        job = answer(self._pending[key].ask, result)
        self._happen(at, key, job, 2 if key[0] == "activity" else 1, rank)

    def start(self, seq: int, at: int, run_id: str = "", cause: int = 0) -> None:
        """A child has started with this run id, or could not for a cause (`StartChildWorkflowExecutionFailedCause`). Of
        one that had before the cut, nothing is told again."""
        pending = self._pending.get(("child", seq))
        if pending is None or pending.started:
            return
        job = WorkflowActivationJob()
        told = job.resolve_child_workflow_execution_start
        told.seq = seq
        if cause:
            told.failed.workflow_id = pending.ask.command.workflow_id
            told.failed.workflow_type = pending.ask.command.workflow_type
            told.failed.cause = cause  # type: ignore[assignment]
        else:
            told.succeeded.run_id = run_id
        self._happen(at, None, job, 1)

    def deliver(self, job: WorkflowActivationJob, at: int, rank: int = LAST) -> None:
        """A signal, an update, or a request to cancel comes from outside. `rank`: as in `settle`."""
        self._happen(at, None, job, 0 if job.HasField("do_update") else 1, rank)

    def unheard(self, events: int) -> None:
        """So many events come into the history that the workflow is told nothing of."""
        self._unheard += events

    def delay(self, seq: int, at: int, rank: int = LAST) -> None:
        """A timer fires at another time than it was set to. `rank`: as in `settle`."""
        kept = next((each for each in self._happenings if each.key == ("timer", seq)), None)
        if kept is not None:
            self._withdraw(("timer", seq))
            self._happen(at, kept.key, kept.job, kept.events, rank)

    # What is asked of it.

    def next(self, now: int) -> WorkflowActivation | None:
        """What the workflow is told at this time."""
        if self.ended is not None:
            return None
        if self._immediate:
            jobs, self._immediate = self._immediate, []
            return self._activation(jobs, fresh=False)
        if self._outstanding:
            happening = next(
                (each for each in sorted(self._happenings) if each.at <= now and self._is_local(each)), None
            )
            if happening is None:
                return None
            self._happenings.remove(happening)
            heapq.heapify(self._happenings)
            self._told_of([happening])
            self.now = max(self.now, happening.at)
            self._events += 1  # its marker
            return self._activation([happening.job], fresh=False)
        told: list[_Happening] = []
        while self._happenings and self._happenings[0].at <= now:
            told.append(heapq.heappop(self._happenings))
        if not told:
            return None
        self.now = max(self.now, now)
        for each in told:
            self._length += each.events
            _placed(each.job, self._length)
        self._told_of(told)
        first = [each.job for each in told if each.job.WhichOneof("variant") in _INBOUND]
        rest = [each.job for each in told if each.job.WhichOneof("variant") not in _INBOUND]
        return self._activation([*first, *rest], fresh=True)

    def due(self) -> int | None:
        """When something happens next; None: nothing is going to by itself."""
        if self.ended is not None:
            return None
        if self._immediate:
            return self.now
        if self._outstanding:
            return min((each.at for each in self._happenings if self._is_local(each)), default=None)
        return self._happenings[0].at if self._happenings else None

    def waits_for(self, key: Key) -> bool:
        """Whether the workflow has asked for that and not been answered."""
        return key in self._pending

    def asked(self, key: Key) -> Ask | None:
        """What the workflow has asked for under this key, as long as it waits for it."""
        pending = self._pending.get(key)
        return pending.ask if pending is not None else None

    @property
    def open(self) -> tuple[Ask, ...]:
        """What was asked for and is not answered, but for timers."""
        return tuple(each.ask for each in self._pending.values() if each.sent and each.ask.sort != "timer")

    def begun(self, seq: int) -> str:
        """The run id that a child has told of its start with, "" where it has not."""
        pending = self._pending.get(("child", seq))
        return pending.run_id if pending is not None else ""

    def is_cancelled(self, key: Key) -> bool:
        """Whether the workflow has cancelled what it still waits for."""
        return key in self._pending and self._pending[key].cancelled

    def at_once(self, keys: Container[Key]) -> list[WorkflowActivationJob]:
        """Takes those of what core resolves itself, in a further activation of the present task, that answer these."""
        mine = [job for job in self._immediate if answered(job) in keys]
        self._immediate = [job for job in self._immediate if answered(job) not in keys]
        return mine

    def fires(self, seq: int) -> int | None:
        """When a timer is going to."""
        return next((each.at for each in self._happenings if each.key == ("timer", seq)), None)

    @property
    def timers(self) -> tuple[Ask, ...]:
        """Timers that are on."""
        return tuple(each.ask for each in self._pending.values() if each.ask.sort == "timer")

    def events_of(self, key: Key) -> tuple[int, int]:
        """The history's events that recorded an ask, and that its work began."""
        pending = self._pending.get(key)
        if pending is None:
            return 0, 0
        return pending.event, pending.started or self._length + 1

    # Inside.

    @property
    def _outstanding(self) -> bool:
        return any(pending.ask.is_local for pending in self._pending.values())

    def _is_local(self, happening: _Happening) -> bool:
        return bool(happening.job.HasField("resolve_activity") and happening.job.resolve_activity.is_local)

    def _begin(self, ask: Ask) -> None:
        self._pending[ask.key] = _Pending(ask, event=self._length + 2 + self._events)

    def _close(self) -> Iterable[Ask]:
        """The task closes: what it asked for gets to the server. Its event, and those of its commands."""
        self.steps += 1
        self._length += 1 + self._events
        self._events = 0
        asks: list[Ask] = []
        for pending in self._pending.values():
            if pending.sent:
                continue
            pending.sent = True
            ask = pending.ask
            if ask.sort == "timer":
                job = WorkflowActivationJob()
                job.fire_timer.seq = ask.seq
                self._happen(ask.at + ask.command.start_to_fire_timeout.ToNanoseconds(), ask.key, job, 1)
            else:
                asks.append(ask)
        return asks

    def _change(self, kind: str, given: Any, stops: list[Stop]) -> None:
        """A command that asks for nothing."""
        if kind == "cancel_timer":
            self._withdraw(("timer", given.seq))
            timer = self._pending.pop(("timer", given.seq), None)
            self._events -= 0 if timer is not None and timer.sent else _BOTH
        elif kind in ("request_cancel_activity", "request_cancel_local_activity"):
            self._cancel_activity(("activity", given.seq), stops)
        elif kind == "cancel_child_workflow_execution":
            self._cancel_child(("child", given.child_workflow_seq), given.reason, stops)
        elif kind == "cancel_signal_workflow":
            pending = self._pending.get(("signal", given.seq))
            if pending is not None and not pending.sent:
                failure = Failure(message="Signal was cancelled before being sent")
                failure.canceled_failure_info.SetInParent()
                job = WorkflowActivationJob()
                job.resolve_signal_external_workflow.seq = given.seq
                job.resolve_signal_external_workflow.failure.CopyFrom(failure)
                self._at_once(("signal", given.seq), job)
        elif kind == "upsert_workflow_search_attributes":
            self.search_attributes.update(given.search_attributes.indexed_fields)
        elif kind == "modify_workflow_properties":
            self.memo.update(given.upserted_memo.fields)

    def _cancel_activity(self, key: Key, stops: list[Stop]) -> None:
        pending = self._pending.get(key)
        if pending is None or pending.cancelled:
            self._events -= 1
            return
        ask = pending.ask
        kind = ask.command.cancellation_type
        if not ask.is_local and (not pending.sent or kind == ABANDON):
            self._events -= 1 if pending.sent else _BOTH
        waits = kind == WAIT and pending.sent
        pending.cancelled = True
        if pending.sent and kind != ABANDON:
            stops.append(Stop("activity", ask.seq, gone=not waits))
        if waits:
            return
        job = WorkflowActivationJob()
        job.resolve_activity.seq = ask.seq
        job.resolve_activity.is_local = ask.is_local
        failure = failures.local_cancelled(ask.command) if ask.is_local else failures.activity_cancelled(ask.command)
        job.resolve_activity.result.cancelled.failure.CopyFrom(failure)
        self._at_once(key, job)
        if ask.is_local:
            self._events += 1  # its marker

    def _cancel_child(self, key: Key, reason: str, stops: list[Stop]) -> None:
        pending = self._pending.get(key)
        if pending is None or pending.cancelled:
            return
        command, kind = pending.ask.command, pending.ask.command.cancellation_type
        if not pending.sent or kind == CHILD_ABANDON:
            self._events -= 1 if pending.sent else _BOTH
        pending.cancelled = True
        state = RetryState.RETRY_STATE_NON_RETRYABLE_FAILURE
        at = (pending.event if pending.sent else 0, pending.started)
        job = WorkflowActivationJob()
        if not pending.sent:
            message = f"Child Workflow Execution cancelled before scheduled: {reason}"
            told = job.resolve_child_workflow_execution_start
            told.seq = pending.ask.seq
            told.cancelled.failure.CopyFrom(failures.child(message, command, "", failures.cancelled(), state, at))
            self._at_once(key, job)
            return
        gone = kind in (CHILD_ABANDON, CHILD_TRY_CANCEL)
        if kind != CHILD_ABANDON:
            stops.append(Stop("child", pending.ask.seq, reason, gone=gone))
        if gone:
            job.resolve_child_workflow_execution.seq = pending.ask.seq
            job.resolve_child_workflow_execution.result.cancelled.failure.CopyFrom(
                self.child_cancelled(pending.ask.seq)
            )
            self._at_once(key, job)

    def child_cancelled(self, seq: int) -> Failure:
        """What a workflow is told of a child that was cancelled."""
        state = RetryState.RETRY_STATE_NON_RETRYABLE_FAILURE
        return self.child_failure(seq, "Child Workflow execution cancelled", failures.cancelled(), state)

    def child_failure(self, seq: int, message: str, cause: Failure | None, state: RetryState.ValueType) -> Failure:
        pending = self._pending["child", seq]
        at = pending.event, pending.started
        return failures.child(message, pending.ask.command, pending.run_id, cause, state, at)

    def _child_over(self, told: Any) -> None:
        pending = self._pending.get(("child", told.seq))
        if pending is not None:
            how = _CHILD_ENDS[told.result.WhichOneof("status") or "failed"]
            self.children[pending.ask.command.workflow_id] = Ended(how)

    def _at_once(self, key: Key, job: WorkflowActivationJob) -> None:
        """Core resolves it itself, in a further activation of the present task."""
        self._forget(key)
        self._immediate.append(job)

    def _happen(
        self, at: int, key: Key | None, job: WorkflowActivationJob, events: int, rank: int = LAST
    ) -> None:  # fmt: skip
        self._told += 1
        heapq.heappush(self._happenings, _Happening(at, rank, self._told, key, events, job))

    def _withdraw(self, key: Key) -> None:
        self._happenings = [each for each in self._happenings if each.key != key]
        heapq.heapify(self._happenings)

    def _forget(self, key: Key) -> None:
        self._pending.pop(key, None)
        self._withdraw(key)
        if key[0] == "child":  # it may not have heard of its start yet, and never will
            self._happenings = [each for each in self._happenings if not _is_start(each.job, key[1])]
            heapq.heapify(self._happenings)

    def _told_of(self, told: Iterable[_Happening]) -> None:
        for each in told:
            if each.key is not None:
                self._pending.pop(each.key, None)
            elif each.job.HasField("resolve_child_workflow_execution_start"):
                self._start_told(each.job.resolve_child_workflow_execution_start)

    def _start_told(self, told: Any) -> None:
        key: Key = ("child", told.seq)
        if not told.HasField("succeeded"):
            self._forget(key)
        elif key in self._pending:
            pending = self._pending[key]
            pending.run_id, pending.started = told.succeeded.run_id, self._length

    def _activation(self, jobs: list[WorkflowActivationJob], *, fresh: bool) -> WorkflowActivation:
        """`fresh`: of a new task, else a further one of the present task."""
        if fresh:
            self._length += 2 + self._unheard  # that it was scheduled, and that it started
            self._unheard = 0
            self._size += sum(job.ByteSize() for job in jobs)
        made = WorkflowActivation(run_id=self.run_id, history_length=self._length, history_size_bytes=self._size)
        made.timestamp.FromNanoseconds(self.now)
        made.available_internal_flags.extend(self._flags)
        made.continue_as_new_suggested = self._length >= _SUGGESTS
        as_before(made, self.last)
        made.jobs.extend(jobs)
        self.last = made
        return made


def _initializing(first: WorkflowActivation) -> InitializeWorkflow:
    found = next((job.initialize_workflow for job in first.jobs if job.HasField("initialize_workflow")), None)
    if found is None:
        raise ValueError("the first activation of an execution initializes it")
    return found


def _placed(job: WorkflowActivationJob, event: int) -> None:
    """A signal says which event it was, where the SDK knows of that: it warns of one that does not."""
    signal = job.signal_workflow
    if job.HasField("signal_workflow") and "originating_event_id" in signal.DESCRIPTOR.fields_by_name:
        signal.originating_event_id = signal.originating_event_id or event


def _is_start(job: WorkflowActivationJob, seq: int) -> bool:
    told = job.resolve_child_workflow_execution_start
    return job.HasField("resolve_child_workflow_execution_start") and told.seq == seq


def as_before(made: WorkflowActivation, last: WorkflowActivation) -> None:
    """What an activation says of the worker's and the SDK's version: as the one before."""
    if last.HasField("deployment_version_for_current_task"):
        made.deployment_version_for_current_task.CopyFrom(last.deployment_version_for_current_task)
    if "last_sdk_version" in last.DESCRIPTOR.fields_by_name:
        made.last_sdk_version = last.last_sdk_version
