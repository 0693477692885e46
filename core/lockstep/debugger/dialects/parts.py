"""The parts of a conversation with a model, the same for every API, and safe ways into odd JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec


class ToolCall(msgspec.Struct, frozen=True):
    """A tool that the model asks for. `arguments`: JSON as the model wrote it, maybe broken off."""

    name: str
    arguments: str = ""
    id: str = ""


class Message(msgspec.Struct, frozen=True):
    """One message. `role`: system, user, assistant, tool, …; `of`: the id of the tool call it answers."""

    role: str
    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    of: str = ""


class Usage(msgspec.Struct, frozen=True):
    """Tokens as the provider counted them, those read from or written to its cache included; None: not said."""

    input: int | None = None
    output: int | None = None


class Answer(msgspec.Struct, frozen=True):
    """What the model said. `finish`: the provider's own word for why it stopped, "" where it did not say."""

    message: Message
    finish: str = ""
    usage: Usage = Usage()
    model: str = ""


def at(value: Any, *path: str | int) -> Any:
    """The value at a path of keys and indexes, None where there is none."""
    for step in path:
        if isinstance(step, str):
            if not isinstance(value, dict):
                return None
            value = value.get(step)
        else:
            if not isinstance(value, list) or not -len(value) <= step < len(value):
                return None
            value = value[step]
    return value


def items(value: Any, *path: str | int) -> Iterator[dict[str, Any]]:
    """The objects in the list at a path."""
    found = at(value, *path)
    if isinstance(found, list):
        for item in found:
            if isinstance(item, dict):
                yield item


def string(value: Any, *path: str | int) -> str:
    found = at(value, *path)
    return found if isinstance(found, str) else ""


def count(value: Any, *path: str | int) -> int | None:
    found = at(value, *path)
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def total(*numbers: int | None) -> int | None:
    """The sum of those that were said; None where none was."""
    said = [number for number in numbers if number is not None]
    return sum(said) if said else None


def dumped(value: Any) -> str:
    """A value as compact JSON text, which is how models write it; a string as itself."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
    except (RecursionError, ValueError):
        return "(nested too deeply)"


def joined(texts: Iterable[str], between: str = "\n") -> str:
    return between.join(each for each in texts if each)


def call(name: Any, arguments: Any, id: Any = "") -> ToolCall:
    return ToolCall(string(name), dumped(arguments), string(id))


class Calls:
    """Tool calls that arrive in pieces, by the index that the API gives them."""

    def __init__(self) -> None:
        self._calls: dict[Any, tuple[list[str], list[str], list[str]]] = {}

    def add(self, index: Any, name: Any = "", arguments: Any = "", id: Any = "") -> None:
        key = index if isinstance(index, int | str) else len(self._calls)
        names, pieces, ids = self._calls.setdefault(key, ([], [], []))
        names.append(string(name))
        pieces.append(dumped(arguments))
        ids.append(string(id))

    def all(self) -> tuple[ToolCall, ...]:
        return tuple(ToolCall("".join(name), "".join(text), "".join(id)) for name, text, id in self._calls.values())
