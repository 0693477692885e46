"""Edits of a crew's, flow's or agent's run: other answers of models, tools and people, and other outputs of steps.

    answer of a model   its outcome, as `show` prints it; a text stands for one that says no more than that, a list for
                        calls of tools: [{"name": …, "arguments": {…}}, …], any other object for one of its form
    answer of a tool    what it returned
    a person's          the text
    {"$": "raise", …}   it fails
    a step's            what the task or the flow's method gives on: a text, or an object; `3:output.raw` and
                        `3:state.total` set one place of it, or of what the flow remembers then

The output of a step is another thing than its last answer: guardrails have passed it, and what comes after has it from
there. What a model said in the step is served as it was.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from lockstep.debugger import edited, outcomes, paths, raised
from lockstep.debugger import edits as editing
from lockstep.debugger import plan as plans
from lockstep.debugger.edits import Edit
from lockstep.debugger.plan import Edited
from lockstep.errors import Code, EditError
from lockstep.log import checkpoints
from lockstep.log.model import Status, Value
from lockstep.log.timeline import END, Effect, Place, Step, Timeline
from lockstep.session.call import Piece
from lockstep_crewai import canonical, layout, replaced
from lockstep_crewai.replaced import Change

OUTPUT, STATE = layout.OUTPUT, layout.STATE
# What a model's answer has one of (`lockstep_crewai.models`), and what of the rest holds of that form only.
TEXT, TOOL_CALLS, OBJECT, CLASS, REASON = "text", "tool_calls", "object", "class", "finish_reason"
_FORMS = (TEXT, TOOL_CALLS, OBJECT, "value")
_OF_FORM = frozenset({"call_type", "silent"})
# Pieces of it that say what it came to (`lockstep_crewai.events`): whether by this entry.
_SAID = {"said": True, "response": True, "failed": False}


class Changed(msgspec.Struct, frozen=True):
    """Edits of the step whose STEP is at `pos`. `told`: as they were given, for the record."""

    pos: int
    told: Mapping[str, Value]
    changes: tuple[Change, ...] = ()


def read(place: Place, edits: Sequence[Edit], until: int) -> tuple[Edited, Mapping[int, Changed]]:
    """The edits of a fork that leaves at `place`, up to position `until`; those of outputs of steps also by the
    position of the step. Raises AddressError LS206, EditError LS211 to LS213."""
    timeline = place.timeline
    edits = editing.numbered(timeline, edits)
    outputs = [edit for edit in edits if _is_output(timeline, edit.address)]
    by = plans.grouped(place, [edit for edit in edits if edit not in outputs])
    calls = edited.read(place, by, until, _pieces)
    steps = _steps(place, outputs, until)
    firsts = [*steps, *([calls.first] if calls.first is not None else [])]
    of_steps = {address: value for change in steps.values() for address, value in change.told.items()}
    return Edited(calls.answers, {**calls.told, **of_steps}, min(firsts, default=None)), steps


# Outputs of steps.


def _is_output(timeline: Timeline, address: str) -> bool:
    return "." not in address and timeline.step(int(address)).kind != END


def _steps(place: Place, edits: Sequence[Edit], until: int) -> dict[int, Changed]:
    timeline, found = place.timeline, dict[int, Changed]()
    for edit in edits:
        plans.of_this_run(place, edit)
        step = timeline.step(int(edit.address))
        pos = _position(timeline, step)
        plans.in_time(place, edit, pos, until)
        before = found.get(pos) or Changed(pos, {})
        found[pos] = _with(before, step, edit, checkpoints.States(timeline.reader).at(pos))
    return found


def _position(timeline: Timeline, step: Step) -> int:
    _, event = next(iter(timeline.reader.heads(timeline.stream.id, step.seq, step.seq + 1)))
    return event.pos


def _with(before: Changed, step: Step, edit: Edit, channels: Mapping[str, Value]) -> Changed:
    address = edit.address
    if step.kind == layout.INPUT:
        raise EditError(
            Code.UNEDITABLE, f"{address} is what was asked: it is edited by asking something else of a fresh one"
        )
    if OUTPUT not in channels:
        raise EditError(
            Code.UNEDITABLE,
            f"{address} has no output: {channels.get(layout.ERROR, 'it waits for a person')!s}. Edit one of its calls:"
            f" {address}.1",
        )
    if isinstance(edit.value, BaseException) or raised.is_raise(edit.value):
        raise EditError(
            Code.UNEDITABLE,
            f"{address}: a step that fails has no output. Have one of its calls fail: {address}.1",
        )
    value = outcomes.from_python(canonical.output(edit.value) if canonical.is_output(edit.value) else edit.value)
    channel, at = _place(edit, channels)
    if channel == OUTPUT and at in ((), (replaced.RAW,)):
        _has_form(address, channels[OUTPUT], value)
    change = Change(channel, at, outcomes.from_json(value))
    return Changed(before.pos, {**before.told, editing.told(edit): value}, (*before.changes, change))


def _has_form(address: str, recorded: Value, value: Value) -> None:
    """Raises EditError where a text is to stand for what is of a form."""
    form = isinstance(recorded, dict) and (recorded.get(replaced.JSON) or recorded.get(replaced.PYDANTIC))
    if not form or not isinstance(value, str):
        return
    try:
        json.loads(value)
    except ValueError:
        raise EditError(
            Code.UNEDITABLE,
            f"{address} has to be of the form that its task wants, an object like {outcomes.to_json(form)}",
        ) from None


def _place(edit: Edit, channels: Mapping[str, Value]) -> tuple[str, paths.Place]:
    """The channel that is edited, and where in it. Raises EditError LS212 where the recorded one has no such place."""
    at = paths.parse(edit.path)
    channel = str(at[0]) if at and at[0] in (OUTPUT, STATE) else OUTPUT
    at = at[1:] if at and at[0] == channel else at
    if channel not in channels:
        raise EditError(Code.NO_PLACE, f"{edit.address}:{edit.path}: a task has no state of its own, a flow has")
    try:
        paths.at(outcomes.to_json(channels[channel]), at)
    except EditError as error:
        raise EditError(error.code, f"{edit.address}: {error.message}") from None
    return channel, at


# Answers of calls.


def _pieces(timeline: Timeline, effect: Effect, edits: Sequence[Edit]) -> tuple[Piece, ...]:
    is_said = effect.kind == layout.MODEL
    end = edited.last(timeline, effect, edits, _model if is_said else edited.changed)
    parts = list(timeline.parts(effect)) if is_said and end.status is Status.OK else []
    return (*_spoken(parts, end.value), end)


def _model(effect: Effect, before: Value, path: str, value: Value) -> Value:
    if raised.is_raise(value) and not path:
        return value
    had: Mapping[str, Value] = before if isinstance(before, dict) else {}
    if path:
        after = edited.put(dict(had), path, value)
    else:
        after = {**{name: had[name] for name in had if name not in (*_FORMS, CLASS)}, **_answer(had, value)}
    if not isinstance(after, dict) or len(after.keys() & _FORMS) != 1:
        raise EditError(
            Code.UNEDITABLE,
            "a model's answer is a text, a list of calls of tools, or an outcome as show prints it: one of"
            f" {', '.join(_FORMS)}",
        )
    return after if after.keys() & had.keys() & set(_FORMS) else _of_another_form(after)


def _of_another_form(outcome: dict[str, Value]) -> dict[str, Value]:
    """What was said beside the answer of another form, as far as it holds of this one."""
    kept = {name: value for name, value in outcome.items() if name not in _OF_FORM}
    if isinstance(kept.get(REASON), str):
        kept[REASON] = TOOL_CALLS if TOOL_CALLS in kept else "stop"
    return kept


def _answer(had: Mapping[str, Value], value: Value) -> Mapping[str, Value]:
    match value:
        case str():
            return {TEXT: value}
        case list():
            return {TOOL_CALLS: [_call(number, each) for number, each in enumerate(value, 1)]}
        case dict() if value.keys() & set(_FORMS):
            return value
        case dict() if OBJECT in had:
            return {OBJECT: value, **({CLASS: had[CLASS]} if CLASS in had else {})}
        case dict():
            return {TEXT: json.dumps(value, ensure_ascii=False)}
    return {}


def _call(number: int, call: Value) -> Value:
    """A call of a tool, as providers have it: of its name and arguments."""
    if isinstance(call, dict) and "function" in call:
        return {"id": f"call_edited_{number}", "type": "function", **call}
    if not isinstance(call, dict) or not isinstance(call.get("name"), str):
        raise EditError(Code.UNEDITABLE, 'a call of a tool is {"name": text, "arguments": {…}}')
    arguments = call.get("arguments", {})
    said = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    function: dict[str, Value] = {"name": call["name"], "arguments": said}
    return {"id": call.get("id", f"call_edited_{number}"), "type": "function", "function": function}


def _spoken(parts: Sequence[Value], whole: Value) -> Iterator[Piece]:
    """What is heard of an edited answer while it comes: as it was, with its own text in the place of the recorded."""
    text = whole.get(TEXT) if isinstance(whole, dict) else None
    same = "".join(_chunk(part) or "" for part in parts) == text
    said = not isinstance(text, str)
    for part in parts:
        if _chunk(part) is not None and not same:
            if not said:
                said = True
                yield Piece({**part, "chunk": text} if isinstance(part, dict) else text)
        elif not isinstance(part, dict) or not part.keys() & _SAID.keys():
            yield Piece(part)
        elif isinstance(text, str) and "failed" not in part:
            yield Piece({name: text if _SAID.get(name) else value for name, value in part.items()})


def _chunk(part: Value) -> str | None:
    said = part.get("chunk") if isinstance(part, dict) else part
    return said if isinstance(said, str) else None
