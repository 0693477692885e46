"""Places in a value, written as `show` and `diff` print them: `choices[0].message.content`, `headers."x y"`.

A place may lie inside a text that is JSON (the arguments of a tool call, a structured answer): it is opened on the
way and written again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import msgspec

from lockstep.debugger import structure
from lockstep.errors import Code, EditError
from lockstep.log.model import Value

type Place = tuple[str | int, ...]

_STEP = re.compile(
    r'(?P<dot>\.)?(?:(?P<name>[\w-]+)|(?P<quoted>"(?:[^"\\]|\\.)*"))|\[(?:(?P<index>\d{1,9})|(?P<key>"(?:[^"\\]|\\.)*"))\]'
)
_LISTED = 8  # names that an error lists


class Missing(EditError):
    """There is no such place in the outcome (LS212)."""


def read_from(text: str, at: int = 0) -> tuple[Place, int]:
    """The path that begins there in a text, and where it ends. Raises EditError LS211."""
    steps: list[str | int] = []
    while found := _STEP.match(text, at):
        name, quoted = found["name"], found["quoted"] or found["key"]
        dotted = found["dot"] is not None
        if dotted == (not steps) and (name or found["quoted"]):
            break  # a name stands at the beginning or behind a dot
        if found["index"] is not None:
            steps.append(int(found["index"]))
        else:
            steps.append(name if quoted is None else _unquoted(quoted, text))
        at = found.end()
    return tuple(steps), at


def parse(text: str) -> Place:
    """A whole text as a path, "" for the whole value. Raises EditError LS211."""
    place, end = read_from(text)
    if end != len(text):
        raise EditError(
            Code.BAD_EDIT,
            f"not a path: {text!r}, from {text[end:]!r} on. One looks like choices[0].message.content; a name with odd "
            'characters stands in double quotes: headers."x y"',
        )
    return place


def shown(place: Place) -> str:
    """The path as text."""
    text = ""
    for step in place:
        text = f"{text}[{step}]" if isinstance(step, int) else structure.joined(text, step)
    return text


def at(value: Value, place: Place) -> Value:
    """What stands at a place. Raises Missing."""
    for depth, step in enumerate(place):
        value = _inside(structure.opened(value), step, place[:depth])
    return value


def put(value: Value, place: Place, new: Value, *, before: Place = (), added: Sequence[str] = ()) -> Value:
    """The value with another one at a place; what it was made of is shared. Raises Missing.

    before  how the value was come to, for errors
    added   names that a map may lack: they are added
    """
    if not place:
        return new
    step, *rest = place
    inner = structure.opened(value)
    if isinstance(inner, dict) and isinstance(step, str) and step in added and step not in inner and not rest:
        made: Any = {**inner, step: new}
    else:
        changed = put(_inside(inner, step, before), tuple(rest), new, before=(*before, step))
        if isinstance(inner, dict):
            made = {**inner, str(step): changed}
        else:
            made = [*inner]  # type: ignore[misc]
            made[int(step)] = changed
    if inner is value:
        return made  # type: ignore[no-any-return]
    text = msgspec.json.encode(made)
    return text if isinstance(value, bytes) else text.decode()


def _inside(value: Value, step: str | int, before: Place) -> Any:
    if isinstance(value, dict) and isinstance(step, str) and step in value:
        return value[step]
    if isinstance(value, list) and isinstance(step, int) and step < len(value):
        return value[step]
    where = shown(before) or "the outcome"
    raise Missing(Code.NO_PLACE, f"there is no {shown((*before, step))}: {where} {_holds(value)}")


def _holds(value: Value) -> str:
    if isinstance(value, dict):
        names = [structure.joined("", name) for name in value]
        more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
        return f"has {', '.join(names[:_LISTED])}{more}" if names else "is empty"
    if isinstance(value, list):
        return f"is a list of {len(value)}, counted from 0" if value else "is an empty list"
    return f"is {structure.shown(value)}"


def _unquoted(quoted: str, text: str) -> str:
    try:
        found: str = json.loads(quoted)
    except ValueError:
        raise EditError(Code.BAD_EDIT, f"not a path: {text!r}: {quoted} is no JSON string") from None
    return found
