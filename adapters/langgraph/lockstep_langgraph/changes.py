"""Edits of a thread: other answers of its calls, and other values in its state.

An answer is edited in the shape in which `show --json` prints it. So is a state, by channel: `{"7": {"total": 3}}`
gives channels other values, `"7:messages[2].content"` changes a place in one. In code a value may be an object, too: a
message, whatever a tool returns, an exception that is raised.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import BaseMessage

from lockstep.debugger import edits as editing
from lockstep.debugger import outcomes, paths, raised
from lockstep.debugger.calls import MODEL
from lockstep.debugger.edits import Edit
from lockstep.errors import Code, EditError
from lockstep.log.model import Value
from lockstep.log.timeline import Effect, Timeline
from lockstep.session.call import Piece
from lockstep_langgraph import answers

_OWN = ("__", "branch:", "start:", "join:")  # channels of LangGraph's own: what runs next, and not the state
_LISTED = 8


def inert(value: Any, codec: Any) -> Any:
    """An edit's value as data: what is data already stays, so that forms as `show` prints them can be given."""
    if isinstance(value, BaseException):
        return raised.of(value)
    if type(value) is list:
        return [inert(item, codec) for item in value]
    if type(value) is dict and all(type(name) is str for name in value):
        return {name: inert(item, codec) for name, item in value.items()}
    return outcomes.to_json(codec.dump(value))


def answer(timeline: Timeline, effect: Effect, edits: Sequence[Edit], codec: Any) -> tuple[Piece, ...]:
    """What the caller of a call gets with its edits. Raises EditError LS211 to LS213, which names the edit."""
    given = [(edit.path, _said(edit.value) if effect.kind == MODEL else inert(edit.value, codec)) for edit in edits]
    return editing.made(timeline, effect, given, edits[0].address)


def _said(value: Any) -> Any:
    """A model's message as `show` prints it, of an object, or of what is that already."""
    if isinstance(value, BaseMessage):
        return answers.told(value)
    return raised.of(value) if isinstance(value, BaseException) else value


def state(edits: Sequence[Edit], values: Mapping[str, Any], channels: Mapping[str, Any], codec: Any) -> dict[str, Any]:
    """The channels that edits of a step's state change, with their new values as objects.

    values    of the state as it was, as objects
    channels  of the graph: others there are none of

    Raises EditError LS211 to LS213, which names the edit.
    """
    changed: dict[str, Any] = {}
    for edit in edits:
        try:
            for name, place, value in _places(edit, codec):
                if name not in channels or name.startswith(_OWN):
                    known = [channel for channel in channels if not channel.startswith(_OWN)]
                    more = f" and {len(known) - _LISTED} more" if len(known) > _LISTED else ""
                    raise EditError(
                        Code.NO_PLACE, f"the state has no channel {name!r}: it has {', '.join(known[:_LISTED])}{more}"
                    )
                if place:
                    before = changed[name] if name in changed else values.get(name)
                    value = paths.put(outcomes.to_json(codec.dump(before, name)), place, value, before=(name,))
                changed[name] = codec.load(outcomes.from_json(value), name)
        except EditError as error:
            raise EditError(error.code, f"{edit.address}: {error.message}") from None
    return changed


def _places(edit: Edit, codec: Any) -> list[tuple[str, paths.Place, Value]]:
    """What one edit changes: channel, place in it, and the value there."""
    value = inert(edit.value, codec)
    place = paths.parse(edit.path)
    if place:
        return [(str(place[0]), place[1:], value)]
    if not isinstance(value, dict) or not all(isinstance(name, str) for name in value):
        raise EditError(
            Code.UNEDITABLE, 'an edit of a step\'s state says channels and their values, as in {"total": 3}'
        )
    return [(name, (), each) for name, each in value.items()]
