"""What is recorded of a native run, as those who replay and fork it ask for it: turns, steps and calls.

record = Record(store.run("langgraph/t-91"))
for turn in record.turns: turn.number, turn.entry, record.request(turn), record.seed(turn), record.result(turn)
record.steps                              the checkpoints, by position
record.tape(turn.pos, turn.stop)          the calls that were begun in that stretch
"""

from __future__ import annotations

import sys
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from functools import cached_property
from typing import Any

import msgspec
from msgspec.structs import replace

from lockstep.log.model import Event, Kind, Value
from lockstep.log.native import Closing
from lockstep.log.steps import TURN
from lockstep.log.store import RunReader
from lockstep.session.tape import Recorded, Tape


class RecordedTurn(msgspec.Struct, frozen=True):
    """One native invocation.

    number  from 1
    pos     of its BEGIN, `seq` that event's number
    stop    position of the first event that belongs to another turn; sys.maxsize of the last one
    entry   the method: invoke, stream, ainvoke, …
    end     its END event without body, `end_seq` its number; None where it has none: it goes on, or was cut off
    left    whether the branch left its parent in it: what follows is another turn, from the checkpoint that was
            restored there
    """

    number: int
    pos: int
    seq: int
    stop: int
    entry: str
    end: Event | None
    end_seq: int
    left: bool = False

    @property
    def interrupted(self) -> bool:
        """Whether it has no end: what follows its last event is not known."""
        return self.end is None


class Record:
    """One branch of a native run, read. Reads the heads of its events once, and bodies when they are asked for.

    upto   position after which it knows of nothing: that of the branch's last event, if not told
    again  what was in flight where a branch left another one is no part of it: it is asked for anew
    """

    def __init__(self, reader: RunReader, upto: int = sys.maxsize, *, again: bool = False) -> None:
        self.reader = reader
        self.upto = upto
        self._again = again

    @cached_property
    def heads(self) -> list[tuple[int, Event]]:
        """All events with their numbers (seq), in the order of positions."""
        found = [(seq, event) for seq, event in self.reader.heads(self.reader.main) if event.pos <= self.upto]
        found.sort(key=lambda item: item[1].pos)
        return found

    @cached_property
    def turns(self) -> tuple[RecordedTurn, ...]:
        """The turns that began in this branch, or that it shares, in their order."""
        found: list[RecordedTurn] = []
        open_: dict[int, int] = {}
        for seq, event in self.heads:
            if event.kind is Kind.BEGIN and event.what == TURN:
                if found and found[-1].stop == sys.maxsize:
                    found[-1] = replace(found[-1], stop=event.pos)
                open_[event.pos] = len(found)
                found.append(RecordedTurn(len(found) + 1, event.pos, seq, sys.maxsize, event.name, None, -1))
            elif event.kind is Kind.FORK and found:
                for number in open_.values():
                    found[number] = replace(found[number], left=True)
                found[-1] = replace(found[-1], stop=event.pos)
                open_.clear()
            elif event.kind is Kind.END and event.of in open_:
                number = open_.pop(event.of)
                found[number] = replace(found[number], end=event, end_seq=seq)
        return tuple(found)

    @cached_property
    def steps(self) -> tuple[tuple[int, Event], ...]:
        """The STEP events with their numbers (seq); the first is step 0."""
        return tuple((seq, event) for seq, event in self.heads if event.kind is Kind.STEP)

    def request(self, turn: RecordedTurn) -> Value:
        """What the turn was begun with, as `Journal.begin_turn` had it, but for its secrets, which are hidden."""
        return self._of(turn).get("request")

    def seed(self, turn: RecordedTurn) -> bytes:
        found = self._of(turn).get("seed")
        return found if isinstance(found, bytes) else b""

    def result(self, turn: RecordedTurn) -> Value:
        """What it returned, or its encoded exception; None where it has no end."""
        return self.body(turn.end_seq) if turn.end is not None else None

    def body(self, seq: int) -> Value:
        return self.reader.body(self.reader.main, seq)

    def field(self, seq: int, name: str) -> Value:
        return self.reader.field(self.reader.main, seq, name)

    def tape(self, first: int = 0, stop: int = sys.maxsize) -> Tape:
        """The calls that were begun at positions [first, stop), with all that came of them wherever that lies."""
        at = [bisect_left(self._begun, pos, key=_position) for pos in (first, stop)]
        return self._tape(self._begun[at[0] : at[1]])

    def split(self, since: int, upto: int) -> tuple[Tape, Tape]:
        """Of the calls that were begun after position `since`: those that were answered up to `upto`, and all others,
        also those in flight there."""
        over: list[tuple[int, Event]] = []
        others: list[tuple[int, Event]] = []
        for begun in self._begun[bisect_right(self._begun, since, key=_position) :]:
            pieces = self._pieces.get(begun[1].pos, ())
            answered = any(event.kind is Kind.END and event.pos <= upto for _, event in pieces)
            (over if answered else others).append(begun)
        return self._tape(over), self._tape(others)

    @cached_property
    def _begun(self) -> list[tuple[int, Event]]:
        """The BEGIN events of calls, with their numbers (seq)."""
        every = [(seq, event) for seq, event in self.heads if event.kind is Kind.BEGIN and event.what != TURN]
        if not self._again:
            return every
        ended = {event.of for _, event in self.heads if event.kind is Kind.END}
        left = max((event.pos for _, event in self.heads if event.kind is Kind.FORK), default=0)
        return [(seq, event) for seq, event in every if event.pos > left or event.pos in ended]

    @cached_property
    def _pieces(self) -> dict[int, list[tuple[int, Event]]]:
        """What came of each call, by the position where it began."""
        found: dict[int, list[tuple[int, Event]]] = {}
        for seq, event in self.heads:
            if event.kind in (Kind.PART, Kind.END):
                found.setdefault(event.of, []).append((seq, event))
        return found

    def _tape(self, begun: list[tuple[int, Event]]) -> Tape:
        heads = [*begun, *(piece for _, event in begun for piece in self._pieces.get(event.pos, ()))]
        return Tape(heads, self.body, self.field, numbered=self.step_of, ordered=False)

    def step_of(self, at: int | Recorded) -> int:
        """The number of the step to which an effect belongs: the next one of its lane's checkpoints after it was over.
        Of a position, that of the next step."""
        if not isinstance(at, Recorded):
            return bisect_left(self._positions, at)
        over = bisect_left(self._positions, at.pieces[-1][1].pos if at.ended else at.begin.pos)
        own = (n for n in range(over, len(self.steps)) if self._closes[n](at.begin.lane))
        return next(own, len(self.steps))

    @cached_property
    def _closes(self) -> list[Callable[[str], bool]]:
        """By step: whether it closes over what happened in a lane."""
        closing = Closing()
        return [closing.over(event) for _, event in self.steps]

    def position(self, step: int) -> int:
        """The position at which step `step` was closed."""
        return self._positions[step]

    def last_step(self, pos: int) -> int:
        """The number of the last step that was closed up to a position, -1 for none."""
        return bisect_right(self._positions, pos) - 1

    @cached_property
    def _positions(self) -> list[int]:
        return [event.pos for _, event in self.steps]

    def _of(self, turn: RecordedTurn) -> dict[str, Any]:
        found = self.body(turn.seq)
        return found if isinstance(found, dict) else {}


def _position(item: tuple[int, Event]) -> int:
    return item[1].pos
