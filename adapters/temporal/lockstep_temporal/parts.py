"""A history without any code: what a worker was given and what it answered, as far as events tell. Pure.

    for part in parts_of(events, run_id): part.activation, part.completion, part.events

A workflow task is one part, or several where something was answered within it: a local activity's end, or that of an
activity whose cancellation is not waited for. How a cancellation is waited for is in no history: where nothing came of
the late answer, it was not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from temporalio.bridge.proto.workflow_activation import WorkflowActivation, WorkflowActivationJob
from temporalio.bridge.proto.workflow_commands import WorkflowCommand
from temporalio.bridge.proto.workflow_completion import WorkflowActivationCompletion

from lockstep_temporal import jobs
from lockstep_temporal.rebuilt import Origins, Rebuilt, commands_in
from lockstep_temporal.tasks import Cut, WorkflowTask, attributes, kind_of, local, tasks_of

_WAIT: Any = 1  # enum ActivityCancellationType
_CHILD_WAITS: Any = 2  # enum ChildWorkflowCancellationType
_ENDS = frozenset({
    "ACTIVITY_TASK_COMPLETED", "ACTIVITY_TASK_FAILED", "ACTIVITY_TASK_TIMED_OUT", "ACTIVITY_TASK_CANCELED",
})  # fmt: skip


class Part(msgspec.Struct):
    """An activation and its completion. `events`: of the tasks that begin with it."""

    activation: WorkflowActivation
    completion: WorkflowActivationCompletion
    events: list[Any]


class Parts(msgspec.Struct, frozen=True):
    """An execution. `rest`: events after its last task."""

    parts: tuple[Part, ...]
    rest: tuple[Any, ...]


def parts_of(events: Sequence[Any], run_id: str) -> Parts:
    """Those of a history (HistoryEvents)."""
    cut = tasks_of(events)
    making = _Making(events, run_id, cut)
    found: list[Part] = []
    kept: list[Any] = []  # of tasks in which nothing happened: they are told of with what follows
    for group in _groups(cut):
        for part in making.group(group, first=not found):
            if len(part.activation.jobs) or part.completion.successful.commands:
                part.events[:0] = kept
                kept = []
                found.append(part)
            else:
                kept += part.events
    return Parts(tuple(found), (*kept, *cut.rest))


def _groups(cut: Cut) -> Iterator[list[WorkflowTask]]:
    """Tasks that are one for the workflow: a worker that is not through with its local activities within a task has the
    server begin the next one at once."""
    group: list[WorkflowTask] = []
    for task in cut.tasks:
        if group and not _goes_on(group[-1], task):
            yield group
            group = []
        group.append(task)
    if group:
        yield group


def _goes_on(before: WorkflowTask, task: WorkflowTask) -> bool:
    accepts = any(kind_of(event) == "WORKFLOW_EXECUTION_UPDATE_ACCEPTED" for event in task.commanded)
    at_once = kind_of(task.events[0]) == "WORKFLOW_TASK_SCHEDULED" and (
        task.events[0].event_id == before.events[-1].event_id + 1
    )
    return at_once and not accepts


class _Making:
    def __init__(self, events: Sequence[Any], run_id: str, cut: Cut) -> None:
        self._first = events[0]
        self._run_id = run_id
        self._origins = Origins()
        self._awaited = _awaited(cut)

    def group(self, tasks: Sequence[WorkflowTask], *, first: bool) -> list[Part]:
        markers = [event for task in tasks for event in task.commanded if _is_local(event)]
        due = iter(markers)
        found: list[Part] = []
        for task in tasks:
            came = [event for event in task.came if event.event_id not in self._awaited.late]
            told = jobs.jobs_of(came, task.commanded, self._origins)
            if first and not found:
                told.insert(0, jobs.started(self._first, self._run_id))
            if told or not found:
                part = self._part(task, told)
                part.events.extend(task.events)
                if not found and markers:
                    self._begin(part, next(due))
                found.append(part)
            else:
                found[-1].events.extend(task.events)
            found += self._answered(task, found[-1], due)
        return found

    def _answered(self, task: WorkflowTask, part: Part, due: Iterator[Any]) -> list[Part]:
        """The task's commands go to the part; each answer within the task begins another one."""
        more: list[Part] = []
        settled: list[WorkflowActivationJob] = []
        for rebuilt in commands_in(task.commanded, self._origins):
            if _is_local(rebuilt.event):
                if settled:  # core says that before any local activity is through
                    more.append(self._part(task, settled))
                    settled = []
                part = self._part(task, [jobs.resolved_locally(rebuilt.event)])
                more.append(part)
                following = next(due, None)
                if following is not None:
                    self._begin(part, following)
                continue
            part.completion.successful.commands.append(self._command(rebuilt))
            if rebuilt.event.event_id in self._awaited.at_once:
                scheduled = self._awaited.at_once[rebuilt.event.event_id]
                seq = self._origins.of(scheduled.event_id)
                settled.append(jobs.cancelled_at_once(scheduled, seq))
        if settled:
            more.append(self._part(task, settled))
        return more

    def _command(self, rebuilt: Rebuilt) -> WorkflowCommand:
        command = rebuilt.message
        if command.HasField("schedule_activity") and rebuilt.event.event_id in self._awaited.waited:
            command.schedule_activity.cancellation_type = _WAIT
        elif command.HasField("start_child_workflow_execution"):
            # Which one it was, no history says: but where one is cancelled in it, it was not abandoned.
            command.start_child_workflow_execution.cancellation_type = _CHILD_WAITS
        return command

    def _begin(self, part: Part, marker: Any) -> None:
        """The local activity of a marker begins: its arguments are in no history."""
        ran = local(marker)
        assert ran is not None
        command = part.completion.successful.commands.add()
        command.schedule_local_activity.seq = ran.seq
        command.schedule_local_activity.activity_id = ran.activity_id
        command.schedule_local_activity.activity_type = ran.activity_type
        command.schedule_local_activity.attempt = ran.attempt

    def _part(self, task: WorkflowTask, told: Sequence[WorkflowActivationJob]) -> Part:
        activation = WorkflowActivation(run_id=self._run_id, history_length=task.started)
        start = task.start
        if start is not None:
            activation.timestamp.CopyFrom(start.event_time)
        activation.jobs.extend(told)
        completion = WorkflowActivationCompletion(run_id=self._run_id)
        completion.successful.SetInParent()
        return Part(activation, completion, [])


