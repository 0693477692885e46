"""What a fork keeps of tasks that had finished beside one that runs again: also the calls that they made.

They lie beyond the place where the branch leaves, as what these tasks wrote does. Without them the branch would look as
if the tasks had never asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from msgspec.structs import replace

from lockstep.log.model import Event, Kind
from lockstep.log.steps import TURN
from lockstep.session.native.journal import Journal
from lockstep.session.native.record import Record
from lockstep_langgraph.planning import Wrote

SERVED = "served"  # how an answer in a branch came, that was another's


def calls(journal: Journal, record: Record, kept: Sequence[Wrote], cut: int) -> None:
    """Records in the branch the calls that tasks made whose writes it keeps, from after the cut."""
    placed: dict[int, int] = {}
    spans = [_span(record, wrote) for wrote in kept]
    last = max((stop for _, _, stop in spans), default=0)
    for seq, event in record.heads:
        if event.pos <= cut or event.pos > last:
            continue
        if event.kind is Kind.BEGIN and event.what != TURN and _of_one(event, spans):
            placed[event.pos] = journal.position()
            journal.emit(
                Kind.BEGIN, event.lane, placed[event.pos], event.what, event.name, placed.get(event.of, 0),
                body=record.body(seq), finish=partial(_keyed, event.key),
            )  # fmt: skip
        elif event.kind in (Kind.PART, Kind.END) and event.of in placed:
            name = SERVED if event.kind is Kind.END else event.name
            journal.emit(
                event.kind, event.lane, journal.position(), event.what, name, placed[event.of],
                body=record.body(seq), finish=partial(_keyed, event.key),
            )  # fmt: skip


type _Span = tuple[str, int, int]  # a task's lane, and between which positions it made its calls


def _span(record: Record, wrote: Wrote) -> _Span:
    """What a task wrote may come late, when another one of the same lane has begun."""
    of = wrote.event.of
    led = (event.pos for _, event in record.steps if event.of == of)
    return wrote.event.lane, of, next(led, wrote.event.pos)


def _of_one(call: Event, spans: Sequence[_Span]) -> bool:
    return any(first < call.pos < stop and _asks(call.lane, lane) for lane, first, stop in spans)


def _asks(lane: str, task: str) -> bool:
    """Whether a call of this lane is a task's own, one of its parts', or one in a graph that it ran."""
    return lane == task or lane.startswith((f"{task}/", f"{task}~", f"{task}>"))


def _keyed(key: bytes, event: Any) -> Event:
    """What is stored already: its secrets are hidden, and it is known by the same key."""
    found: Event = replace(event, key=key)
    return found
