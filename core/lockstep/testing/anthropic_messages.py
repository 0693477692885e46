"""Anthropic's messages API, as it looks on the wire: plain and streamed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lockstep.testing.answers import Answer, Request, encode, identity, pieces
from lockstep.testing.openai_chat import answer_tokens, prompt_tokens


def message(answer: Answer, request: Request, seed: int) -> dict[str, Any]:
    """The body of a plain answer: a text block where there is text, then the tool uses."""
    return _frame(request, seed) | {
        "content": _blocks(answer, request, seed),
        "stop_reason": _stop(answer),
        "usage": _usage(request, answer_tokens(answer)),
    }


def stream(answer: Answer, request: Request, seed: int) -> Iterator[bytes]:
    """The typed events of a streamed answer, with one ping."""
    begun = _frame(request, seed) | {"content": [], "stop_reason": None, "usage": _usage(request, 1)}
    yield _event({"type": "message_start", "message": begun})
    for index, block in enumerate(_blocks(answer, request, seed)):
        text = block["type"] == "text"
        empty: dict[str, Any] = {"text": ""} if text else {"input": {}}
        yield _event({"type": "content_block_start", "index": index, "content_block": block | empty})
        if index == 0:
            yield _event({"type": "ping"})
        for delta in _text_deltas(block["text"]) if text else _input_deltas(block["input"]):
            yield _event({"type": "content_block_delta", "index": index, "delta": delta})
        yield _event({"type": "content_block_stop", "index": index})
    stop = {"stop_reason": _stop(answer), "stop_sequence": None}
    yield _event({"type": "message_delta", "delta": stop, "usage": {"output_tokens": answer_tokens(answer)}})
    yield _event({"type": "message_stop"})


def error(answer: Answer, request: Request, seed: int) -> dict[str, Any]:
    """The body of an error."""
    kind = _ERRORS.get(answer.status, "api_error" if answer.status >= 500 else "invalid_request_error")
    said = {"type": kind, "message": answer.text or f"{kind} (scripted)"}
    return {"type": "error", "error": said, "request_id": identity("req_", request, seed)}


_ERRORS = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}


def _text_deltas(text: str) -> Iterator[dict[str, Any]]:
    for piece in pieces(text):
        yield {"type": "text_delta", "text": piece}


def _input_deltas(arguments: dict[str, Any]) -> Iterator[dict[str, Any]]:
    text = encode(arguments).decode()
    yield {"type": "input_json_delta", "partial_json": ""}
    for at in range(0, len(text), 8):
        yield {"type": "input_json_delta", "partial_json": text[at : at + 8]}


def _frame(request: Request, seed: int) -> dict[str, Any]:
    return {
        "id": identity("msg_", request, seed),
        "type": "message",
        "role": "assistant",
        "model": request.json.get("model", "claude-test"),
        "stop_sequence": None,
    }


def _blocks(answer: Answer, request: Request, seed: int) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    if answer.text or not answer.calls:
        blocks.append({"type": "text", "text": answer.text})
    for n, call in enumerate(answer.calls):
        use = call.id or identity("toolu_", request, seed, n)
        blocks.append({"type": "tool_use", "id": use, "name": call.name, "input": call.arguments})
    return blocks


def _usage(request: Request, output: int) -> dict[str, Any]:
    return {
        "input_tokens": prompt_tokens(request),
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
        "output_tokens": output,
        "service_tier": "standard",
    }


def _stop(answer: Answer) -> str:
    return "tool_use" if answer.calls else "end_turn"


def _event(data: dict[str, Any]) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (data["type"].encode(), encode(data))
