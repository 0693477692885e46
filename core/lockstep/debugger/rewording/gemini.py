"""Google's generateContent: an answer is a list of parts, streamed in chunks of the same shape."""

from __future__ import annotations

from typing import Any

from lockstep.debugger.dialects.parts import Message, ToolCall, at, call
from lockstep.debugger.rewording import said as saying
from lockstep.debugger.rewording.said import Asked, Form


def whole(body: Any, said: Message, before: Message, asked: Asked) -> Any:
    """A plain answer with another message in its first candidate."""
    return stream([] if body is None else [body], said, before, asked)[0]


def stream(chunks: list[Any], said: Message, before: Message, asked: Asked) -> list[Any]:
    """The chunks of a streamed answer, the first of which says all there is; the last one has the counts."""
    holding = [chunk for chunk in chunks if isinstance(at(chunk, "candidates", 0), dict)]
    if not holding and chunks:
        raise saying.unlike("gemini")
    first = holding[0] if holding else _empty(asked)
    recorded = [part for chunk in holding for part in at(chunk, "candidates", 0, "content", "parts") or ()]
    parts = saying.reworded(recorded, _FORM, said, before)
    made = [_with_parts(first, parts)]
    if len(holding) > 1:
        made.append(_with_parts(holding[-1], [{"text": ""}]))
    return made


def _with_parts(chunk: dict[str, Any], parts: list[Any]) -> dict[str, Any]:
    candidate, *more = chunk["candidates"]
    content = candidate.get("content") if isinstance(candidate.get("content"), dict) else {"role": "model"}
    return {**chunk, "candidates": [{**candidate, "content": {**content, "parts": parts}}, *more]}


def _text(part: Any) -> str | None:
    if not isinstance(part, dict) or part.get("thought") is True or not isinstance(part.get("text"), str):
        return None
    return str(part["text"])


def _call(part: Any) -> ToolCall | None:
    asked = at(part, "functionCall")
    if not isinstance(asked, dict):
        return None
    return call(asked.get("name"), asked.get("args"), asked.get("id"))


def _with_text(part: Any, text: str) -> Any:
    return {**(part or {}), "text": text}


def _with_call(part: Any, call: ToolCall) -> Any:
    before = at(part, "functionCall") or {}
    made = {**before, "name": call.name, "args": saying.arguments(call)}
    if call.id:
        made["id"] = call.id
    return {**(part or {}), "functionCall": made}


def _mark(part: Any) -> str:
    if not isinstance(part, dict) or part.get("thought") is True:
        return ""
    kinds = [key for key in part if key.endswith(("Data", "_data", "Code", "Result"))]
    return f"[{kinds[0]}]" if kinds else ""


_FORM = Form(_text, _call, _with_text, _with_call, _mark)


def _empty(asked: Asked) -> dict[str, Any]:
    candidate = {"content": {"parts": [], "role": "model"}, "finishReason": "STOP", "index": 0}
    return {"candidates": [candidate], "modelVersion": asked.model}
