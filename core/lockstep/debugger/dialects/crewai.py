"""CrewAI's calls of models: messages as OpenAI's are, whoever answers, and an answer as its agent gets it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from lockstep.debugger.dialects import openai
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
    total,
)
from lockstep.log.model import Value

# What an answer is, whichever of them it has.
FORMS = frozenset({"text", "tool_calls", "object", "value"})
FORM = 'a text, or {"text"}, {"tool_calls": [{"function": {"name", "arguments"}, "id"}]} or {"object"}'

_INPUT = ("prompt_tokens", "input_tokens", "prompt_token_count")
_OUTPUT = ("completion_tokens", "output_tokens", "candidates_token_count")


def is_request(request: Value) -> bool:
    """Whether a model was asked through CrewAI."""
    if not isinstance(request, dict) or "url" in request:
        return False
    told = request.get("messages")
    if isinstance(told, list):
        return bool(told) and all(isinstance(at(each, "role"), str) and at(each, "type") is None for each in told)
    return isinstance(told, str)


def messages(request: Value) -> tuple[Message, ...]:
    """What was sent."""
    told = at(request, "messages")
    return (Message("user", told),) if isinstance(told, str) else openai.chat_messages(request)


def answer(parts: Iterable[Value], end: Value) -> Answer | None:
    """What came back: the whole answer, or the chunks of it, where nobody saw its end."""
    if not isinstance(end, dict):
        text = joined((part if isinstance(part, str) else _chunk(part) for part in parts), "")
        return Answer(Message("assistant", text)) if text else None
    called = tuple(map(_called, items(end, "tool_calls")))
    text = string(end, "text") or dumped(at(end, "object")) or dumped(at(end, "value"))
    usage = Usage(_counted(end, _INPUT), _counted(end, _OUTPUT))
    return Answer(Message("assistant", text, called), string(end, "finish_reason"), usage)


def _chunk(part: Value) -> str:
    return string(part, "chunk") if at(part, "tool_call") is None else ""


def _called(value: dict[str, Any]) -> ToolCall:
    """A call as one of the SDKs has it: OpenAI's, Anthropic's and Bedrock's, or Gemini's."""
    of: Any = at(value, "function") or at(value, "function_call") or value
    arguments = next((of[name] for name in ("arguments", "input", "args") if name in of), None)
    return call(at(of, "name"), arguments, at(value, "id") or at(value, "toolUseId"))


def _counted(end: Value, names: Iterable[str]) -> int | None:
    return total(next((found for name in names if (found := count(end, "usage", name)) is not None), None))