class _Cancels(msgspec.Struct, frozen=True):
    """How cancellations of activities were waited for.

    at_once  by the id of the event that asked for it: the event that scheduled the activity, whose end was not waited
             for; `late` ids of events that nobody waited for
    waited   ids of events that scheduled activities whose end was waited for
    """

    at_once: dict[int, Any]
    late: frozenset[int]
    waited: frozenset[int]


def _awaited(cut: Cut) -> _Cancels:
    asked: dict[int, int] = {}  # event that asked, by that which scheduled
    scheduled: dict[int, Any] = {}
    ended: dict[int, tuple[Any, WorkflowTask]] = {}
    for task in cut.tasks:
        for event in task.came:
            if kind_of(event) in _ENDS:
                ended[attributes(event).scheduled_event_id] = event, task
        for event in task.commanded:
            if event.HasField("activity_task_scheduled_event_attributes"):
                scheduled[event.event_id] = event
            elif event.HasField("activity_task_cancel_requested_event_attributes"):
                asked[attributes(event).scheduled_event_id] = event.event_id
    at_once: dict[int, Any] = {}
    late: set[int] = set()
    waited: set[int] = set()
    for number, request in asked.items():
        end = ended.get(number)
        if end is not None and _was_waited_for(*end):
            waited.add(number)
            continue
        at_once[request] = scheduled[number]
        if end is not None:
            late.add(end[0].event_id)
    return _Cancels(at_once, frozenset(late), frozenset(waited))


def _was_waited_for(end: Any, task: WorkflowTask) -> bool:
    """Whether the end of an activity that was asked to stop meant something to the workflow. A task in which nothing
    else came tells: what is not waited for leads to no command. Otherwise a cancellation is not waited for, which is
    the SDK's default, and any other end is."""
    alone = all(event is end or not _is_job(event) for event in task.came)
    if alone:
        return bool(task.commanded)
    return kind_of(end) != "ACTIVITY_TASK_CANCELED"


def _is_job(event: Any) -> bool:
    return kind_of(event) in jobs.KINDS


def _is_local(event: Any) -> bool:
    return kind_of(event) == "MARKER_RECORDED" and local(event) is not None
