"""Ollama's own endpoints: chat, generate and embeddings, plain or as JSON lines."""

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
    string,
)


def messages(body: Any) -> tuple[Message, ...]:
    found = [Message("system", string(body, "system"))] if string(body, "system") else []
    if at(body, "prompt") is not None or at(body, "input") is not None:
        found.append(Message("user", dumped(at(body, "prompt") or at(body, "input"))))
    found += [
        Message(string(each, "role"), string(each, "content"), tuple(_calls(each)), string(each, "tool_name"))
        for each in items(body, "messages")
    ]
    return tuple(found)


def answer(chunks: Iterable[Any]) -> Answer:
    texts: list[str] = []
    calls: list[ToolCall] = []
    finish = model = ""
    usage = Usage()
    for chunk in chunks:
        texts += [string(chunk, "message", "content"), string(chunk, "response")]
        calls += _calls(at(chunk, "message"))
        model = string(chunk, "model") or model
        finish = string(chunk, "done_reason") or finish
        if count(chunk, "prompt_eval_count") is not None or count(chunk, "eval_count") is not None:
            usage = Usage(count(chunk, "prompt_eval_count"), count(chunk, "eval_count"))
        vectors = at(chunk, "embeddings")
        if isinstance(vectors, list):
            texts.append(f"{len(vectors)} vectors")
    return Answer(Message("assistant", "".join(texts), tuple(calls)), finish, usage, model)


def _calls(message: Any) -> list[ToolCall]:
    return [
        call(at(each, "function", "name"), at(each, "function", "arguments"), each.get("id"))
        for each in items(message, "tool_calls")
    ]
