"""AG2's events as data and back, and what of them is a message.

An event stands in the record as all of its fields, but for the moment at which it was made, which AG2 does not compare
either. Ids that AG2 draws anew each time (of a question to a human, of a delegated task) are renamed by their first
appearance; ids that a provider or a tool gave are part of what they said.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

from ag2.events import (
    BaseEvent,
    DataInput,
    HumanInputRequest,
    HumanMessage,
    ModelRequest,
    ModelResponse,
    TextInput,
    ToolCallEvent,
    ToolResultEvent,
    ToolResultsEvent,
)

from lockstep.debugger import outcomes
from lockstep.errors import Code, LockstepError
from lockstep.log.model import Value
from lockstep.session import snapshot

# Of every event: when it was made, and what it has decoded of itself so far.
_UNTOLD = frozenset({"created_at", "_serialized_arguments"})
# Fields of the events of delegated tasks and of questions that hold ids which AG2 draws.
_DRAWN = ("task_id", "task_stream")
_SUBTASK = re.compile(r"subtask-[0-9a-f]{8}\b")
_ERROR = "error"
_HEX = re.compile(r"\b[0-9a-f]{32}\b")
# Modules of the events that providers are told of, beside questions, answers and batches of tool results: what they
# gave themselves and want back, and summaries. Tool calls by themselves are said again by the answer before.
_TOLD = ("ag2.config.", "ag2.compact", "ag2.aggregate")


class Names:
    """The ids that AG2 has drawn in one conversation, each with the name that stands for it."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    def learn(self, event: object) -> None:
        """Takes note of what an event was given as its own ids."""
        if isinstance(event, HumanInputRequest):
            self._name(event.id, "question")
        if isinstance(event, HumanMessage):
            self._name(event.parent_id, "question")  # which the history has only where nobody answered it
        for field in _DRAWN:
            found = getattr(event, field, None)
            if found is not None:
                self._name(str(found), "task")
        for field in ("agent_name", "label"):
            found = getattr(event, field, None)
            if isinstance(found, str) and _SUBTASK.fullmatch(found):
                self._name(found, "subtask")

    def learn_text(self, text: str) -> None:
        """Takes note of the ids in what a tool of AG2's own has said of a task that it began."""
        for found in _HEX.findall(text):
            self._name(found, "task")

    def rename(self, value: Value) -> Value:
        """The value with names in the place of ids. The same object where it has none."""
        if not self._known:
            return value
        if isinstance(value, str):
            for known, name in self._known.items():
                if known in value:
                    value = value.replace(known, name)
            return value
        if isinstance(value, list):
            return [self.rename(item) for item in value]
        if isinstance(value, dict):
            return {key: self.rename(item) for key, item in value.items()}
        return value

    def _name(self, drawn: str, kind: str) -> None:
        if drawn and drawn not in self._known:
            count = sum(name.startswith(f"{kind}-") for name in self._known.values())
            self._known[drawn] = f"{kind}-{count + 1}"


def dump(event: object) -> Value:
    """The event as data. Raises StoreError LS207 for one that holds what is no data."""
    return _told(snapshot.to_value(event))


def _told(value: Value) -> Value:
    if isinstance(value, list):
        return [_told(item) for item in value]
    if isinstance(value, dict):
        if value.get(snapshot.TAG) == "object":
            return {name: _told(item) for name, item in value.items() if name not in _UNTOLD}
        return {name: _told(item) for name, item in value.items()}
    return value


def compared(value: Value) -> Value:
    """An event's data as far as two histories are compared by it: of an error that a tool failed with, the text that
    the model was told. What else an exception holds depends on who made it, its tool or a record of it."""
    if isinstance(value, list):
        return [compared(item) for item in value]
    if isinstance(value, dict):
        failed = _ERROR in value and "parent_id" in value
        return {name: compared(item) for name, item in value.items() if not (failed and name == _ERROR)}
    return value


def load(value: Value) -> Any:
    """The reverse: what was left out is as in an event that is new. Raises LockstepError LS110 where its class is not
    loaded, or is another one now."""
    found = snapshot.from_value(value)
    _fill(found, set())
    return found


