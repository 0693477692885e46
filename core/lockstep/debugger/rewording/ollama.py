"""Ollama's own chat and generate, plain or as JSON lines."""

from __future__ import annotations

from typing import Any

from lockstep.debugger.dialects.parts import Message, ToolCall, at
from lockstep.debugger.rewording import said as saying
from lockstep.debugger.rewording.said import Asked


def whole(body: Any, said: Message, before: Message, asked: Asked) -> Any:
    """A plain answer with another message."""
    return stream([_empty(asked) if body is None else body], said, before, asked)[0]


def stream(lines: list[Any], said: Message, before: Message, asked: Asked) -> list[Any]:
    """The lines of a streamed answer: what is said stands in the first that said something."""
    if not lines:
        last = _empty(asked)
        lines = [{name: value for name, value in last.items() if name != "done_reason"} | {"done": False}, last]
    if not any(isinstance(line, dict) and ("message" in line or "response" in line) for line in lines):
        raise saying.unlike("ollama")
    if _generates(asked) and said.tool_calls:
        raise saying.unlike("ollama generate")
    made: list[Any] = []
    due = True
    for line in lines:
        if due and isinstance(line, dict) and ("message" in line or "response" in line) and not _thinks(line):
            made.append(_saying(line, said))
            due = False
        elif _thinks(line) or at(line, "done") is True:
            made.append(_silent(line))
    if due:
        made[-1] = _saying(made[-1], said)
    return made


def _thinks(line: Any) -> bool:
    return bool(at(line, "message", "thinking") or at(line, "thinking")) and at(line, "done") is not True


def _saying(line: dict[str, Any], said: Message) -> dict[str, Any]:
    if "response" in line:
        return {**line, "response": said.text}
    recorded = at(line, "message", "tool_calls")
    old = recorded if isinstance(recorded, list) else []
    message = {**line["message"], "content": said.text}
    calls = [_call(old[n] if n < len(old) else {}, call) for n, call in enumerate(said.tool_calls)]
    message.pop("tool_calls", None)
    return {**line, "message": {**message, "tool_calls": calls} if calls else message}


def _silent(line: dict[str, Any]) -> dict[str, Any]:
    if "response" in line:
        return {**line, "response": ""}
    if not isinstance(line.get("message"), dict):
        return line
    message = {name: value for name, value in line["message"].items() if name != "tool_calls"}
    return {**line, "message": {**message, "content": ""}}


def _call(recorded: Any, call: ToolCall) -> dict[str, Any]:
    base = recorded if isinstance(recorded, dict) else {}
    made = {
        **base,
        "function": {**(at(base, "function") or {}), "name": call.name, "arguments": saying.arguments(call)},
    }
    return {**made, "id": call.id} if call.id else made


def _generates(asked: Asked) -> bool:
    return asked.url.partition("?")[0].rstrip("/").endswith("/generate")


def _empty(asked: Asked) -> dict[str, Any]:
    said: dict[str, Any] = {"response": ""} if _generates(asked) else {"message": {"role": "assistant", "content": ""}}
    when = "1970-01-01T00:00:00Z"
    return {"model": asked.model, "created_at": when, **said, "done": True, "done_reason": "stop"}
