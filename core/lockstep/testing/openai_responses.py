"""OpenAI's responses API, as it looks on the wire: plain and streamed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lockstep.testing.answers import Answer, Request, encode, identity, pieces
from lockstep.testing.openai_chat import CREATED, answer_tokens, call_id, prompt_tokens


def response(answer: Answer, request: Request, seed: int) -> dict[str, Any]:
    """The body of a plain answer: a message where there is text, then the function calls."""
    return _frame(request, seed, "completed") | {
        "output": [_done(item) for item in _items(answer, request, seed)],
        "usage": _usage(answer, request),
    }


def stream(answer: Answer, request: Request, seed: int) -> Iterator[bytes]:
    """The typed events of a streamed answer, numbered from 0."""
    for number, event in enumerate(_events(answer, request, seed)):
        numbered = {"type": event["type"], "sequence_number": number} | event
        yield b"event: %b\ndata: %b\n\n" % (event["type"].encode(), encode(numbered))


def _events(answer: Answer, request: Request, seed: int) -> Iterator[dict[str, Any]]:
    begun = _frame(request, seed, "in_progress") | {"output": [], "usage": None}
    yield {"type": "response.created", "response": begun}
    yield {"type": "response.in_progress", "response": begun}
    for index, item in enumerate(_items(answer, request, seed)):
        empty: dict[str, Any] = {"content": []} if item["type"] == "message" else {"arguments": ""}
        yield {"type": "response.output_item.added", "output_index": index, "item": item | empty}
        inside = _message_events if item["type"] == "message" else _call_events
        for event in inside(item):
            yield event | {"item_id": item["id"], "output_index": index}
        yield {"type": "response.output_item.done", "output_index": index, "item": _done(item)}
    yield {"type": "response.completed", "response": response(answer, request, seed)}


def _message_events(item: dict[str, Any]) -> Iterator[dict[str, Any]]:
    (part,) = item["content"]
    yield {"type": "response.content_part.added", "content_index": 0, "part": part | {"text": ""}}
    for piece in pieces(part["text"]):
        yield {"type": "response.output_text.delta", "content_index": 0, "delta": piece, "logprobs": []}
    yield {"type": "response.output_text.done", "content_index": 0, "text": part["text"], "logprobs": []}
    yield {"type": "response.content_part.done", "content_index": 0, "part": part}


def _call_events(item: dict[str, Any]) -> Iterator[dict[str, Any]]:
    arguments = item["arguments"]
    for at in range(0, len(arguments), 8):
        yield {"type": "response.function_call_arguments.delta", "delta": arguments[at : at + 8]}
    yield {"type": "response.function_call_arguments.done", "name": item["name"], "arguments": arguments}


def _items(answer: Answer, request: Request, seed: int) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    if answer.text or not answer.calls:
        part = {"type": "output_text", "text": answer.text, "annotations": [], "logprobs": []}
        items.append({"type": "message", "id": identity("msg_", request, seed), "role": "assistant", "content": [part]})
    for n, call in enumerate(answer.calls):
        items.append(
            {
                "type": "function_call",
                "id": identity("fc_", request, seed, n),
                "call_id": call_id(call, request, seed, n),
                "name": call.name,
                "arguments": encode(call.arguments).decode(),
            }
        )
    return [item | {"status": "in_progress"} for item in items]


def _done(item: dict[str, Any]) -> dict[str, Any]:
    return item | {"status": "completed"}


def _frame(request: Request, seed: int, status: str) -> dict[str, Any]:
    body = request.json
    return {
        "id": identity("resp_", request, seed),
        "object": "response",
        "created_at": CREATED + request.number,
        "status": status,
        "background": False,
        "error": None,
        "incomplete_details": None,
        "instructions": body.get("instructions"),
        "max_output_tokens": body.get("max_output_tokens"),
        "metadata": body.get("metadata") or {},
        "model": body.get("model", "gpt-4o"),
        "parallel_tool_calls": body.get("parallel_tool_calls", True),
        "previous_response_id": body.get("previous_response_id"),
        "reasoning": {"effort": None, "summary": None},
        "service_tier": "default",
        "store": body.get("store", True),
        "temperature": body.get("temperature", 1.0),
        "text": body.get("text") or {"format": {"type": "text"}},
        "tool_choice": body.get("tool_choice", "auto"),
        "tools": body.get("tools") or [],
        "top_p": body.get("top_p", 1.0),
        "truncation": "disabled",
        "user": None,
    }


def _usage(answer: Answer, request: Request) -> dict[str, Any]:
    asked, said = prompt_tokens(request), answer_tokens(answer)
    return {
        "input_tokens": asked,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": said,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": asked + said,
    }
