"""AutoGen's messages: those that a model is told (`UserMessage`, …) and those that agents say (`TextMessage`, …), as
maps with a `type`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from lockstep.debugger.dialects.parts import (
    Answer,
    Message,
    ToolCall,
    Usage,
    at,
    call,
    count,
    dumped,
    items,
    joined,
    string,
)
from lockstep.log.model import Value

_ROLES = {
    "SystemMessage": "system", "UserMessage": "user", "AssistantMessage": "assistant",
    "FunctionExecutionResultMessage": "tool",
}  # fmt: skip
_SAID = ("Message", "Event")  # how the types of what agents say end; those of structured messages name a class


def is_told(value: Value) -> bool:
    """Whether this is a message to a model."""
    return isinstance(value, dict) and value.get("type") in _ROLES and "content" in value


def is_said(value: Value) -> bool:
    """Whether this is what an agent said or did."""
    kind = string(value, "type").partition("[")[0]
    return kind.endswith(_SAID) and kind not in _ROLES and isinstance(at(value, "source"), str)


def is_message(value: Value) -> bool:
    return is_told(value) or is_said(value)


def is_request(request: Value) -> bool:
    """Whether a model was asked through AutoGen."""
    told = at(request, "messages")
    return isinstance(told, list) and bool(told) and all(map(is_told, told))


def message(value: Value) -> Message:
    """One message; the role of what an agent said is its name."""
    content = at(value, "content")
    role = _ROLES.get(string(value, "type")) or string(value, "source")
    called = _called(content)
    text = "" if called else _text(content)
    target = string(value, "target")
    return Message(role, f"→ {target}  {text}" if target else text, called)


def messages(request: Value) -> tuple[Message, ...]:
    """What was sent."""
    return tuple(message(one) for one in items(request, "messages"))


def answer(parts: Iterable[Value], end: Value) -> Answer | None:
    """What came back: the whole answer, or the pieces of it, where nobody saw its end."""
    if not isinstance(end, dict):
        pieces = [part for part in parts if isinstance(part, str)]
        return Answer(Message("assistant", "".join(pieces))) if pieces else None
    content = at(end, "content")
    called = _called(content)
    usage = Usage(count(end, "usage", "prompt_tokens"), count(end, "usage", "completion_tokens"))
    said = Message("assistant", "" if called else _text(content), called)
    return Answer(said, string(end, "finish_reason"), usage)


def _called(content: Any) -> tuple[ToolCall, ...]:
    return tuple(
        call(one.get("name"), one.get("arguments"), one.get("id"))
        for one in items({"content": content}, "content")
        if "arguments" in one and "name" in one
    )


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return dumped(content)
    return joined((_part(one) for one in content), " ")


def _part(part: Any) -> str:
    if isinstance(part, dict):
        if "call_id" in part:
            return f"{string(part, 'name')} = {_text(part.get('content'))}"
        if "data" in part:
            return "(image)"
    return part if isinstance(part, str) else dumped(part)
