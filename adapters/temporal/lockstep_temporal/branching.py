"""The branch of a fork, being written: its workflow tasks, and the calls that were asked for past the cut.

A `Recorder` writes the tasks of the workflow's own executions, as it does for a worker. What is asked for and answered
is written here, with how it was: edited, served, reused, or for real. Calls of children that are driven are effects of
the workflow's steps, in lanes of their own: the children's tasks are not kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec
from msgspec.structs import replace
from temporalio.api.common.v1 import Payloads
from temporalio.bridge.proto.workflow_activation import WorkflowActivation
from temporalio.bridge.proto.workflow_completion import WorkflowActivationCompletion

from lockstep.log.model import Event, Kind, Status, Value
from lockstep.session.effects import LiveCall
from lockstep.session.handed import Handed
from lockstep.session.native.forking import Forking
from lockstep.session.policy import Declared, classify
from lockstep.session.tape import Recorded as Taped
from lockstep_temporal import commands, executions, layout
from lockstep_temporal.actors import Actor
from lockstep_temporal.asks import Ask
from lockstep_temporal.commands import Command
from lockstep_temporal.opened import attempt_of, backoff_of
from lockstep_temporal.protos import plain
from lockstep_temporal.recording import Recorder
from lockstep_temporal.wording import Wording
from lockstep_temporal.world import World

type Place = tuple[str, str, int]  # lane of an execution, family of a command, its number

_FAMILIES: dict[str, str] = {
    "activity": commands.ACTIVITY, "child": commands.CHILD, "signal": commands.SIGNAL_EXTERNAL,
    "cancel": commands.CANCEL_EXTERNAL, "timer": commands.TIMER,
}  # fmt: skip


class Asked(msgspec.Struct, frozen=True):
    """A call as the log has it: hidden, and with its match key."""

    kind: str
    name: str
    request: Value
    key: bytes
    declared: Declared | None = None


class Told(LiveCall):
    """A call of a fork's tail, as the branch has it. `how` it is answered, "live" for by a function that runs."""

    __slots__ = ("asked", "backoff", "how", "more", "runs")

    def __init__(self, calls: Forking, lane: str, asked: Asked, how: str, more: Mapping[str, Value]) -> None:
        super().__init__(calls, calls.journal.strand(lane), asked.kind, None)
        self.asked = asked
        self.how = how
        self.more = more
        self.runs = ("", 0)  # the execution that asked, and its number there
        self.backoff: Any = None  # a local activity: which attempt a timer is waited for, see `batch.backoff_of`
        self.name = asked.name
        self._begin(asked.request, "", self._known)

    def _known(self, event: Event) -> Event:
        """Its BEGIN: all that is in it is hidden already."""
        asked, session = self.asked, self.session
        self._handed = Handed(asked.key, event.pos)
        session.count(asked.kind)
        declared = classify(asked.kind, asked.name, asked.request, asked.declared, session.effect_rules)
        body = {**self.more, "request": asked.request, "class": declared}
        return replace(event, what=asked.kind, name=asked.name, key=asked.key, body=body)

    def answered(self, status: str, body: Value) -> None:
        """It ended, with what the log keeps of it."""
        if self._ended or not self.pos:
            return
        self._ended = True
        session = self.session
        how = "" if self.how == "live" else self.how
        session.emit(
            Kind.END, self.lane.name, session.position(), status, how, self.pos, -1, body=body, finish=self._over
        )


class LiveAttempt:
    """An attempt at an activity, as `attempts` writes those of a worker."""

    def __init__(self, branch: Branch, call: Told, name: str, number: int, beat: Sequence[Any]) -> None:
        self._branch = branch
        self._lane = call.lane.name
        self._journal = branch.calls.journal
        self._pos = self._journal.position()
        request: dict[str, Value] = {"attempt": number}
        if beat:
            request["heartbeat"] = branch.payloads(beat)
        self._journal.emit(Kind.BEGIN, self._lane, self._pos, layout.ATTEMPT, name, call.pos, body={"request": request})

    def beat(self, details: Sequence[Any]) -> None:
        body = self._branch.payloads(details)
        self._journal.emit(Kind.PART, self._lane, self._journal.position(), "", "", self._pos, body=body)

    def end(self, status: str, failure: Any) -> None:
        body = self._branch.failure(failure) if status == Status.ERROR else None
        self._journal.emit(Kind.END, self._lane, self._journal.position(), status, "", self._pos, body=body)


