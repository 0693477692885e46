"""LangChain's messages as they stand in calls and states: maps with a `type` (`human`, `ai`, `system`, `tool`, …)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from lockstep.debugger.dialects.parts import Answer, Message, Usage, at, call, count, items, joined, string
from lockstep.log.model import Value

FORMS = frozenset({"content", "tool_calls", "generations"})
FORM = '{"content", "tool_calls": [{"name", "args", "id"}], …}'

_ROLES = {"human": "user", "ai": "assistant"}
_TYPES = frozenset({"human", "ai", "system", "tool", "function", "chat", "remove"})
_PIECES = ("chunk", "message")  # of the parts of a streamed answer


def is_message(value: Value) -> bool:
    """Whether this is one, of a call or of a state."""
    return isinstance(value, dict) and _kind(value) in _TYPES and ("content" in value or value.get("type") == "remove")


def is_request(request: Value) -> bool:
    """Whether a model was asked through LangChain."""
    return isinstance(request, dict) and isinstance(request.get("messages"), list) and "url" not in request


def message(value: Value) -> Message:
    """One message."""
    kind = _kind(value)
    role = string(value, "role") if kind == "chat" else _ROLES.get(kind, kind)
    called = tuple(
        call(one.get("name"), one.get("args", one.get("arguments")), one.get("id"))
        for one in items(value, "tool_calls")
    )
    return Message(role, _text(at(value, "content")), called, string(value, "tool_call_id"))


def messages(request: Value) -> tuple[Message, ...]:
    """What was sent."""
    found = at(request, "messages")
    return tuple(map(message, found)) if isinstance(found, list) else ()


def answer(parts: Iterable[Value], end: Value) -> Answer | None:
    """What came back: the whole message, or what the pieces of it make, where nobody saw its end."""
    if isinstance(end, dict):
        choices = end.get("generations")
        first = at(choices, 0) if isinstance(choices, list) else end
        return _answer(first)
    pieces = [piece for part in parts for name in _PIECES if isinstance(piece := at(part, name), dict)]
    if not pieces:
        return None
    called = [one for piece in pieces for one in items(piece, "tool_call_chunks")]
    names = [one for one in called if string(one, "name")]
    said = Message(
        "assistant",
        joined((_text(at(piece, "content")) for piece in pieces), ""),
        tuple(call(one.get("name"), _arguments(called, one.get("index")), one.get("id")) for one in names),
    )
    return Answer(said)


def _answer(value: Any) -> Answer:
    about = at(value, "response_metadata")
    usage = Usage(count(value, "usage_metadata", "input_tokens"), count(value, "usage_metadata", "output_tokens"))
    finish = string(about, "finish_reason") or string(about, "stop_reason")
    return Answer(message(value), finish, usage, string(about, "model_name") or string(about, "model"))


def _arguments(called: Iterable[dict[str, Any]], index: Any) -> str:
    return joined((string(one, "args") for one in called if one.get("index") == index), "")


def _kind(value: Any) -> str:
    return string(value, "type").removesuffix("MessageChunk").lower()


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    found = []
    for block in content if isinstance(content, list) else ():
        if isinstance(block, str):
            found.append(block)
        elif isinstance(block, dict):
            text = block.get("text")
            kind = string(block, "type")
            if isinstance(text, str):
                found.append(text)
            elif kind != "tool_use":  # said by the calls of the message
                found.append(f"({kind or 'content'})")
    return joined(found, " ")
