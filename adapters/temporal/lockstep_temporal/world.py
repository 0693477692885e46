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

from lockstep_temporal import cancelling, counting, failures
from lockstep_temporal.agenda import Agenda, Happening
from lockstep_temporal.asks import ANSWERS, LAST, SORTS, Ask, Ended, Key, Stop, answer, answered

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
        self._agenda = Agenda()
        self._immediate: list[WorkflowActivationJob] = []  # for a further activation of the present task
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
        self._agenda.add(at, key, job, 2 if key[0] == "activity" else 1, rank)

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
        self._agenda.add(at, None, job, 1)

    def deliver(self, job: WorkflowActivationJob, at: int, rank: int = LAST) -> None:
        """A signal, an update, or a request to cancel comes from outside. `rank`: as in `settle`."""
        self._agenda.add(at, None, job, 0 if job.HasField("do_update") else 1, rank)

    def unheard(self, events: int) -> None:
        """So many events come into the history that the workflow is told nothing of."""
        self._unheard += events

    def delay(self, seq: int, at: int, rank: int = LAST) -> None:
        """A timer fires at another time than it was set to. `rank`: as in `settle`."""
        kept = self._agenda.of(("timer", seq))
        if kept is not None:
            self._agenda.withdraw(("timer", seq))
            self._agenda.add(at, kept.key, kept.job, kept.events, rank)

    # What is asked of it.

    def next(self, now: int) -> WorkflowActivation | None:
        """What the workflow is told at this time."""
        if self.ended is not None:
            return None
        if self._immediate:
            jobs, self._immediate = self._immediate, []
            return self._activation(jobs, fresh=False)
        if self._outstanding:
            happening = self._agenda.due_locally(now)
            if happening is None:
                return None
            self._told_of([happening])
            self.now = max(self.now, happening.at)
            self._events += 1  # its marker
            return self._activation([happening.job], fresh=False)
        told = self._agenda.due(now)
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
            return self._agenda.first(local=True)
        return self._agenda.first()

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
        happening = self._agenda.of(("timer", seq))
        return happening.at if happening is not None else None

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
                self._agenda.add(ask.at + ask.command.start_to_fire_timeout.ToNanoseconds(), ask.key, job, 1)
            else:
                asks.append(ask)
        return asks

    def _change(self, kind: str, given: Any, stops: list[Stop]) -> None:
        """A command that asks for nothing."""
        if kind == "cancel_timer":
            self._agenda.withdraw(("timer", given.seq))
            timer = self._pending.pop(("timer", given.seq), None)
            self._events -= 0 if timer is not None and timer.sent else cancelling.BOTH
        elif kind in ("request_cancel_activity", "request_cancel_local_activity"):
            self._cancel_activity(("activity", given.seq), stops)
        elif kind == "cancel_child_workflow_execution":
            self._cancel_child(("child", given.child_workflow_seq), given.reason, stops)
        elif kind == "cancel_signal_workflow":
            pending = self._pending.get(("signal", given.seq))
            if pending is not None and not pending.sent:
                self._at_once(("signal", given.seq), cancelling.signal(given.seq))
        elif kind == "upsert_workflow_search_attributes":
            self.search_attributes.update(given.search_attributes.indexed_fields)
        elif kind == "modify_workflow_properties":
            self.memo.update(given.upserted_memo.fields)

    def _cancel_activity(self, key: Key, stops: list[Stop]) -> None:
        pending = self._pending.get(key)
        if pending is None or pending.cancelled:
            self._events -= 1
            return
        pending.cancelled = True
        self._cancelled(key, cancelling.activity(pending.ask, sent=pending.sent), stops)

    def _cancel_child(self, key: Key, reason: str, stops: list[Stop]) -> None:
        pending = self._pending.get(key)
        if pending is None or pending.cancelled:
            return
        pending.cancelled = True
        at = pending.event, pending.started
        cancelled = cancelling.child(pending.ask, reason, sent=pending.sent, at=at, run_id=pending.run_id)
        self._cancelled(key, cancelled, stops)

    def _cancelled(self, key: Key, cancelled: cancelling.Cancelled, stops: list[Stop]) -> None:
        self._events += cancelled.events
        if cancelled.stop is not None:
            stops.append(cancelled.stop)
        if cancelled.job is not None:
            self._at_once(key, cancelled.job)

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

    def _forget(self, key: Key) -> None:
        self._pending.pop(key, None)
        self._agenda.withdraw(key)

    def _told_of(self, told: Iterable[Happening]) -> None:
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


def as_before(made: WorkflowActivation, last: WorkflowActivation) -> None:
    """What an activation says of the worker's and the SDK's version: as the one before."""
    if last.HasField("deployment_version_for_current_task"):
        made.deployment_version_for_current_task.CopyFrom(last.deployment_version_for_current_task)
    if "last_sdk_version" in last.DESCRIPTOR.fields_by_name:
        made.last_sdk_version = last.last_sdk_version
