"""Google's generateContent, at Gemini and on Vertex."""

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
    total,
)


def messages(body: Any) -> tuple[Message, ...]:
    system = at(body, "systemInstruction") or at(body, "system_instruction")
    found = [Message("system", _text(system))] if system else []
    for content in items(body, "contents"):
        found += _messages(string(content, "role") or "user", content)
    single = at(body, "content")  # embedContent
    if isinstance(single, dict):
        found += _messages("user", single)
    return tuple(found)


def answer(chunks: Iterable[Any]) -> Answer:
    """One answer from a plain body (one chunk) or the chunks of a stream."""
    texts: list[str] = []
    calls: list[ToolCall] = []
    finish = model = ""
    usage = Usage()
    for chunk in chunks:
        candidate = at(chunk, "candidates", 0)
        texts.append(_text(at(candidate, "content"), ""))
        calls += _calls(at(candidate, "content"))
        finish = string(candidate, "finishReason") or finish
        model = string(chunk, "modelVersion") or model
        counted = at(chunk, "usageMetadata")
        if isinstance(counted, dict):
            # thinking is billed as output and counted apart
            said = total(count(counted, "candidatesTokenCount"), count(counted, "thoughtsTokenCount"))
            usage = Usage(count(counted, "promptTokenCount"), said)
        elif count(chunk, "totalTokens") is not None:  # countTokens
            usage = Usage(count(chunk, "totalTokens"))
    return Answer(Message("assistant", "".join(texts), tuple(calls)), finish, usage, model)


def _messages(role: str, content: dict[str, Any]) -> list[Message]:
    results = [
        Message("tool", dumped(at(part, "functionResponse", "response")), of=string(part, "functionResponse", "name"))
        for part in items(content, "parts")
        if isinstance(part.get("functionResponse"), dict)
    ]
    text, calls = _text(content), tuple(_calls(content))
    said = Message("assistant" if role == "model" else role, text, calls)
    return [*results, said] if text or calls or not results else results


def _text(content: Any, between: str = "\n") -> str:
    if isinstance(content, str):
        return content
    return joined((_part(part) for part in items(content, "parts")), between)


def _part(part: dict[str, Any]) -> str:
    if part.get("thought") is True:
        return ""
    if "text" in part:
        return string(part, "text")
    kinds = [key for key in part if key.endswith(("Data", "_data", "Code", "Result"))]
    return f"[{kinds[0]}]" if kinds else ""


def _calls(content: Any) -> list[ToolCall]:
    return [
        call(at(part, "functionCall", "name"), at(part, "functionCall", "args"), at(part, "functionCall", "id"))
        for part in items(content, "parts")
        if isinstance(part.get("functionCall"), dict)
    ]