def _fill(found: Any, seen: set[int]) -> None:
    if id(found) in seen:
        return
    seen.add(id(found))
    if isinstance(found, BaseEvent):
        for cls in type(found).__mro__:
            for name, field in getattr(cls, "_event_fields_", {}).items():
                if name not in found.__dict__:
                    default = field.get_default()
                    if default is not Ellipsis:
                        found.__dict__[name] = default
        for inner in list(found.__dict__.values()):
            _fill(inner, seen)
    elif isinstance(found, (list, tuple)):
        for inner in found:
            _fill(inner, seen)
    elif isinstance(found, dict):
        for inner in found.values():
            _fill(inner, seen)
    elif (parts := getattr(found, "parts", None)) is not None:
        _fill(parts, seen)


def is_transient(event: object) -> bool:
    """Whether a history does not keep it."""
    return bool(getattr(type(event), "__transient__", False))


def is_telemetry(event: object) -> bool:
    """Whether a history keeps it without telling the model."""
    return is_transient(event) or not getattr(type(event), "__conversational__", True)


# Messages: what people read, and what a model is asked with.


def messages(events: Iterable[Any]) -> list[Value]:
    """What a history says, as messages: `{"type": "human" | "ai" | "tool", "content": …}`."""
    found: list[Value] = []
    for event in events:
        if type(event).__name__ == "DrainedModelRequest" or type(event) is ModelRequest:
            found.append({"type": "human", "content": content(event.parts)})
        elif type(event) is ModelResponse:
            found.append(answer(event))
        elif type(event) is ToolResultsEvent:
            found += [_result(one) for one in event.results]
        elif _is_told(event):
            found.append({"type": "chat", "role": type(event).__name__, "content": "", "event": data(event)})
    return found


def _is_told(event: Any) -> bool:
    kind = type(event)
    return not is_transient(event) and (kind.__module__.startswith(_TOLD) or kind.__name__.startswith("Builtin"))


def _result(event: ToolResultEvent) -> Value:
    told: dict[str, Value] = {
        "type": "tool",
        "content": content(event.result.parts),
        "name": event.name,
        "tool_call_id": event.parent_id,
    }
    error = getattr(event, "error", None)
    if error is not None:
        told["error"] = f"{type(error).__name__}: {error}"
    if event.result.metadata:
        told["metadata"] = data(event.result.metadata)
    return told


def content(parts: Sequence[Any]) -> Value:
    """What parts of a message say: of a single text that, of single data these, else all as blocks."""
    if len(parts) == 1 and not parts[0].metadata:
        one = parts[0]
        if type(one) is TextInput:
            return str(one.content)
    return [_block(part) for part in parts]


def _block(part: Any) -> Value:
    if type(part) is TextInput and not part.metadata:
        return {"type": "text", "text": part.content}
    if type(part) is DataInput and not part.metadata:
        return {"type": "data", "text": json.dumps(outcomes.to_json(data(part.data)), ensure_ascii=False)}
    return {"type": type(part).__name__, "part": data(part)}


def answer(response: ModelResponse) -> dict[str, Value]:
    """What a model said, as a message, without what was counted beside."""
    message = response.message
    told: dict[str, Value] = {"type": "ai", "content": message.content if message is not None else ""}
    if message is not None and message.metadata:
        told["metadata"] = data(message.metadata)
    if response.tool_calls.calls:
        told["tool_calls"] = [_call(one) for one in response.tool_calls.calls]
    if response.files:
        told["files"] = data(response.files)
    return told


def _call(call: ToolCallEvent) -> Value:
    told: dict[str, Value] = {"name": call.name, "args": call.arguments, "id": call.id}
    if getattr(call, "vendor_metadata", None):  # since AG2 1.1
        told["vendor_metadata"] = data(call.vendor_metadata)
    return told


def data(value: Any) -> Value:
    """As data; what is none counts by its class, and never by its address."""
    try:
        return dump(value)
    except LockstepError:
        return snapshot.by_class(value)


def unservable(what: str) -> LockstepError:
    return LockstepError(Code.UNSERVABLE, what)


def schema(value: Any) -> Value:
    """What a model is told of a tool, or of the form of its answer."""
    function = getattr(value, "function", None)
    if type(value).__name__ == "FunctionToolSchema" and function is not None and not value.defer_loading:
        return {
            "name": function.name, "description": function.description, "parameters": data(function.parameters)
        }  # fmt: skip
    return data(value)
