"""Stored values in words: what a state holds, on a line. What was an object is named, and nothing of it is made."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from lockstep.debugger import words
from lockstep.debugger.dialects import framed
from lockstep.debugger.dialects.parts import Message
from lockstep.log.model import Value
from lockstep.session.snapshot import TAG

_MOST = 400  # characters: lines are cut to the terminal's width
_NAMED = 6  # entries of a map or list that are written out
_WITHOUT = frozenset({TAG, "$class", "$set"})


def line(value: Value, most: int = _MOST) -> str:
    """The value in a line of about so many characters."""
    text = _said(value, most)
    return text if len(text) <= most else text[: most - 1] + "…"


def message(said: Message) -> str:
    """A message in a line: its role, what it says and the tools it asks for."""
    called = ", ".join(f"{one.name}({_arguments(one.arguments)})" for one in said.tool_calls)
    text = f'"{said.text}"' if said.text or not called else ""
    return " ".join(part for part in (said.role, text, f"→ {called}" if called else "") if part)


def are_messages(value: Value) -> bool:
    """Whether this is a list of messages."""
    return isinstance(value, list) and bool(value) and all(map(framed.is_message, value))


def _arguments(text: str) -> str:
    try:
        given = json.loads(text)
    except ValueError:
        return text
    if not isinstance(given, dict):
        return text
    return ", ".join(f"{name}={_compact(value)}" for name, value in given.items())


def _said(value: Value, room: int) -> str:
    if isinstance(value, dict):
        return _map(value, room)
    if isinstance(value, list):
        if len(value) > 1 and are_messages(value):
            return f"{words.number(len(value), 'message')}, the last: {_said(value[-1], room)}"
        return f"[{_joined([_said(item, room // 2) for item in value[:_NAMED]], len(value))}]"
    return _compact(value)


def _map(value: dict[str, Value], room: int) -> str:
    if framed.is_message(value):
        return message(framed.message(value))
    kind = value.get(TAG)
    if not isinstance(kind, str):
        return f"{{{_fields(value, room, ': ', quoted=True)}}}"
    if kind == "typed":
        data = value.get("data")
        size = f", {words.size(len(data))}" if isinstance(data, bytes) else ""
        return f"({value.get('type')!s}{size})"
    title = "" if kind == "tuple" else str(value.get("$class") or kind).rpartition(":")[2].rpartition(".")[2]
    items = value.get("$items")
    if isinstance(items, list) and len(value) <= 3:
        return f"{title}({_joined([_said(item, room // 2) for item in items[:_NAMED]], len(items))})"
    # What an object has and was not given says little.
    fields = {name: item for name, item in value.items() if name not in _WITHOUT and not _is_nothing(item)}
    return f"{title}({_fields(fields, room, '=')})"


def _is_nothing(value: Value) -> bool:
    return value is None or value in ([], {}) or (isinstance(value, dict) and value.get("$items") == [])


def _fields(fields: dict[str, Value], room: int, between: str, *, quoted: bool = False) -> str:
    shown = [
        f"{_compact(name) if quoted else name}{between}{_said(item, room // 2)}"
        for name, item in list(fields.items())[:_NAMED]
    ]
    return _joined(shown, len(fields))


def _joined(shown: Sequence[str], count: int) -> str:
    return ", ".join([*shown, "…"] if count > len(shown) else shown)


def _compact(value: Any) -> str:
    if isinstance(value, bytes):
        return f"({words.size(len(value))})" if len(value) > 32 else repr(value)
    return json.dumps(value, ensure_ascii=False)
