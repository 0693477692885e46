"""What is recorded of a native run whose framework's own code does it again, for all who replay and fork it.

    recorded = Recorded(store.run("autogen/refund"))
    for run in recorded.runs: run.first, run.last, run.entry, run.status
    recorded.steps_of(run)

What a user has it do is one turn: a run of a team, a kickoff of a crew. Where a branch has left another one in the
middle of that, it goes on in a turn of the branch, so one run has several turns then.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import msgspec

from lockstep.log.address import called
from lockstep.log.model import Event, Kind, Status, Value
from lockstep.log.store import RunReader
from lockstep.session.native.record import Record, RecordedTurn

GOES_ON = "goes_on"  # of the request of a turn: it is the rest of the one before
# The same of a fork by state, whose object had not done what came before: what it returns is of the rest only.
RESTORED = {GOES_ON: True, "restored": True}

CONSISTENT = "consistent"  # of a step's record: False where it was made of what was left when a run was cut off

_GOOD = (Status.OK, Status.CLOSED)


class Ran(msgspec.Struct, frozen=True):
    """What a user had it do once.

    number    from 1
    turns     that it is recorded in, in their order
    restored  whether the last of them was gone on with by its state: what it returned is only of that
    """

    number: int
    turns: tuple[RecordedTurn, ...]

    @property
    def first(self) -> RecordedTurn:
        return self.turns[0]

    @property
    def last(self) -> RecordedTurn:
        return self.turns[-1]

    @property
    def pos(self) -> int:
        return self.first.pos

    @property
    def stop(self) -> int:
        """Position of the first event that is no part of it."""
        return self.last.stop

    @property
    def entry(self) -> str:
        return self.first.entry

    restored: bool = False

    @property
    def status(self) -> str:
        """How it ended, "" where it was cut off."""
        return str(self.last.end.what) if self.last.end is not None else ""

    @property
    def interrupted(self) -> bool:
        return self.last.interrupted


class RecordedStep(msgspec.Struct, frozen=True):
    """One step. `number`: in the branch; `pos`: of its STEP event."""

    number: int
    seq: int
    event: Event

    @property
    def pos(self) -> int:
        return self.event.pos


class Recorded:
    """One branch of such a run. Reads heads once, and bodies when they are asked for."""

    def __init__(self, reader: RunReader) -> None:
        self.reader = reader
        self.record = Record(reader, again=True)
        self.meta: Mapping[str, Any] = reader.meta if isinstance(reader.meta, Mapping) else {}
        self.address = called(reader.info.name, reader.branch)

    @cached_property
    def steps(self) -> tuple[RecordedStep, ...]:
        return tuple(RecordedStep(number, seq, event) for number, (seq, event) in enumerate(self.record.steps))

    @cached_property
    def runs(self) -> tuple[Ran, ...]:
        found: list[list[RecordedTurn]] = []
        for turn in self.record.turns:
            request = self.record.request(turn)
            if found and isinstance(request, dict) and request.get(GOES_ON) is True:
                found[-1].append(turn)
            else:
                found.append([turn])
        return tuple(
            Ran(number, tuple(turns), self.record.request(turns[-1]) == RESTORED)
            for number, turns in enumerate(found, 1)
        )

    def steps_of(self, run: Ran) -> tuple[RecordedStep, ...]:
        return tuple(step for step in self.steps if run.pos < step.pos < run.stop)

    def body(self, step: RecordedStep) -> Mapping[str, Any]:
        found = self.record.body(step.seq)
        return found if isinstance(found, Mapping) else {}

    def asked(self, run: Ran) -> Mapping[str, Any]:
        """What the run was begun with, with its secrets hidden."""
        found = self.record.request(run.first)
        return found if isinstance(found, Mapping) else {}

    def result(self, run: Ran) -> Value:
        """What it returned, or its encoded exception; None where it was cut off."""
        return self.record.result(run.last)

    @property
    def whole(self) -> int:
        """The position up to which nothing was broken off: that of the last whole step, or of the last good answer."""
        turns = {turn.pos for turn in self.record.turns}
        answered = [
            event.pos for _, event in self.record.heads
            if event.kind is Kind.END and event.what in _GOOD and event.of not in turns
        ]  # fmt: skip
        return max([*answered, *(step.pos for step in self.steps if not self.is_broken(step))], default=0)

    def is_broken(self, step: RecordedStep) -> bool:
        """Whether a step is what had been said when a run was cut off, and no cut."""
        return self.record.field(step.seq, CONSISTENT) is False
