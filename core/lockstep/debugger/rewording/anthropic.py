"""Anthropic's messages, wherever they are served: an answer is a list of blocks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lockstep.debugger import bodies
from lockstep.debugger.dialects.parts import Message, ToolCall, call, string
from lockstep.debugger.rewording import said as saying
from lockstep.debugger.rewording.said import Asked, Form

_WORDS = ("tool_use", "end_turn")
_HIDDEN = ("thinking", "redacted_thinking")


def whole(body: Any, said: Message, before: Message, asked: Asked) -> Any:
    """A plain answer with another message in it."""
    if body is None:
        body = {**_empty(asked), "content": []}
    if not isinstance(body, dict) or not isinstance(body.get("content"), list):
        raise saying.unlike("anthropic")
    word = saying.finish(body.get("stop_reason"), bool(before.tool_calls), bool(said.tool_calls), _WORDS)
    return {**body, "content": _content(body["content"], said, before), "stop_reason": word}


def stream(events: list[Any], said: Message, before: Message, asked: Asked) -> list[Any]:
    """The events of a streamed answer with another message. Blocks that are as they were come as they came."""
    by_type = {string(event, "type"): event for event in events}
    blocks: dict[Any, list[dict[str, Any]]] = {}
    for event in events:
        if isinstance(event, dict) and "index" in event:
            blocks.setdefault(event["index"], []).append(event)
    folded = [_folded(block) for block in blocks.values()]
    start = by_type.get("message_start") or {"type": "message_start", "message": {**_empty(asked), "content": []}}
    stop = by_type.get("message_delta") or {"type": "message_delta", "delta": {"stop_sequence": None}, "usage": {}}
    word = saying.finish(stop["delta"].get("stop_reason"), bool(before.tool_calls), bool(said.tool_calls), _WORDS)
    made = [start]
    for index, block in enumerate(_content(folded, said, before)):
        came = next((events for old, events in zip(folded, blocks.values(), strict=True) if old is block), None)
        made += ({**event, "index": index} for event in came or _block(block))
    usage = stop["usage"] if stop.get("usage") else {"output_tokens": 0}
    made.append({**stop, "delta": {**stop["delta"], "stop_reason": word}, "usage": usage})
    return [*made, by_type.get("message_stop") or {"type": "message_stop"}]


def _folded(events: list[dict[str, Any]]) -> dict[str, Any]:
    """A block as it is at the end of its events; of kinds that are not edited, as it began."""
    block: dict[str, Any] = dict(events[0].get("content_block") or {})
    deltas = [event["delta"] for event in events if isinstance(event.get("delta"), dict)]
    if isinstance(block.get("text"), str):
        block["text"] += "".join(string(delta, "text") for delta in deltas)
    if _call(block) is not None:
        text = "".join(string(delta, "partial_json") for delta in deltas)
        block["input"] = bodies.json(text) if text else block.get("input")
    return block


def _block(block: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The events that bring a block."""
    if saying.is_text(block, "text"):
        begun, delta = {**block, "text": ""}, {"type": "text_delta", "text": block["text"]}
    else:
        begun = {**block, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": saying.compact(block["input"])}
    yield {"type": "content_block_start", "content_block": begun}
    yield {"type": "content_block_delta", "delta": delta}
    yield {"type": "content_block_stop"}


def _content(blocks: list[Any], said: Message, before: Message) -> list[Any]:
    named = Message(said.role, said.text, saying.named(said.tool_calls, "toolu_"))
    return saying.reworded(blocks, _FORM, named, before)


def _text(block: Any) -> str | None:
    return string(block, "text") if saying.kind(block) == "text" else None


def _call(block: Any) -> ToolCall | None:
    if saying.kind(block) != "tool_use":
        return None
    return call(block.get("name"), block.get("input"), block.get("id"))


def _with_text(block: Any, text: str) -> Any:
    return {"type": "text", **(block or {}), "text": text}


def _with_call(block: Any, call: ToolCall) -> Any:
    return {"type": "tool_use", **(block or {}), "id": call.id, "name": call.name, "input": saying.arguments(call)}


def _mark(block: Any) -> str:
    kind = saying.kind(block)
    return "" if kind in _HIDDEN or kind.endswith("tool_result") else f"[{kind or 'block'}]"


_FORM = Form(_text, _call, _with_text, _with_call, _mark)


def _empty(asked: Asked) -> dict[str, Any]:
    return {
        "id": "msg_edited", "type": "message", "role": "assistant", "model": asked.model, "stop_reason": None,
        "stop_sequence": None, "usage": {"input_tokens": 0, "output_tokens": 0},
    }  # fmt: skip