class Branch:
    """Writes. `later_keys`: match keys of what is recorded past the cut; `taken`: positions of what of it has answered
    a call."""

    def __init__(self, calls: Forking, recorder: Recorder, wording: Wording) -> None:
        self.calls = calls
        self.recorder = recorder
        self.recorder.ends = partial(self._end, layout.LANE)
        self.wording = wording
        self.steps = 0
        self._open: dict[Place, Told] = {}
        self._attempts: dict[tuple[str, int], LiveAttempt] = {}
        self.taken: set[int] = set()
        tape = calls.later.tape
        self._later = [effect for lane in tape.lanes.values() for effect in lane.effects]
        self._later.sort(key=lambda effect: effect.begin.pos)
        self.later_keys = {effect.begin.key for effect in self._later}

    def later(self, kind: str, name: str) -> Iterable[Taped]:
        """What is recorded past the cut of a kind and name and was not used by its place, in its order."""
        return (
            effect
            for effect in self._later
            if effect.begin.what == kind and effect.begin.name == name and effect.begin.pos not in self.taken
        )

    def has(self, key: bytes) -> bool:
        """Whether the record has such a call that was not used, be it one that was never answered."""
        return any(effect.begin.key == key and effect.begin.pos not in self.taken for effect in self._later)

    def take(self, effect: Taped) -> None:
        """It has answered a call."""
        self.taken.add(effect.begin.pos)

    def begin(self, actor: Actor, ask: Ask, asked: Asked, how: str) -> int:
        """A call is asked for. Returns its provisional position."""
        call = Told(self.calls, actor.lane, asked, how, {"seq": ask.seq})
        call.runs = actor.world.run_id, ask.seq
        self._open[_place(actor, ask)] = call
        return call.pos

    def goes_on(self, actor: Actor, ask: Ask) -> bool:
        """Whether it is the next attempt of a local activity that runs for real: the same call."""
        if not ask.is_local or ask.command.attempt <= 1:
            return False
        attempt = attempt_of(command_of(ask))
        for place, call in self._open.items():
            if place[0] == actor.lane and call.backoff == attempt:
                del self._open[place]
                self._open[_place(actor, ask)] = call
                call.runs = actor.world.run_id, ask.seq
                return True
        return False

    def attempt(self, world: World, ask: Ask, number: int, status: str, value: Any) -> None:
        """Of an activity that runs for real: see `trying.Activities`. It stands inside the activity's effect."""
        at = world.run_id, ask.seq
        if status == "":
            call = next((each for each in self._open.values() if each.runs == at), None)
            if call is not None:
                self._attempts[at] = LiveAttempt(self, call, f"{ask.command.activity_type}#{number}", number, value)
            return
        attempt = self._attempts.get(at)
        if attempt is None:
            return
        if status == "beat":
            attempt.beat(value)
            return
        del self._attempts[at]
        attempt.end(status, value)

    def run_id(self, actor: Actor, ask: Ask) -> str:
        """For a child that an edit answers and that was never started."""
        return executions.run_id(actor.world.run_id, ask.command.workflow_id) if ask.sort == "child" else ""

    def payloads(self, given: Sequence[Any]) -> Value:
        """What payloads hold, as the log has it."""
        said = self.wording.task()
        message: Any = said.message(Payloads(payloads=given)) if self.wording.coded else None
        said.finish()
        return [plain(each) for each in given] if message is None else message["payloads"]

    def failure(self, given: Any) -> Value:
        """A failure, as the log has it."""
        said = self.wording.task()
        form = layout.failure_form(given, write=said.message)
        said.finish()
        return form

    def task(self, actor: Actor, activation: WorkflowActivation, completion: WorkflowActivationCompletion) -> None:
        """A workflow task was done, or a part of one. What an activation brings is the end of the calls that it
        answers."""
        said = self.wording.task()
        answers = said.answers(activation)
        for job in answers:
            call = self._open.get((actor.lane, commands.FAMILY.get(job.kind, ""), job.seq))
            if job.status == commands.BACKOFF and call is not None:
                call.backoff = backoff_of(job)
        if actor.lane == layout.LANE and not completion.HasField("failed"):
            self.steps += bool(self.recorder.task(activation, completion))  # it says when they end
            return
        ended = [(job, said.outcome(job)) for job in answers if job.ends]
        said.finish()
        for job, body in ended:
            self._end(actor.lane, (commands.FAMILY.get(job.kind, ""), job.seq), job.status, body)
        for command in completion.successful.commands:
            if command.HasField("cancel_timer"):  # which ends with that
                self._end(actor.lane, (commands.TIMER, command.cancel_timer.seq), Status.CANCELLED, None)
        if actor.lane == layout.LANE:
            self.recorder.task(activation, completion)

    def _end(self, lane: str, at: tuple[str, int], status: str, body: Value) -> None:
        call = self._open.pop((lane, *at), None)
        if call is not None:
            call.answered(status, body)


def command_of(ask: Ask) -> Command:
    """An ask as what is written of it."""
    holder = WorkflowActivationCompletion()
    holder.successful.commands.append(ask.message)
    return commands.commands_of(holder)[0]


def _place(actor: Actor, ask: Ask) -> Place:
    return actor.lane, _FAMILIES[ask.sort], ask.seq
