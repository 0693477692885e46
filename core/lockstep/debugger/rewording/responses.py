"""OpenAI's responses: an answer is a list of items, one of which is the message."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lockstep.debugger.dialects.parts import Message, ToolCall, at, call, string
from lockstep.debugger.rewording import said as saying
from lockstep.debugger.rewording.said import Asked, Form
from lockstep.debugger.rewording.streams import Event

_ENDS = ("response.completed", "response.incomplete", "response.failed")


def whole(body: Any, said: Message, before: Message, asked: Asked) -> Any:
    """A plain answer with another message among its items."""
    if body is None:
        body = _empty(asked)
    items = body.get("output") if isinstance(body, dict) else None
    if not isinstance(items, list):
        raise saying.unlike("openai responses")
    named = Message(said.role, said.text, saying.named(said.tool_calls, "call_"))
    made = {**body, "output": saying.reworded(items, _FORM, named, before)}
    if made.get("status") in ("failed", "cancelled", "in_progress"):
        made |= {"status": "completed", "error": None}
    return made


def stream(events: list[Event], said: Message, before: Message, asked: Asked) -> list[Event]:
    """A streamed answer with another message. Items that are as they were come as they came."""
    data = [event.data for event in events if isinstance(event.data, dict)]
    last = next((at(each, "response") for each in data if each.get("type") in _ENDS), None)
    begun = next((each["response"] for each in data if isinstance(at(each, "response"), dict)), None)
    if last is None:
        items = [at(each, "item") for each in data if each.get("type") == "response.output_item.done"]
        last = {**(_empty(asked) if begun is None else begun), "output": items, "status": "completed"}
    made = whole(last, said, before, asked)
    opening = {**made, "status": "in_progress", "output": [], "usage": None} if begun is None else begun
    found: list[dict[str, Any]] = [{"type": "response.created", "response": opening}]
    if begun is None or any(each.get("type") == "response.in_progress" for each in data):
        found.append({"type": "response.in_progress", "response": opening})
    for index, item in enumerate(made["output"]):
        recorded = next((n for n, old in enumerate(last["output"]) if old is item), None)
        kept = [each for each in data if recorded is not None and each.get("output_index") == recorded]
        found += ({**each, "output_index": index} for each in kept or _item(item))
    end = "response.incomplete" if made.get("status") == "incomplete" else "response.completed"
    found.append({"type": end, "response": made})
    return [Event(each["type"], {**each, "sequence_number": n}) for n, each in enumerate(found)]


def _item(item: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The events that bring an item."""
    id = string(item, "id")
    where = {"item_id": id}
    if saying.kind(item) == "message":
        yield {"type": "response.output_item.added", "item": {**item, "status": "in_progress", "content": []}}
        for n, part in enumerate(item["content"]):
            place = {**where, "content_index": n}
            text = string(part, "text")
            yield {"type": "response.content_part.added", **place, "part": {**part, "text": ""}}
            if text:
                yield {"type": "response.output_text.delta", **place, "delta": text, "logprobs": []}
            yield {"type": "response.output_text.done", **place, "text": text, "logprobs": []}
            yield {"type": "response.content_part.done", **place, "part": part}
    elif saying.kind(item) in ("function_call", "custom_tool_call"):
        key, name = (
            ("arguments", "function_call_arguments") if "arguments" in item else ("input", "custom_tool_call_input")
        )
        yield {"type": "response.output_item.added", "item": {**item, "status": "in_progress", key: ""}}
        yield {"type": f"response.{name}.delta", **where, "delta": item[key]}
        yield {"type": f"response.{name}.done", **where, key: item[key]}
    else:
        yield {"type": "response.output_item.added", "item": item}
    yield {"type": "response.output_item.done", "item": item}


def _text(item: Any) -> str | None:
    if saying.kind(item) != "message":
        return None
    return "\n".join(string(part, "text") or string(part, "refusal") for part in item.get("content") or ())


def _recorded_call(item: Any) -> ToolCall | None:
    if saying.kind(item) == "function_call":
        return call(item.get("name"), item.get("arguments"), item.get("call_id"))
    if saying.kind(item) == "custom_tool_call":
        return call(item.get("name"), item.get("input"), item.get("call_id"))
    return None


def _with_text(item: Any, text: str) -> Any:
    base = {"id": "msg_edited", "type": "message", "role": "assistant", "status": "completed"} if item is None else item
    return {**base, "content": [{"type": "output_text", "text": text, "annotations": [], "logprobs": []}]}


def _with_call(item: Any, call: ToolCall) -> Any:
    base = item if item is not None else {"id": f"fc_{call.id}", "type": "function_call", "status": "completed"}
    key = "input" if saying.kind(base) == "custom_tool_call" else "arguments"
    return {**base, "call_id": call.id, "name": call.name, key: call.arguments}


def _mark(item: Any) -> str:
    kind = saying.kind(item)
    return "" if kind == "reasoning" or "content" in item else f"[{kind or 'item'}]"


_FORM = Form(_text, _recorded_call, _with_text, _with_call, _mark)


def _empty(asked: Asked) -> dict[str, Any]:
    return {
        "id": "resp_edited", "object": "response", "created_at": 0, "status": "completed", "error": None,
        "incomplete_details": None, "instructions": None, "metadata": {}, "model": asked.model, "output": [],
        "parallel_tool_calls": True, "temperature": None, "tool_choice": "auto", "tools": [], "top_p": None,
        "usage": None,
    }  # fmt: skip
