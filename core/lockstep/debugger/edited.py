"""Edited answers of calls, in forks of runs that a framework keeps itself: what the edits of one call come to.

    by = plan.grouped(place, edits)
    found = read(place, by, until, pieces)       # `pieces` are the adapter's: what each caller gets
    end = last(timeline, effect, edits, change)  # the last of them: the edited outcome

What an edit may say of an answer, and what of it then is heard on the way, are the adapter's too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lockstep.debugger import edits as editing
from lockstep.debugger import outcomes, paths, raised
from lockstep.debugger.edits import Edit
from lockstep.debugger.plan import Edited, first_of, in_time
from lockstep.errors import EditError
from lockstep.log.model import Status, Value
from lockstep.log.timeline import Effect, Place, Timeline
from lockstep.session.call import Piece
from lockstep.session.tail import Edit as Answered

# `change(effect, before, path, value)`: the outcome of a call with one edit; `before`: None of one that has failed.
type Change = Callable[[Effect, Value, str, Value], Value]
type Pieces = Callable[[Timeline, Effect, Sequence[Edit]], tuple[Piece, ...]]


def read(place: Place, by: Mapping[int, tuple[Effect, Sequence[Edit]]], until: int, pieces: Pieces) -> Edited:
    """The edits of calls, grouped by these, in a fork that leaves at `place`, up to position `until`. Raises
    AddressError LS206 for one of a call that is answered later, and what `pieces` raises."""
    timeline = place.timeline
    answers: list[Answered] = []
    for pos, (effect, edits) in by.items():
        in_time(place, edits[0], effect.end.pos if effect.end is not None else until + 1, until)
        told = {editing.told(edit): inert(edit.value) for edit in edits}
        answers.append(Answered(pos, told, pieces(timeline, effect, edits)))
    told = {address: value for each in answers for address, value in each.told.items()}
    return Edited(tuple(answers), told, first_of(timeline, (effect for effect, _ in by.values())))


def last(timeline: Timeline, effect: Effect, edits: Sequence[Edit], change: Change) -> Piece:
    """How a call with these edits ends: with another value, or by failing. Raises EditError."""
    recorded = timeline.outcome(effect)
    answered: Value = recorded if effect.status is Status.OK else None
    try:
        for edit in edits:
            answered = change(effect, answered, edit.path, inert(edit.value))
        if raised.is_raise(answered):
            failed = raised.encoded(answered, recorded if effect.status is Status.ERROR else None)
            return Piece(failed, Status.ERROR)
    except EditError as error:
        raise EditError(error.code, f"{edits[0].address}: {error.message}") from None
    return Piece(outcomes.from_json(answered), Status.OK)


def changed(effect: Effect, before: Value, path: str, value: Value) -> Value:
    """What an edit makes of an outcome that may be anything: see `Change`."""
    return value if not path else put(before, path, value)


def put(before: Value, path: str, value: Value) -> Value:
    """An outcome with a value at a path, in JSON's form. Raises EditError LS212."""
    after: Value = paths.put(outcomes.to_json(before), paths.parse(path), outcomes.to_json(value))
    return after


def inert(value: Any) -> Value:
    """A value of an edit as the record says it."""
    found: Value = outcomes.from_python(value)
    return found
