"""Where a fork of a conversation leaves, and how it goes on from there: worked out before anything runs. Pure.

A fork re-executes: its branch shares what was recorded before the turn that it leaves in, and a fresh agent is asked
again from the first turn on, served up to the cut. By its state (`by="state"`) it shares everything up to a step, and
AG2 goes on from the history that the step has: nothing before it runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from lockstep.debugger import edits as editing
from lockstep.debugger import outcomes
from lockstep.debugger import plan as plans
from lockstep.debugger.calls import MODEL
from lockstep.debugger.edits import Edit
from lockstep.errors import AddressError, Code, TargetError
from lockstep.log import checkpoints
from lockstep.log.model import Event, Kind, Status, Value
from lockstep.log.timeline import END, Effect, Place, Timeline
from lockstep.session.call import Piece
from lockstep.session.native.record import Record, RecordedTurn
from lockstep.session.policy import Policy
from lockstep.session.tail import Edit as Answered
from lockstep.session.tail import Plan as Tailed
from lockstep_ag2.states import EVENTS

_CLASS = "$class"
_TRIGGERS = {"ModelRequest", "ToolResultsEvent"}  # what AG2 asks a model about when it goes on from there


class Plan(msgspec.Struct, frozen=True):
    """A fork of a conversation.

    tail    what becomes of calls past the cut
    cut     the position of the last event that the branch shares
    leaves  the turn that it leaves in: the first that is part of the branch; None where it leaves behind the last
    history of a fork that restores: the history that it goes on from
    goes_on whether that goes on by what is last in it, and not with the next turn
    """

    tail: Tailed
    cut: int
    leaves: RecordedTurn | None
    history: list[Value] | None = None
    goes_on: bool = False


def plan(place: Place, record: Record, given: tuple[Edit, ...], policy: Policy, branch: str, *, within: int | None,
         restore: bool) -> Plan:  # fmt: skip
    """The plan of a fork. Raises AddressError LS206, EditError LS211 to LS213, TargetError LS402."""
    timeline, address = place.timeline, place.address
    until = upto = plans.cut_of(place, within)
    answers: list[Answered] = []
    for pos, (effect, edits) in plans.grouped(place, given).items():
        first = plans.first_piece(timeline, effect)
        plans.in_time(place, edits[0], first, until)
        upto = min(upto, first - 1) if first is not None else upto
        told: dict[str, Value] = {editing.told(edit): outcomes.from_python(edit.value) for edit in edits}
        answers.append(Answered(pos, told, _pieces(timeline, effect, edits)))
    tail = Tailed(branch or "fork", address.branch, plans.origin_of(place), upto, until, tuple(answers), policy)
    if restore:
        return _restored(place, record, tail)
    leaves = next((turn for turn in reversed(record.turns) if turn.pos <= upto), None)
    if leaves is None:
        raise AddressError(Code.NO_ADDRESS, f"{address} lies before the first turn")
    return Plan(tail, leaves.pos - 1, leaves)


def _pieces(timeline: Timeline, effect: Effect, edits: list[Edit]) -> tuple[Piece, ...]:
    said = effect.kind == MODEL
    changes = [
        (edit.path, _said(edit.value) if said and not edit.path else outcomes.from_python(edit.value)) for edit in edits
    ]
    return editing.made(timeline, effect, changes, edits[0].address)


def _said(value: Any) -> Any:
    """A model's message; a text alone is one that asks for no tool."""
    return {"type": "ai", "content": value} if isinstance(value, str) else outcomes.from_python(value)


# Restoring.


def why_not_restored(place: Place) -> str:
    """Why a conversation cannot be continued exactly from a step by its history alone; "" where it can."""
    record = Record(place.timeline.reader)
    step = place.step
    if step is None or step.kind == END or place.effect is not None:
        return "a history is kept at steps only"
    pos = record.position(step.number)
    turn = next((each for each in reversed(record.turns) if each.pos < pos), None)
    state = checkpoints.States(place.timeline.reader).at(pos)
    history: Any = state.get(EVENTS)
    if not isinstance(history, list) or not history or turn is None:
        return "this step has no history"
    if any(_is_an_agents(event) for _, event in record.heads if event.pos <= pos):
        return "agents that are tools or subtasks have run before it, and what they keep is not in the history"
    if _unstored(state, history):
        return "what it holds could not be recorded"
    trigger = _trigger(history)
    if trigger is None and not _is_last(record, turn, pos):
        return f"nothing goes on from the {_name(history[-1])} at its end: fork where the turn ends"
    return ""


def _restored(place: Place, record: Record, tail: Tailed) -> Plan:
    why = why_not_restored(place)
    if tail.edits:
        why = why or "an edited answer is in the history already"
    if why:
        raise TargetError(
            Code.BAD_TARGET, f'{place.address} cannot be continued from its history: {why} (leave out by="state")'
        )
    step = place.step
    assert step is not None
    pos = record.position(step.number)
    history: Any = checkpoints.States(place.timeline.reader).at(pos)[EVENTS]
    turn = next(each for each in reversed(record.turns) if each.pos < pos)
    tail = msgspec.structs.replace(tail, upto=pos, until=pos)
    trigger = _trigger(history)
    if trigger is None:
        following = next((each for each in record.turns if each.pos > pos), None)
        cut = following.pos - 1 if following is not None else max(event.pos for _, event in record.heads)
        return Plan(msgspec.structs.replace(tail, upto=cut, until=cut), cut, following, history)
    return Plan(tail, pos, turn, trigger, goes_on=True)


def _is_an_agents(event: Event) -> bool:
    """Whether it is a model's call of an agent inside of another one's turn."""
    return event.kind is Kind.BEGIN and event.what == MODEL and "/" in event.lane and not event.of


def _trigger(history: list[Any]) -> list[Value] | None:
    """The history with what AG2 goes on from at its end; None where it ends with an answer."""
    last = history[-1]
    if _name(last) in _TRIGGERS:
        return history
    calls = last.get("tool_calls") if isinstance(last, dict) and _name(last) == "ModelResponse" else None
    if isinstance(calls, dict) and calls.get("calls") and not last.get("response_force"):
        return [*history, calls]
    return None


def _is_last(record: Record, turn: RecordedTurn, pos: int) -> bool:
    """Whether a step is the last one of a turn that came to a good end."""
    later = any(pos < event.pos < turn.stop for _, event in record.steps)
    return not later and turn.end is not None and turn.end.what == Status.OK


def _name(event: Any) -> str:
    return str(event.get(_CLASS, "")).rpartition(":")[2] if isinstance(event, dict) else ""


def _unstored(state: Mapping[str, Value], history: list[Any]) -> bool:
    return any(isinstance(one, dict) and one.keys() == {"$", _CLASS} for one in (*history, *_values(state)))


def _values(state: Mapping[str, Value]) -> list[Any]:
    found: Any = state.get("variables")
    return list(found.values()) if isinstance(found, dict) else []
