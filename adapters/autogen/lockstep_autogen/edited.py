"""Edits of a team's run: other answers of models, tools and people.

    answer of a model   its CreateResult, as `show` prints it; a text stands for one that says no more than that, and so
                        does what an agent with a structured output was to answer
    answer of a tool    its ToolResult; a text, or any other data, for one that has this as its only content
    what code gave      its CodeResult; a text for what it printed
    a person's          the text
    {"$": "raise", …}   it fails: a tool's failure is an answer too, since AutoGen makes one of it

A step stands for the answer that its message was made of, where one agent spoke. Messages themselves are not edited:
the speaker would still have its own words in its context, and the others would not.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from lockstep.debugger import edited, raised
from lockstep.debugger import edits as editing
from lockstep.debugger import plan as plans
from lockstep.debugger.edits import Edit
from lockstep.debugger.plan import Edited
from lockstep.errors import Code, EditError
from lockstep.log.address import quote
from lockstep.log.model import Status, Value
from lockstep.log.timeline import Effect, Place, Step, Timeline
from lockstep.session.call import Piece
from lockstep_autogen import humans, layout

_CONTENT = "content"
_CALLS, _SAID = "function_calls", "stop"  # how an answer says that it ended: with calls of tools, or with words
_ANSWER = frozenset({_CONTENT, "finish_reason", "thought", "usage", "cached", "logprobs"})  # what a CreateResult has
_RESULT = "result"
_EXIT = "exit_code"  # of a CodeResult


def read(place: Place, edits: Sequence[Edit], until: int) -> Edited:
    """The edits of a fork that leaves at `place`, up to position `until`. Raises AddressError LS206, EditError LS211 to
    LS213."""
    return edited.read(place, plans.grouped(place, edits, _find), until, _pieces)


def _find(timeline: Timeline, address: str) -> Effect:
    """The call at `7.1`, or the one whose answer was said in step `7`."""
    step, _, number = address.partition(".")
    if number:
        return timeline.effect(int(step), int(number))
    said = _said(timeline.step(int(step)))
    return said if said is not None else editing.find(timeline, address)


def _said(step: Step) -> Effect | None:
    """The last answer of the one agent that spoke in a step, None where several spoke, or nobody asked anything."""
    speaker = quote(step.name)
    found = [
        effect for effect in step.effects
        if (effect.kind == layout.MODEL or (effect.kind == layout.HUMAN and effect.name == humans.NAME))
        and effect.end is not None and effect.lane.rpartition("/")[2] == speaker
    ]  # fmt: skip
    return max(found, key=lambda effect: effect.begin.pos, default=None)


def _pieces(timeline: Timeline, effect: Effect, edits: Sequence[Edit]) -> tuple[Piece, ...]:
    end = edited.last(timeline, effect, edits, _CHANGED.get(effect.kind, edited.changed))
    parts = list(timeline.parts(effect)) if effect.kind == layout.MODEL and end.status is Status.OK else []
    return (*_spoken(parts, end.value), end) if parts else (end,)


def _spoken(parts: Sequence[Value], whole: Value) -> tuple[Piece, ...]:
    """What a streamed answer comes in: as it was, where it says the same, else in one piece."""
    said = whole.get(_CONTENT) if isinstance(whole, dict) else None
    if not isinstance(said, str):
        return ()
    if "".join(part for part in parts if isinstance(part, str)) == said:
        return tuple(map(Piece, parts))
    return (Piece(said),)


def _model(effect: Effect, before: Value, path: str, value: Value) -> Value:
    if raised.is_raise(value) and not path:
        return value
    if not path and isinstance(value, dict) and not value.keys() & _ANSWER:
        value = json.dumps(value, ensure_ascii=False)
    if isinstance(value, str) and not path:
        path = _CONTENT
    base: dict[str, Value] = {
        "finish_reason": _SAID, _CONTENT: "", "usage": {"prompt_tokens": 0, "completion_tokens": 0}, "cached": False,
        "logprobs": None, "thought": None, **(before if isinstance(before, dict) else {}),
    }  # fmt: skip
    after = edited.put(base, path.removeprefix("value."), value)
    if not isinstance(after, dict) or not isinstance(after.get(_CONTENT), (str, list)):
        raise EditError(
            Code.UNEDITABLE,
            'a model\'s answer is a text, or a CreateResult as show prints it: {"content": text or calls of tools, …}',
        )
    after = {**base, **after}
    calls = isinstance(after[_CONTENT], list)
    if calls and after["finish_reason"] == _SAID:
        after["finish_reason"] = _CALLS
    elif not calls and after["finish_reason"] == _CALLS:
        after["finish_reason"] = _SAID
    return after


def _tool(effect: Effect, before: Value, path: str, value: Value) -> Value:
    had: Any = before if isinstance(before, dict) else {}
    if path:
        return edited.put(before if before is not None else _result(effect.name, ""), path, value)
    if _EXIT in had:
        return {_EXIT: 0, "output": value} if isinstance(value, str) else value
    if had and _RESULT not in had:
        return value
    if isinstance(value, dict) and _RESULT in value:
        return {**_result(effect.name, ""), **value}
    if raised.is_raise(value):
        assert isinstance(value, dict)
        return _result(effect.name, str(value.get("message") or value.get("type") or ""), failed=True)
    return _result(effect.name, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


def _result(name: str, text: str, *, failed: bool = False) -> dict[str, Value]:
    content: Value = [{"type": "TextResultContent", _CONTENT: text}]
    return {"type": "ToolResult", "name": name, _RESULT: content, "is_error": failed}


_CHANGED = {layout.MODEL: _model, layout.TOOL: _tool}
