"""OpenAI's chat completions, legacy completions, embeddings and responses, and all that is compatible."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from lockstep.debugger.dialects.parts import (
    Answer,
    Calls,
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
)

# Chat completions.


def chat_messages(body: Any) -> tuple[Message, ...]:
    if isinstance(at(body, "messages"), list):
        return tuple(_message(each) for each in items(body, "messages"))
    given = at(body, "prompt") if at(body, "prompt") is not None else at(body, "input")
    if isinstance(given, list):
        return tuple(Message("user", dumped(each)) for each in given)
    return (Message("user", dumped(given)),) if given is not None else ()


def chat_answer(body: Any) -> Answer:
    choice = at(body, "choices", 0)
    said = at(choice, "message")
    message = _message(said) if isinstance(said, dict) else Message("assistant", string(choice, "text"))
    vectors = at(body, "data")
    if choice is None and isinstance(vectors, list):
        first = at(vectors, 0, "embedding")
        size = f" of {len(first)}" if isinstance(first, list) else ""
        message = Message("assistant", f"{len(vectors)} vectors{size}")
    return Answer(message, string(choice, "finish_reason"), _usage(body), string(body, "model"))


def chat_stream(events: Iterable[Any]) -> Answer:
    said: list[str] = []
    calls = Calls()
    finish = model = ""
    usage = Usage()
    for event in events:
        model = string(event, "model") or model
        if isinstance(at(event, "usage"), dict):
            usage = _usage(event)
        for choice in items(event, "choices"):
            if choice.get("index", 0) != 0:
                continue
            finish = string(choice, "finish_reason") or finish
            said += [string(choice, "text"), string(choice, "delta", "content"), string(choice, "delta", "refusal")]
            for each in items(choice, "delta", "tool_calls"):
                name, arguments = at(each, "function", "name"), at(each, "function", "arguments")
                calls.add(each.get("index"), name, arguments, each.get("id"))
    return Answer(Message("assistant", "".join(said), calls.all()), finish, usage, model)


def _message(body: dict[str, Any]) -> Message:
    calls = [_call(each) for each in items(body, "tool_calls")]
    old = at(body, "function_call")  # before there were tools
    if isinstance(old, dict):
        calls.append(call(old.get("name"), old.get("arguments")))
    text = _content(body.get("content")) or string(body, "refusal")
    return Message(string(body, "role") or "assistant", text, tuple(calls), string(body, "tool_call_id"))


def _call(body: dict[str, Any]) -> ToolCall:
    kind = "custom" if isinstance(body.get("custom"), dict) else "function"
    arguments = at(body, kind, "arguments") if kind == "function" else at(body, kind, "input")
    return call(at(body, kind, "name"), arguments, body.get("id"))


def _content(content: Any) -> str:
    if isinstance(content, list):
        return joined(_block(each) for each in items(content))
    return dumped(content)


def _block(block: dict[str, Any]) -> str:
    if isinstance(block.get("text"), str) or isinstance(block.get("refusal"), str):
        return string(block, "text") or string(block, "refusal")
    return f"[{string(block, 'type') or 'part'}]"


def _usage(body: Any) -> Usage:
    return Usage(count(body, "usage", "prompt_tokens"), count(body, "usage", "completion_tokens"))


# Responses.


def response_messages(body: Any) -> tuple[Message, ...]:
    found = [Message("system", string(body, "instructions"))] if string(body, "instructions") else []
    given = at(body, "input")
    if isinstance(given, str):
        found.append(Message("user", given))
    found += [_item(each) for each in items(given)]
    return tuple(found)


def response_answer(body: Any) -> Answer:
    output = [_item(each) for each in items(body, "output") if each.get("type") != "reasoning"]
    message = Message(
        "assistant",
        joined(each.text for each in output),
        tuple(each for message in output for each in message.tool_calls),
    )
    finish = string(body, "incomplete_details", "reason") or string(body, "status")
    usage = Usage(count(body, "usage", "input_tokens"), count(body, "usage", "output_tokens"))
    return Answer(message, finish, usage, string(body, "model"))


def response_stream(events: Iterable[Any]) -> Answer:
    """The last event has the whole answer; of a stream that broke off, what was said until then."""
    texts: dict[Any, list[str]] = {}
    calls = Calls()
    model = ""
    for event in events:
        kind = string(event, "type")
        if kind in ("response.completed", "response.incomplete", "response.failed"):
            return response_answer(at(event, "response"))
        model = string(event, "response", "model") or model
        place = event.get("output_index") if isinstance(event, dict) else None
        key = place if isinstance(place, int) else 0
        if kind in ("response.output_text.delta", "response.refusal.delta"):
            texts.setdefault(key, []).append(string(event, "delta"))
        elif kind == "response.function_call_arguments.delta":
            calls.add(key, "", at(event, "delta"))
        elif kind == "response.output_item.added" and at(event, "item", "type") == "function_call":
            calls.add(key, at(event, "item", "name"), "", at(event, "item", "call_id"))
    text = joined("".join(pieces) for pieces in texts.values())
    return Answer(Message("assistant", text, calls.all()), model=model)


def _item(item: dict[str, Any]) -> Message:
    kind = string(item, "type")
    if kind.endswith("_call_output"):
        return Message("tool", _content(item.get("output")), of=string(item, "call_id"))
    if kind in ("function_call", "custom_tool_call"):
        arguments = item.get("arguments") if kind == "function_call" else item.get("input")
        return Message("assistant", "", (call(item.get("name"), arguments, item.get("call_id")),))
    if "content" in item:
        return Message(string(item, "role") or "assistant", _content(item["content"]))
    return Message(string(item, "role") or "assistant", f"[{kind or 'item'}]")
