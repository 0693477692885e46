"""Amazon Bedrock's converse and converse-stream: an answer is a list of blocks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lockstep.debugger import bodies
from lockstep.debugger.dialects.parts import Message, ToolCall, at, call, string
from lockstep.debugger.rewording import said as saying
from lockstep.debugger.rewording.said import Asked, Form

_WORDS = ("tool_use", "end_turn")
_SILENT = ("toolUse", "toolResult", "cachePoint", "reasoningContent")

type Frame = tuple[str, Any]


def whole(body: Any, said: Message, before: Message, asked: Asked) -> Any:
    """A plain answer with another message in it."""
    if body is None:
        body = {
            "output": {"message": {"role": "assistant", "content": []}},
            "usage": _USAGE,
            "metrics": {"latencyMs": 0},
        }
    message = at(body, "output", "message")
    if not isinstance(message, dict) or not isinstance(message.get("content"), list):
        raise saying.unlike("bedrock")
    word = saying.finish(body.get("stopReason"), bool(before.tool_calls), bool(said.tool_calls), _WORDS)
    made = {**message, "content": _content(message["content"], said, before)}
    return {**body, "output": {**body["output"], "message": made}, "stopReason": word}


def stream(frames: list[Frame], said: Message, before: Message, asked: Asked) -> list[Frame]:
    """The frames of a streamed answer with another message. Blocks that are as they were come as they came."""
    by_type = dict(frames)
    blocks: dict[Any, list[Frame]] = {}
    for name, data in frames:
        if isinstance(data, dict) and "contentBlockIndex" in data:
            blocks.setdefault(data["contentBlockIndex"], []).append((name, data))
    folded = [_folded(block) for block in blocks.values()]
    made: list[Frame] = [("messageStart", by_type.get("messageStart") or {"role": "assistant"})]
    for index, block in enumerate(_content(folded, said, before)):
        came = next((events for old, events in zip(folded, blocks.values(), strict=True) if old is block), None)
        made += ((name, {**data, "contentBlockIndex": index}) for name, data in came or _block(block))
    stop = by_type.get("messageStop") or {}
    word = saying.finish(stop.get("stopReason"), bool(before.tool_calls), bool(said.tool_calls), _WORDS)
    made.append(("messageStop", {**stop, "stopReason": word}))
    metadata = by_type.get("metadata") or {"usage": _USAGE, "metrics": {"latencyMs": 0}}
    return [*made, ("metadata", metadata)]


def _folded(events: list[Frame]) -> dict[str, Any]:
    start: Any = next((data["start"] for name, data in events if name == "contentBlockStart" and "start" in data), {})
    deltas = [data["delta"] for _, data in events if isinstance(data.get("delta"), dict)]
    if isinstance(start.get("toolUse"), dict):
        text = "".join(string(delta, "toolUse", "input") for delta in deltas)
        found = bodies.json(text) if text else {}
        return {"toolUse": {**start["toolUse"], "input": text if found is None else found}}
    if any("text" in delta for delta in deltas):
        return {"text": "".join(string(delta, "text") for delta in deltas)}
    return {name: value for delta in deltas for name, value in delta.items()}


def _block(block: dict[str, Any]) -> Iterator[Frame]:
    """The frames that bring a block."""
    if "text" in block:
        yield "contentBlockDelta", {"delta": {"text": block["text"]}}
    else:
        use = {name: value for name, value in block["toolUse"].items() if name != "input"}
        yield "contentBlockStart", {"start": {"toolUse": use}}
        yield "contentBlockDelta", {"delta": {"toolUse": {"input": saying.compact(block["toolUse"]["input"])}}}
    yield "contentBlockStop", {}


def _content(blocks: list[Any], said: Message, before: Message) -> list[Any]:
    named = Message(said.role, said.text, saying.named(said.tool_calls, "tooluse_"))
    return saying.reworded(blocks, _FORM, named, before)


def _text(block: Any) -> str | None:
    return block["text"] if saying.is_text(block, "text") else None


def _call(block: Any) -> ToolCall | None:
    use = at(block, "toolUse")
    if not isinstance(use, dict):
        return None
    return call(use.get("name"), use.get("input"), use.get("toolUseId"))


def _with_text(block: Any, text: str) -> Any:
    return {"text": text}


def _with_call(block: Any, call: ToolCall) -> Any:
    use = at(block, "toolUse") or {}
    return {"toolUse": {**use, "toolUseId": call.id, "name": call.name, "input": saying.arguments(call)}}


def _mark(block: Any) -> str:
    shown = [key for key in block if key not in _SILENT] if isinstance(block, dict) else []
    return f"[{shown[0]}]" if shown else ""


_FORM = Form(_text, _call, _with_text, _with_call, _mark)
_USAGE = {"inputTokens": 0, "outputTokens": 0, "totalTokens": 0}
