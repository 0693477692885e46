"""Anthropic's messages: at Anthropic, on Vertex, and as an invoked model on Bedrock."""

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
    found = [Message("system", _text(at(body, "system")))] if at(body, "system") else []
    for each in items(body, "messages"):
        found += _message(string(each, "role"), each.get("content"))
    return tuple(found)


def answer(body: Any) -> Answer:
    said = _message("assistant", at(body, "content"))
    return Answer(
        said[0] if said else Message("assistant"), string(body, "stop_reason"), _usage(at(body, "usage")),
        string(body, "model"),
    )  # fmt: skip


def stream(events: Iterable[Any]) -> Answer:
    texts: list[str] = []
    calls = Calls()
    called: set[Any] = set()
    finish = model = ""
    usage: dict[str, Any] = {}
    for event in events:
        kind = string(event, "type")
        block, delta = at(event, "content_block"), at(event, "delta")
        if kind == "message_start":
            model = string(event, "message", "model")
            usage |= _numbers(at(event, "message", "usage"))
        elif kind == "content_block_start":
            texts.append(string(block, "text"))
            if _is_call(block):
                called.add(at(event, "index"))
                calls.add(at(event, "index"), at(block, "name"), "", at(block, "id"))
        elif kind == "content_block_delta":
            texts.append(string(delta, "text"))
            if string(delta, "type") == "input_json_delta" and at(event, "index") in called:
                calls.add(at(event, "index"), "", at(delta, "partial_json"))
        elif kind == "message_delta":
            finish = string(delta, "stop_reason") or finish
            usage |= _numbers(at(event, "usage"))
    return Answer(Message("assistant", "".join(texts), calls.all()), finish, _usage(usage), model)


def _message(role: str, content: Any) -> list[Message]:
    """One message, and before it one for each tool result: those answer calls of the message before."""
    results = [
        Message("tool", _text(block.get("content")), of=string(block, "tool_use_id"))
        for block in items(content)
        if string(block, "type").endswith("tool_result")
    ]
    calls = tuple(
        call(block.get("name"), block.get("input"), block.get("id")) for block in items(content) if _is_call(block)
    )
    text = _text(content)
    return [*results, Message(role, text, calls)] if text or calls or not results else results


def _is_call(block: Any) -> bool:
    return string(block, "type") == "tool_use"  # others are its provider's own, and have run


def _text(content: Any) -> str:
    if isinstance(content, list):
        return joined(_block(block) for block in items(content))
    return dumped(content)


def _block(block: dict[str, Any]) -> str:
    kind = string(block, "type")
    if kind == "text":
        return string(block, "text")
    if kind in ("thinking", "redacted_thinking") or kind == "tool_use" or kind.endswith("tool_result"):
        return ""
    return f"[{kind or 'block'}]"


def _usage(usage: Any) -> Usage:
    # its input tokens leave out what went through the cache
    read, written = count(usage, "cache_read_input_tokens"), count(usage, "cache_creation_input_tokens")
    return Usage(total(count(usage, "input_tokens"), read, written), count(usage, "output_tokens"))


def _numbers(usage: Any) -> dict[str, Any]:
    return {key: value for key, value in usage.items() if value is not None} if isinstance(usage, dict) else {}
