"""What a fork's parent has recorded, as the fork asks for it: workflow tasks, and how calls were answered, exactly.

past = Past(recorded, setup)
past.tasks(4)                   [(activation, completion), …] of step 4
past.effect(begin_pos)          the recorded effect
past.answer(effect)             what the workflow was told of it, and how long after it had asked
past.inbound(turn, after)       what came from outside later in an execution

Steps are read when they are asked for: a fork mostly needs few of those past its cut.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from functools import cached_property
from typing import Any

from msgspec.structs import replace

from lockstep.log.model import Value
from lockstep_temporal import commands, streaming
from lockstep_temporal.actors import Given, Inbound, Signalled
from lockstep_temporal.commands import Command
from lockstep_temporal.imported import Against
from lockstep_temporal.recorded import ExecutionTurn, Recorded, RecordedEffect, Task

# By family: the job that answers a command of it.
_JOBS = {
    commands.ACTIVITY: "resolve_activity",
    commands.CHILD: "resolve_child_workflow_execution",
    commands.SIGNAL_EXTERNAL: "resolve_signal_external_workflow",
    commands.CANCEL_EXTERNAL: "resolve_request_cancel_external_workflow",
    commands.TIMER: "fire_timer",
}
_INBOUND = {"signal_workflow": commands.SIGNAL, "do_update": commands.UPDATE, "cancel_workflow": commands.CANCEL}

type Walk = Callable[[ExecutionTurn], Against]
type Came = tuple[RecordedEffect, Inbound]


class Past:
    """`walk`: takes an execution that was imported from a history through today's code. `since`: the position of the
    cut; `own`: of what came from outside, the positions of what is edited. `unsure`: activities, by their positions, of
    which it is not known whether they streamed what came."""

    def __init__(self, recorded: Recorded, walk: Walk, since: int = 0, own: Container[int] = ()) -> None:
        self.recorded = recorded
        self.unsure: set[int] = set()
        self._walk = walk
        self._since = since
        self._own = own
        self._streamed: dict[int, dict[int, list[Came]]] = {}
        self._tasks: dict[int, list[Task]] = {}
        self._walked: dict[int, Against] = {}

    def tasks(self, step: int) -> list[Task]:
        """The activations of a step with their completions. Fresh messages, but the same each time."""
        found = self._tasks.get(step)
        if found is None:
            found = self.recorded.steps[step].tasks() or self._of_history(step)
            self._tasks[step] = found
        return found

    def against(self, step: int) -> Against | None:
        """The walked history that a step was imported from; None of a recorded one."""
        if self.recorded.steps[step].tasks():
            return None
        turn = self.turn_of(step)
        if turn.number not in self._walked:
            self._walked[turn.number] = self._walk(turn)
        return self._walked[turn.number]

    def _of_history(self, step: int) -> list[Task]:
        found = self.against(step)
        return [*found.pairs(step - self.turn_of(step).first)] if found is not None else []

    def turn_of(self, step: int) -> ExecutionTurn:
        return next(turn for turn in self.recorded.turns if step in turn.steps)

    def effect(self, begin: int) -> RecordedEffect | None:
        """The effect that began at this position."""
        return self._by_pos.get(begin)

    @cached_property
    def _by_pos(self) -> dict[int, RecordedEffect]:
        return {each.begin.pos: each for each in self.recorded.effects}

    def answer(self, effect: RecordedEffect) -> Given | None:
        """How it was answered; None where it was not. Of a timer, when it fired."""
        given = self._answer(effect)
        return None if given is None else replace(given, signals=self.signals(effect))

    def signals(self, effect: RecordedEffect) -> tuple[Signalled, ...]:
        """What an activity has streamed into the workflow after the cut."""
        if commands.FAMILY.get(effect.kind, commands.ACTIVITY) != commands.ACTIVITY:
            return ()
        sent = self._streams(self.turn_of(max(effect.asked, 0))).get(effect.begin.pos)
        if not sent:
            return ()
        asked = self._asked(effect, commands.ACTIVITY)
        return tuple(
            Signalled(inbound.at - (inbound.at if asked is None else asked), inbound.rank, inbound.jobs[0])
            for _, inbound in sent
        )

    def _answer(self, effect: RecordedEffect) -> Given | None:
        family = commands.FAMILY.get(effect.kind, commands.ACTIVITY)
        if effect.answered < 0 or effect.answered >= len(self.recorded.steps):
            return self._unanswered(effect) if family == commands.CHILD else None
        asked = self._asked(effect, family)
        told = self._told(effect.answered, _JOBS[family], effect.seq) or self._of_retry(effect)
        if told is None:
            return self._not_started(effect, asked) if family == commands.CHILD else None
        at, rank, job = told
        began = at if asked is None else asked
        said = getattr(job, _JOBS[family])
        if family == commands.CHILD:
            run_id, started = self._started(effect)
            return Given(said.result, at - began, run_id, max(started - began, 0), rank=rank)
        if family == commands.ACTIVITY:
            return Given(said.result, at - began, rank=rank)
        failure = said.failure if family != commands.TIMER and said.HasField("failure") else None
        return Given(failure, at - began, rank=rank)

    def _asked(self, effect: RecordedEffect, family: str) -> int | None:
        """When the workflow asked for it."""
        found = self._command(effect, family)
        return found[0] if found is not None else None

    def request(self, effect: RecordedEffect) -> Value:
        """What it was asked with, by the command itself: a history does not say that of a local activity, and the code
        that was walked through it does."""
        found = self._command(effect, commands.FAMILY.get(effect.kind, commands.ACTIVITY))
        return found[1].request if found is not None else None

    def _command(self, effect: RecordedEffect, family: str) -> tuple[int, Command] | None:
        asked = effect.asked if effect.answered < 0 else min(effect.asked, effect.answered)
        turn = self.turn_of(asked)
        for step in range(asked, turn.first - 1, -1):
            for activation, completion in self.tasks(step):
                for command in commands.commands_of(completion):
                    if command.waits and commands.FAMILY[command.kind] == family and command.seq == effect.seq:
                        return int(activation.timestamp.ToNanoseconds()), command
        return None

    def _told(self, step: int, job: str, seq: int) -> tuple[int, int, Any] | None:
        """When the workflow was told so, at which place among what it was told then, and how."""
        for activation, _ in self.tasks(step):
            for rank, each in enumerate(activation.jobs):
                if each.WhichOneof("variant") == job and getattr(each, job).seq == seq:
                    return activation.timestamp.ToNanoseconds(), rank, each
        return None

    def _of_retry(self, effect: RecordedEffect) -> tuple[int, int, Any] | None:
        """The answer to a local activity that was tried again after a timer: under the number of its last attempt,
        which is no other effect's."""
        for activation, _ in self.tasks(effect.answered):
            for rank, job in enumerate(activation.jobs):
                told = job.resolve_activity
                if not job.HasField("resolve_activity") or not told.is_local or told.result.HasField("backoff"):
                    continue
                if self.recorded.effect(commands.ACTIVITY, told.seq, effect.run_id) is None:
                    return activation.timestamp.ToNanoseconds(), rank, job
        return None

    def _not_started(self, effect: RecordedEffect, asked: int | None) -> Given | None:
        """Of a child that could not be started."""
        found = self._told(effect.answered, "resolve_child_workflow_execution_start", effect.seq)
        if found is None or not found[2].resolve_child_workflow_execution_start.HasField("failed"):
            return None
        at, _, job = found
        cause = job.resolve_child_workflow_execution_start.failed.cause
        return Given(after=at - (at if asked is None else asked), cause=cause)

    def _unanswered(self, effect: RecordedEffect) -> Given | None:
        """Of a child that had not ended when the recording did: how it started."""
        run_id, at = self._started(effect)
        asked = self._asked(effect, commands.CHILD)
        if not run_id:
            return None
        return Given(run_id=run_id, started=max(at - (at if asked is None else asked), 0), never=True)

    def _started(self, effect: RecordedEffect) -> tuple[str, int]:
        """The run id that a child started with, and when."""
        last = effect.answered if effect.answered >= 0 else self.turn_of(effect.asked).last
        for step in range(max(effect.asked, 0), last + 1):
            found = self._told(step, "resolve_child_workflow_execution_start", effect.seq)
            if found is not None:
                at, _, job = found
                return str(job.resolve_child_workflow_execution_start.succeeded.run_id), at
        return "", 0

    def inbound(self, turn: ExecutionTurn, after: int) -> list[Came]:
        """What came from outside in an execution and ended after a position of the log, each by itself: signals,
        updates that were not rejected, requests to cancel. Not what activities have streamed: see `signals`."""
        streamed = {effect.begin.pos for sent in self._streams(turn).values() for effect, _ in sent}
        return [
            (effect, inbound)
            for effect, inbound in self._came(turn)
            if effect.end is not None and effect.end.pos > after and effect.begin.pos not in streamed
        ]

    def _came(self, turn: ExecutionTurn) -> list[Came]:
        found: list[Came] = []
        came = [each for each in self.recorded.effects if each.inbound and each.answered in turn.steps]
        for step in sorted({each.answered for each in came}):
            here = [each for each in came if each.answered == step]
            jobs = [
                (activation, job, rank)
                for activation, _ in self.tasks(step)
                for rank, job in enumerate(activation.jobs)
            ]
            alone = all(job.WhichOneof("variant") in _INBOUND for _, job, _ in jobs)
            for effect in here:
                place = next((each for each in jobs if _INBOUND.get(each[1].WhichOneof("variant") or "") == effect.kind
                              and _named(each[1]) in ("", effect.name)), None)  # fmt: skip
                if place is None:
                    continue
                jobs.remove(place)
                at = place[0].timestamp.ToNanoseconds()
                found.append((effect, Inbound(step - turn.first, at, alone, (place[1],), place[2])))
        return found

    def _streams(self, turn: ExecutionTurn) -> dict[int, list[Came]]:
        """By position of an activity: what it has streamed after the cut."""
        found = self._streamed.get(turn.number)
        if found is None:
            found = self._streamed[turn.number] = self._sorted(turn) if self._has_stream(turn) else {}
        return found

    def _has_stream(self, turn: ExecutionTurn) -> bool:
        return any(each.name == streaming.PUBLISH and each.answered in turn.steps for each in self.recorded.effects)

    def _sorted(self, turn: ExecutionTurn) -> dict[int, list[Came]]:
        sent: dict[str, list[Came]] = {}
        for effect, inbound in self._came(turn):
            if id := streaming.publisher(inbound.jobs[0]):
                sent.setdefault(id, []).append((effect, inbound))
        activities = [
            each
            for each in self.recorded.effects
            if not each.inbound
            and commands.FAMILY.get(each.kind, commands.ACTIVITY) == commands.ACTIVITY
            and each.asked in turn.steps
        ]
        steps = {id: (came[0][0].answered, came[-1][0].answered) for id, came in sent.items()}
        found: dict[int, list[Came]] = {}
        for id, fit in streaming.owners(steps, activities).items():
            later = [
                each for each in sent[id] if each[0].begin.pos > self._since and each[0].begin.pos not in self._own
            ]
            asked = [each for each in fit if each.end is None or each.end.pos > self._since]
            if len(fit) == len(asked) == 1:
                found.setdefault(fit[0].begin.pos, []).extend(later)
            elif later and asked:
                self.unsure.update(each.begin.pos for each in asked)
        return found


def _named(job: Any) -> str:
    if job.HasField("signal_workflow"):
        return str(job.signal_workflow.signal_name)
    return str(job.do_update.name) if job.HasField("do_update") else ""
