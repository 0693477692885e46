"""The output of a task, a flow's method or an agent with an edit in it: what is given on in its place.

CrewAI gives on what the last POST_STEP hook returns, so the edited output has to be of the kind that was there: a
`TaskOutput` whose text, JSON and model say the same; of a method, what it returned, with its class.

    edited(moment, [Change("output", ("raw",), "refuse it")])      # of a task
    edited(moment, [Change("output", (), "big")])                  # of a method: what a router routes by
    edited(moment, [Change("state", ("total",), 450)])             # what its flow remembers
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any

import msgspec
from pydantic import BaseModel

from lockstep.debugger import outcomes, paths
from lockstep.debugger.paths import Place
from lockstep.errors import Code, EditError, LockstepError
from lockstep.log.model import Value
from lockstep.session import snapshot
from lockstep_crewai import canonical, layout
from lockstep_crewai.canonical import inert
from lockstep_crewai.layout import Moment

RAW, JSON, PYDANTIC = "raw", "json", "pydantic"
_FORMS = (RAW, JSON, PYDANTIC)


class Change(msgspec.Struct, frozen=True):
    """One edit of a step: another `value`, as it is stored, at a `place` in its output or state, () for all of it."""

    channel: str
    place: Place
    value: Value


def told(changes: Sequence[Change]) -> Value:
    """Edits as the record of a step says them, so that a replay makes them again."""
    return [[change.channel, [*change.place], change.value] for change in changes]


def read(recorded: Value) -> tuple[Change, ...]:
    """The reverse."""
    found: list[Change] = []
    for each in recorded if isinstance(recorded, list) else ():
        match each:
            case [str(channel), list(place), value]:
                found.append(Change(channel, tuple(place), value))  # type: ignore[arg-type]
    return tuple(found)


def edited(moment: Moment, changes: Sequence[Change]) -> Moment:
    """The moment with what its step comes to by edits. Raises as `replaced`."""
    task = moment.of if moment.kind == layout.TASK else None
    channels = dict(moment.channels)
    output = [change for change in changes if change.channel == layout.OUTPUT]
    state = [change for change in changes if change.channel == layout.STATE]
    payload = replaced(moment.payload, task, output)
    if output:
        channels[layout.OUTPUT] = (
            canonical.of_method(payload) if moment.kind == layout.METHOD else canonical.output(payload)
        )
    if state:
        to_state(moment.of, state)
        channels[layout.STATE] = canonical.state(moment.of)
    return msgspec.structs.replace(moment, payload=payload, channels=channels)


def why(error: Exception) -> str:
    """Why an edit cannot be made, in words."""
    return error.message if isinstance(error, LockstepError) else str(error) or type(error).__name__


def replaced(payload: Any, task: Any, changes: Sequence[Change]) -> Any:
    """What is given on in the place of `payload`. `task`: whose output it is, None of a method. Raises EditError where
    there is no such place, ValueError and TypeError for what the task's own form does not take."""
    for change in changes:
        payload = _spoken(payload, task, change) if _is_spoken(payload) else _returned(payload, change)
    return payload


def to_state(flow: Any, changes: Sequence[Change]) -> None:
    """Changes what a flow remembers. Raises as `replaced`."""
    state: Any = getattr(flow, "_state", None)
    for change in changes:
        for name, value in _by_name(state, change):
            if isinstance(state, dict):
                state[name] = value
            else:
                _assign(state, name, value)


def _by_name(state: Any, change: Change) -> Sequence[tuple[str, Any]]:
    value = snapshot.from_value(change.value)
    if not change.place:
        if not isinstance(value, Mapping):
            raise EditError(Code.UNEDITABLE, f"a flow's state is an object by name, not {value!r}")
        return [*value.items()]
    name, *rest = change.place
    held = state if isinstance(state, dict) else dict(state)
    if name not in held:
        raise paths.Missing(Code.NO_PLACE, f"there is no {paths.shown(change.place)}: the state has {', '.join(held)}")
    if not rest:
        return [(str(name), value)]
    return [(str(name), _rebuilt(held[name], _put(inert(held[name]), tuple(rest), change.value)))]


def _assign(state: BaseModel, name: str, value: Any) -> None:
    # Of a model that does not check what is assigned to it, too: a wrong edit is to be told here.
    type(state).__pydantic_validator__.validate_assignment(state, name, value)


# Of a task, and of a crew that a method has run.


def _is_spoken(payload: Any) -> bool:
    return isinstance(payload, BaseModel) and {RAW, PYDANTIC} <= type(payload).model_fields.keys()


def _spoken(output: Any, task: Any, change: Change) -> Any:
    value = snapshot.from_value(change.value)
    if not change.place:
        if isinstance(value, Mapping) and RAW in value and value.keys() <= set(_FORMS):
            value = value[RAW]
        return _said(output, task, _text(value))
    form, *rest = change.place
    if form == RAW:
        return _said(output, task, _text(_put(output.raw, tuple(rest), change.value)))
    data = inert({JSON: getattr(output, "json_dict", None), PYDANTIC: output.pydantic})
    if form not in (JSON, PYDANTIC) or not isinstance(data, dict) or data[form] is None:
        has = ", ".join(name for name in _FORMS if name == RAW or (isinstance(data, dict) and data[name] is not None))
        raise paths.Missing(Code.NO_PLACE, f"there is no {paths.shown(change.place)}: this output has {has}")
    return _said(output, task, _text(_put(data[form], tuple(rest), change.value)))


def _said(output: Any, task: Any, text: str) -> Any:
    """The output with this text, and what the task makes of it."""
    model: Any = getattr(task, "output_pydantic", None)
    form: Any = model or getattr(task, "output_json", None)
    made = form.model_validate_json(text) if form else None
    if task is None and isinstance(output.pydantic, BaseModel):
        made = model = type(output.pydantic).model_validate_json(text)
    update = {RAW: text, PYDANTIC: made if model else None}
    if "json_dict" in type(output).model_fields:
        update["json_dict"] = made.model_dump() if made is not None and not model else None
    return output.model_copy(update=update)


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, BaseModel):
        return value.model_dump_json()
    return json.dumps(inert(value), ensure_ascii=False)


# Of a method.


def _returned(payload: Any, change: Change) -> Any:
    if not change.place:
        return _rebuilt(payload, snapshot.from_value(change.value))
    return _rebuilt(payload, _put(inert(payload), change.place, change.value))


def _rebuilt(before: Any, value: Any) -> Any:
    """A value of the class that stood there, where it is data for one."""
    if isinstance(before, BaseModel) and isinstance(value, Mapping):
        return type(before).model_validate(value)
    if isinstance(before, Enum) and not isinstance(value, Enum):
        return type(before)(value)
    return value


def _put(before: Value, place: Place, value: Value) -> Any:
    """An inert value with another one at a place, as an object."""
    after = outcomes.from_json(paths.put(outcomes.to_json(before), place, outcomes.to_json(value))) if place else value
    return snapshot.from_value(after)
