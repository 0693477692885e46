"""Edits of a browser's run: other answers of the network, and of what the agent looked at.

    answer of the network   {"status", "headers", "body"}, as `show` prints it; {"$": "raise", …}: it fails
    what was looked at      the value that the agent gets

A step itself has nothing to edit: what it was told is in the code of the target.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lockstep.debugger import answers, outcomes, paths
from lockstep.debugger import edits as editing
from lockstep.debugger import plan as plans
from lockstep.debugger.edits import Edit
from lockstep.debugger.plan import Edited, first_of
from lockstep.errors import Code, EditError
from lockstep.log.model import Status, Value
from lockstep.log.timeline import Effect, Place, Timeline
from lockstep.session.call import Piece
from lockstep.session.tail import Edit as Answered
from lockstep.taps.http.answer import answer
from lockstep_playwright import layout

_FAILED = "net::ERR_FAILED"


def read(place: Place, edits: Sequence[Edit], until: int) -> Edited:
    """The edits of a fork that leaves at `place`, up to position `until`. Raises AddressError LS206, EditError LS211 to
    LS213."""
    timeline = place.timeline
    by = plans.grouped(place, edits, _find)
    made: list[Answered] = []
    for pos, (effect, given) in by.items():
        plans.in_time(place, given[0], effect.end.pos if effect.end is not None else None, until)
        told = {editing.told(edit): outcomes.to_json(edit.value) for edit in given}
        made.append(Answered(pos, told, _pieces(timeline, effect, given)))
    told = {editing.told(edit): outcomes.to_json(edit.value) for edit in edits}
    effects = [effect for effect, _ in by.values()]
    # Nothing came of one that was refused, but to its action, which then saw what it does not see now.
    refused = [effect.begin.pos for effect in effects if effect.end is None and not effect.parts]
    came = first_of(timeline, effects)
    firsts = [*refused, *([came] if came is not None else [])]
    return Edited(tuple(made), told, min(firsts, default=None))


def _find(timeline: Timeline, address: str) -> Effect:
    step, _, number = address.partition(".")
    if number:
        return timeline.effect(int(step), int(number))
    found = timeline.step(int(step))
    last = len(found.effects)
    more = f"What came from outside in it is {step}.1 to {step}.{last}" if last else "Nothing came from outside in it"
    raise EditError(
        Code.UNEDITABLE,
        f"{address}: what an action is told stands in the code of the target, and is edited there. {more}",
    )


def _pieces(timeline: Timeline, effect: Effect, edits: Sequence[Edit]) -> tuple[Piece, ...]:
    changes = [(edit.path, outcomes.to_json(edit.value)) for edit in edits]
    address = edits[0].address
    if effect.kind == layout.SOCKET:
        raise EditError(Code.UNEDITABLE, f"{address}: a conversation over a WebSocket cannot be edited, only be served")
    if effect.kind != layout.HTTP:
        return editing.made(timeline, effect, changes, address)
    try:
        return _exchange(timeline, effect, changes)
    except EditError as error:
        raise EditError(error.code, f"{address}: {error.message}") from None


def _exchange(timeline: Timeline, effect: Effect, changes: Sequence[tuple[str, Value]]) -> tuple[Piece, ...]:
    parts = list(timeline.parts(effect))
    after = answers.state(answer(parts), timeline.outcome(effect) if effect.status is Status.ERROR else None)
    for path, value in changes:
        after = answers.edited(after, paths.parse(path), value)
    if after.status is None:
        return (Piece({"error": _network_error(after.error)}, Status.ERROR),)
    pairs: list[Value] = []
    for name, value in after.headers:
        lower = name.lower()
        if lower != "transfer-encoding":
            pairs.append([name, str(len(after.body)) if lower == "content-length" else value])
    head: dict[str, Value] = {"status": after.status, "reason": "", "headers": pairs}
    return (Piece(head), *([Piece(after.body)] if after.body else []), Piece(None, Status.OK))


def _network_error(error: Value) -> str:
    """What the browser calls it: said by the edit, or the failure that has no reason."""
    args: Any = error.get("args") if isinstance(error, dict) else None
    said = args[0] if isinstance(args, list) and args else ""
    return said if isinstance(said, str) and said.startswith("net::ERR_") else _FAILED
