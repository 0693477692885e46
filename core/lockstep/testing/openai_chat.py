"""OpenAI's chat completions, as they look on the wire: plain and streamed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lockstep.testing.answers import Answer, Request, ToolCall, encode, identity, pieces, tokens

CREATED = 1_700_000_000


def completion(answer: Answer, request: Request, seed: int) -> dict[str, Any]:
    """The body of a plain answer; one choice."""
    calls = tool_calls(answer, request, seed)
    message: dict[str, Any] = {"role": "assistant", "content": answer.text or None, "refusal": None, "annotations": []}
    if calls:
        message["tool_calls"] = calls
    return _frame(request, seed, "chat.completion") | {
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": _finish(answer)}],
        "usage": usage(answer, request),
    }


def stream(answer: Answer, request: Request, seed: int) -> Iterator[bytes]:
    """The events of a streamed answer, the last one `[DONE]`."""
    with_usage = (request.json.get("stream_options") or {}).get("include_usage", False)
    frame = _frame(request, seed, "chat.completion.chunk") | ({"usage": None} if with_usage else {})
    for delta in _deltas(answer, request, seed):
        yield _event(frame | {"choices": [_choice(delta, None)]})
    yield _event(frame | {"choices": [_choice({}, _finish(answer))]})
    if with_usage:
        yield _event(frame | {"choices": [], "usage": usage(answer, request)})
    yield b"data: [DONE]\n\n"


def error(answer: Answer) -> dict[str, Any]:
    """The body of an error; the same for chat completions and responses."""
    kind, code = _ERRORS.get(answer.status, ("server_error" if answer.status >= 500 else "invalid_request_error", None))
    return {"error": {"message": answer.text or f"{kind} (scripted)", "type": kind, "param": None, "code": code}}


_ERRORS = {
    401: ("invalid_request_error", "invalid_api_key"),
    404: ("invalid_request_error", "model_not_found"),
    429: ("requests", "rate_limit_exceeded"),
}


def tool_calls(answer: Answer, request: Request, seed: int) -> list[dict[str, Any]]:
    return [
        {
            "id": call_id(call, request, seed, n),
            "type": "function",
            "function": {"name": call.name, "arguments": encode(call.arguments).decode()},
        }
        for n, call in enumerate(answer.calls)
    ]


def call_id(call: ToolCall, request: Request, seed: int, n: int) -> str:
    return call.id or identity("call_", request, seed, n)


def usage(answer: Answer, request: Request) -> dict[str, Any]:
    asked, said = prompt_tokens(request), answer_tokens(answer)
    return {
        "prompt_tokens": asked,
        "completion_tokens": said,
        "total_tokens": asked + said,
        "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 0, "audio_tokens": 0},
    }


def prompt_tokens(request: Request) -> int:
    body = request.json
    return max(1, sum(tokens(body.get(key)) for key in ("messages", "input", "instructions", "system", "tools")))


def answer_tokens(answer: Answer) -> int:
    return max(1, tokens(answer.text) + sum(1 + tokens(call.arguments) for call in answer.calls))


def _frame(request: Request, seed: int, kind: str) -> dict[str, Any]:
    return {
        "id": identity("chatcmpl-", request, seed),
        "object": kind,
        "created": CREATED + request.number,
        "model": request.json.get("model", "gpt-4o"),
        "service_tier": "default",
        "system_fingerprint": "fp_lockstep",
    }


def _deltas(answer: Answer, request: Request, seed: int) -> Iterator[dict[str, Any]]:
    yield {"role": "assistant", "content": "" if answer.text or not answer.calls else None, "refusal": None}
    for piece in pieces(answer.text):
        yield {"content": piece}
    for n, call in enumerate(tool_calls(answer, request, seed)):
        arguments = call["function"]["arguments"]
        head = {"index": n, "id": call["id"], "type": "function"}
        yield {"tool_calls": [head | {"function": {"name": call["function"]["name"], "arguments": ""}}]}
        for at in range(0, len(arguments), 8):
            yield {"tool_calls": [{"index": n, "function": {"arguments": arguments[at : at + 8]}}]}


def _choice(delta: dict[str, Any], finish: str | None) -> dict[str, Any]:
    return {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}


def _finish(answer: Answer) -> str:
    return "tool_calls" if answer.calls else "stop"


def _event(data: dict[str, Any]) -> bytes:
    return b"data: %b\n\n" % encode(data)
