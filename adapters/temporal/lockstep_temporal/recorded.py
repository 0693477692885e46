"""What is recorded of a workflow's executions, for all who replay, fork, import beside it and show it.

    recorded = Recorded(store.run("temporal/order-7"), secrets, decode)
    for turn in recorded.turns: turn.run_id, turn.cause, turn.steps, turn.status
    recorded.steps[4].tasks()        [(activation, completion), …] as messages; of an imported one []
    recorded.steps[4].events()       [HistoryEvent, …] of an imported one
    recorded.effects                 every command that waits and all that came: kind, name, seq, positions
    recorded.effect("activity", 3, run_id)

Reads the heads of a branch's events once, and bodies when they are asked for.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import msgspec
from google.protobuf.message import Message
from msgspec.structs import replace
from temporalio.bridge.proto.workflow_activation import WorkflowActivation
from temporalio.bridge.proto.workflow_completion import WorkflowActivationCompletion

from lockstep.errors import Code, StoreError
from lockstep.log.model import Event, Kind, Value
from lockstep.log.steps import TURN
from lockstep.log.store import RunReader
from lockstep.session.native.record import Record, RecordedTurn
from lockstep.session.secrets import Secrets
from lockstep_temporal import commands, layout
from lockstep_temporal.protos import ToPayload, is_encoded, of_value, payload_value, plain

type Task = tuple[WorkflowActivation, WorkflowActivationCompletion]


class ExecutionTurn(msgspec.Struct, frozen=True):
    """One execution of the chain, or the part of it that a branch has: where it left another one in the middle of an
    execution, and goes on with that, both are one.

    number     from 1
    run_id     of the execution
    cause      why it began: start, continue_as_new, cron, retry; reset
    continued_from  run id of the execution before it, "" for none
    arguments  plain
    seqs       numbers of the BEGIN events, the last one where it goes on; `pos`: position of that
    first      number of its first step, `last` of its last one; -1 where there is none
    status     ok, error or cancelled; "" while it is on, or where it was cut off
    end_seq    number of its END event, -1 for none
    left       whether the branch left its parent in it, and has not gone on with it yet
    """

    number: int
    run_id: str
    workflow_type: str
    cause: str
    arguments: list[Value]
    seqs: tuple[int, ...]
    pos: int
    first: int
    last: int
    status: str
    end_seq: int
    left: bool
    continued_from: str = ""

    @property
    def steps(self) -> range:
        """The numbers of its steps."""
        return range(self.first, self.last + 1) if self.first >= 0 else range(0)


class RecordedEffect(msgspec.Struct, frozen=True):
    """A command that waits for an answer, or what came without one: a signal, an update, a cancel request.

    kind, name  as recorded: of AI frameworks "model" and "tool" too
    seq         number of the command in its family, -1 of what came, and where it is not known
    run_id      of the execution
    begin       its BEGIN event without body, `begin_seq` that event's number
    end         its END event without body, `end_seq` its number; None and -1 without an answer
    asked       number of the step whose commands it is of; of what came, that of the step it came with
    answered    number of the step that its answer came with, -1 for none
    """

    kind: str
    name: str
    seq: int
    run_id: str
    begin: Event
    begin_seq: int
    end: Event | None
    end_seq: int
    asked: int
    answered: int

    @property
    def inbound(self) -> bool:
        return self.kind in commands.INBOUND


class RecordedStep:
    """One workflow task.

    number    from 0; `pos` and `seq` of its STEP event, `event` that without body
    turn      number of its turn
    """

    def __init__(self, recorded: Recorded, number: int, seq: int, event: Event, turn: int) -> None:
        self.number = number
        self.seq = seq
        self.event = event
        self.turn = turn
        self._recorded = recorded

    @property
    def pos(self) -> int:
        return self.event.pos

    @property
    def run_id(self) -> str:
        return str(self.field("run_id") or "")

    @property
    def history_length(self) -> int:
        """Of the history, at its last activation."""
        found = self.field("history_length")
        return found if isinstance(found, int) else 0

    @property
    def lengths(self) -> list[int]:
        """Of the history, at each of its activations."""
        found = self.field("lengths")
        return [length for length in found if isinstance(length, int)] if isinstance(found, list) else []

    @property
    def record(self) -> Mapping[str, Any]:
        """Its body as it is stored: secrets are hidden in it."""
        found = self._recorded.record.body(self.seq)
        return found if isinstance(found, dict) else {}

    def field(self, name: str) -> Value:
        """One entry of its body, as it is stored. Takes little where that is small."""
        return self._recorded.record.field(self.seq, name)

    def tasks(self) -> list[Task]:
        """Its activations with their completions: fresh messages. [] of a step that a history has been imported to.
        Raises StoreError LS202."""
        told = self._recorded.reveal(self.field("tasks"))
        if not isinstance(told, list):
            return []
        made = []
        for pair in told:
            if not isinstance(pair, list) or len(pair) != 2:
                raise StoreError(Code.DAMAGED, f"step {self.number} of a workflow has a task that is no pair")
            made.append(
                (self._message(pair[0], WorkflowActivation), self._message(pair[1], WorkflowActivationCompletion))
            )
        return made

    def events(self) -> list[Any]:
        """The events of its history (HistoryEvent), where it was imported; [] of a recorded one. As the server had
        them: where there is a codec, encoded. Raises StoreError LS202."""
        return self._recorded.history(self.field("events"))

    def _message[M: Message](self, value: Value, cls: type[M]) -> M:
        return of_value(value, cls, self._recorded.decode)


class Recorded:
    """One branch of a workflow's run.

    record   of core, for all that is not Temporal's own
    secrets  those of the run, `lockstep.session.native.kept.recalled`; None: they stay hidden
    decode   makes a payload of its entry where a codec has encoded it; None: it stays encoded
    """

    def __init__(
        self, reader: RunReader, secrets: Secrets | None = None, decode: ToPayload | None = None,
        upto: int = sys.maxsize,
    ) -> None:  # fmt: skip
        """`upto`: the position after which it knows of nothing."""
        self.reader = reader
        self.record = Record(reader, upto)
        self.secrets = secrets
        self.decode = decode

    @property
    def meta(self) -> Mapping[str, Any]:
        found = self.reader.meta
        return found if isinstance(found, Mapping) else {}

    @property
    def native(self) -> Mapping[str, Any]:
        """{"workflow_id", "first_run_id", "namespace", "workflow_type"}."""
        return layout.native(self.reader.meta)

    @property
    def origin(self) -> str:
        """Who made it: worker, history or interceptor; the last one cannot be replayed."""
        return str(self.meta.get("origin") or "")

    def reveal(self, value: Value) -> Value:
        return self.secrets.reveal(value) if self.secrets is not None else value

    def body(self, seq: int) -> Value:
        """The body of an event, revealed and decoded."""
        return self._read(self.record.body(seq))

    def request(self, effect: RecordedEffect) -> Value:
        """What was asked, plain."""
        return self._read(self.record.field(effect.begin_seq, "request"))

    def _read(self, value: Value) -> Value:
        revealed = self.reveal(value)
        return revealed if self.decode is None else _decoded(revealed, self.decode)

    def answer(self, effect: RecordedEffect) -> Value:
        """Its value, or its encoded failure (`layout.failure_form`); None without one."""
        return self.body(effect.end_seq) if effect.end is not None else None

    @cached_property
    def turns(self) -> tuple[ExecutionTurn, ...]:
        """The executions, in their order."""
        found: list[ExecutionTurn] = []
        for turn in self.record.turns:
            made = self._turn(turn)
            before = found[-1] if found else None
            goes_on = before is not None and (before.run_id == made.run_id or made.cause == layout.RESET)
            if before is not None and goes_on and before.left:
                made = replace(
                    made, number=before.number, cause=before.cause,
                    continued_from=before.continued_from, seqs=before.seqs + made.seqs,
                    first=before.first if before.first >= 0 else made.first,
                    last=made.last if made.first >= 0 else before.last,
                )  # fmt: skip
                found.pop()
            found.append(replace(made, number=len(found) + 1))
        return tuple(found)

    def _turn(self, turn: RecordedTurn) -> ExecutionTurn:
        asked = self._read(self.record.request(turn))
        told: dict[str, Any] = asked if isinstance(asked, dict) else {}
        last = self.record.last_step(turn.stop - 1)
        first = self.record.last_step(turn.pos) + 1
        here = last >= first
        arguments = told.get("arguments")
        return ExecutionTurn(
            turn.number, str(told.get("run_id", "")), turn.entry, str(told.get("cause", "")),
            arguments if isinstance(arguments, list) else [], (turn.seq,), turn.pos,
            first if here else -1, last if here else -1, str(turn.end.what) if turn.end is not None else "",
            turn.end_seq, turn.left, str(told.get("continued_from", "")),
        )  # fmt: skip

    def before(self, step: int) -> int:
        """The position before all that came with step number `step`, and behind all that the one before it has
        commanded: where a branch leaves in which that workflow task is another one. Of the first step of a turn, before
        that began. With the number of steps: before what has come since the last one."""
        steps = self.record.steps
        after = steps[step - 1][1].pos if step else 0
        stop = steps[step][1].pos if step < len(steps) else sys.maxsize
        begun = {event.pos: event for _, event in self.record.heads if event.kind is Kind.BEGIN}
        at = after
        for _, event in self.record.heads:
            if not after < event.pos < stop:
                continue
            if event.kind is Kind.BEGIN and (event.what in commands.INBOUND or event.what == TURN):
                break
            of = begun.get(event.of) if event.kind is Kind.END else None
            if of is not None and of.what != TURN and not of.of:
                break
            at = event.pos
        return at

    def in_flight(self, at: int) -> tuple[RecordedEffect, ...]:
        """The commands of the turn that is on at a position which had no answer there."""
        begun = [turn.pos for turn in self.record.turns if turn.pos <= at]
        return tuple(
            effect
            for effect in self.effects
            if not effect.inbound
            and begun
            and begun[-1] < effect.begin.pos <= at
            and (effect.end is None or effect.end.pos > at)
        )

    @cached_property
    def steps(self) -> tuple[RecordedStep, ...]:
        """The steps; the first is step 0."""
        of = {number: turn.number for turn in self.turns for number in turn.steps}
        return tuple(
            RecordedStep(self, number, seq, event, of.get(number, 0))
            for number, (seq, event) in enumerate(self.record.steps)
        )

    @cached_property
    def effects(self) -> tuple[RecordedEffect, ...]:
        """All outermost effects, in the order in which they began. What was in flight where the branch left its parent,
        and was begun anew in it, is there once."""
        begun: dict[int, RecordedEffect] = {}
        run_ids = {turn.number: turn.run_id for turn in self.turns}
        turn_of = {step.number: run_ids.get(step.turn, "") for step in self.steps}
        closed = 0  # steps so far
        for seq, event in self.record.heads:
            if event.kind is Kind.STEP:
                closed += 1
            elif event.kind is Kind.BEGIN and event.what != TURN and not event.of:
                step = closed if self._comes_first(seq, event.what) else closed - 1
                run_id = turn_of.get(max(step, 0), "")
                begun[event.pos] = RecordedEffect(event.what, event.name, -1, run_id, event, seq, None, -1, step, -1)
            elif event.kind is Kind.END and event.of in begun:
                begun[event.of] = replace(begun[event.of], end=event, end_seq=seq, answered=closed)
            elif event.kind is Kind.FORK:
                begun = {pos: effect for pos, effect in begun.items() if effect.end is not None}
        return tuple(self._numbered(list(begun.values())))

    def _comes_first(self, seq: int, kind: str) -> bool:
        """Whether an effect stands before its step: what comes from outside, and local activities."""
        if kind in commands.INBOUND or kind == commands.LOCAL_ACTIVITY:
            return True
        return kind not in commands.FAMILY and self.record.field(seq, "local") is True

    def _numbered(self, effects: list[RecordedEffect]) -> list[RecordedEffect]:
        """With the numbers of their commands. Those that a fork's own calls have begun do not say them: of one kind and
        name they come in the order of the commands."""
        found = []
        unsaid: deque[int] = deque()
        for at, effect in enumerate(effects):
            seq = -1
            if not effect.inbound:
                said = self.record.field(effect.begin_seq, "seq")
                if isinstance(said, int):
                    seq = said
                else:
                    unsaid.append(at)
            found.append(replace(effect, seq=seq))
        if unsaid:
            self._number_by_order(found, unsaid)
        return found

    def _number_by_order(self, effects: list[RecordedEffect], unsaid: deque[int]) -> None:
        known = {(each.run_id, _family(each.kind), each.seq) for each in effects if each.seq >= 0}
        waiting: dict[tuple[str, str, str], deque[int]] = {}
        for step in self.steps:
            for _, completion in step.tasks():
                for command in commands.commands_of(completion):
                    family = commands.FAMILY.get(command.kind, "")
                    if command.waits and (step.run_id, family, command.seq) not in known:
                        key = (step.run_id, family, _said_name(command))
                        waiting.setdefault(key, deque()).append(command.seq)
        for at in unsaid:
            effect = effects[at]
            family = _family(effect.kind)
            queue = waiting.get((effect.run_id, family, effect.name)) or waiting.get((effect.run_id, family, ""))
            if queue:
                effects[at] = replace(effect, seq=queue.popleft())

    @cached_property
    def _by_seq(self) -> dict[tuple[str, str, int], RecordedEffect]:
        return {(each.run_id, _family(each.kind), each.seq): each for each in self.effects if each.seq >= 0}

    def effect(self, kind: str, seq: int, run_id: str = "") -> RecordedEffect | None:
        """The effect of a command by its kind, or that of its family, and number; in the last execution where none is
        named."""
        of = run_id or (self.turns[-1].run_id if self.turns else "")
        return self._by_seq.get((of, _family(kind), seq))

    def rest(self) -> list[Any]:
        """Events of the imported history after its last workflow task (HistoryEvent)."""
        found: list[Any] = []
        for seq, event in self.record.heads:
            if event.kind is Kind.WRITES and event.what == layout.REST:
                found += self.history(self.record.field(seq, "events"))
        return found

    def history(self, told: Value) -> list[Any]:
        """Events of a history (HistoryEvent), by an entry of a body that has some."""
        from temporalio.api.history.v1 import HistoryEvent

        value = self.reveal(told)
        return [of_value(item, HistoryEvent) for item in value] if isinstance(value, list) else []


def _decoded(value: Value, decode: ToPayload, exact: bool = False) -> Value:
    """With payloads that a codec has encoded as plain data; as entries inside of a failure (`exact`)."""
    if isinstance(value, list):
        return [_decoded(each, decode, exact) for each in value]
    if not isinstance(value, dict):
        return value
    if is_encoded(value):
        payload = decode(value)
        return payload_value(payload) if exact else plain(payload)
    form = "module" in value and layout.FAILURE in value
    return {key: _decoded(each, decode, exact or (form and key == layout.FAILURE)) for key, each in value.items()}


def _family(kind: str) -> str:
    """The family of an effect's kind: those of AI frameworks are activities."""
    return commands.FAMILY.get(kind, commands.ACTIVITY)


def _said_name(command: commands.Command) -> str:
    """A command's name as its effect has it."""
    from lockstep_temporal import naming

    return naming.effect_of(command).name
