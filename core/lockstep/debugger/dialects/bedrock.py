"""Amazon Bedrock's converse and converse-stream."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from lockstep.debugger.dialects.parts import (
    Answer,
    Calls,
    Message,
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
    system = joined(string(block, "text") for block in items(body, "system"))
    found = [Message("system", system)] if system else []
    for each in items(body, "messages"):
        found += _message(each)
    return tuple(found)


def answer(body: Any) -> Answer:
    said = _message(at(body, "output", "message"))
    return Answer(said[-1] if said else Message("assistant"), string(body, "stopReason"), _usage(at(body, "usage")))


def stream(frames: Iterable[tuple[str, Any]]) -> Answer:
    texts: list[str] = []
    calls = Calls()
    finish = ""
    usage = Usage()
    for kind, body in frames:
        index = at(body, "contentBlockIndex")
        if kind == "contentBlockStart" and isinstance(at(body, "start", "toolUse"), dict):
            calls.add(index, at(body, "start", "toolUse", "name"), "", at(body, "start", "toolUse", "toolUseId"))
        elif kind == "contentBlockDelta":
            texts.append(string(body, "delta", "text"))
            if isinstance(at(body, "delta", "toolUse"), dict):
                calls.add(index, "", at(body, "delta", "toolUse", "input"))
        elif kind == "messageStop":
            finish = string(body, "stopReason")
        elif kind == "metadata":
            usage = _usage(at(body, "usage"))
    return Answer(Message("assistant", "".join(texts), calls.all()), finish, usage)


def _message(body: Any) -> list[Message]:
    if not isinstance(body, dict):
        return []
    results = [
        Message("tool", _text(at(block, "toolResult", "content")), of=string(block, "toolResult", "toolUseId"))
        for block in items(body, "content")
        if isinstance(block.get("toolResult"), dict)
    ]
    calls = tuple(
        call(at(block, "toolUse", "name"), at(block, "toolUse", "input"), at(block, "toolUse", "toolUseId"))
        for block in items(body, "content")
        if isinstance(block.get("toolUse"), dict)
    )
    text = _text(at(body, "content"))
    said = Message(string(body, "role") or "assistant", text, calls)
    return [*results, said] if text or calls or not results else results


def _text(content: Any) -> str:
    return joined(_block(block) for block in items(content))


def _block(block: dict[str, Any]) -> str:
    if "text" in block:
        return string(block, "text")
    if "json" in block:
        return dumped(block["json"])
    shown = [key for key in block if key not in ("toolUse", "toolResult", "cachePoint", "reasoningContent")]
    return f"[{shown[0]}]" if shown else ""


def _usage(usage: Any) -> Usage:
    read, written = count(usage, "cacheReadInputTokens"), count(usage, "cacheWriteInputTokens")
    return Usage(total(count(usage, "inputTokens"), read, written), count(usage, "outputTokens"))
