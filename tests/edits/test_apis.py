"""Messages put back into the answers of Gemini, Bedrock, Ollama and invoked models: the bytes that come from them."""

from __future__ import annotations

import base64
import json
from typing import Any

import msgspec
import pytest

from lockstep.debugger import bodies, messages, rewording
from lockstep.debugger.answers import State
from lockstep.debugger.rewording import streams
from lockstep.errors import EditError

JSON = (("content-type", "application/json"),)
SSE = (("content-type", "text/event-stream"),)
USAGE = {"promptTokenCount": 5, "candidatesTokenCount": 7}

type Case = tuple[str, Any, tuple[tuple[str, str], ...], bytes]


def _gemini(*parts: Any, **more: Any) -> Any:
    candidate = {"content": {"parts": [*parts], "role": "model"}, "index": 0, **more}
    return {"candidates": [candidate], "usageMetadata": USAGE, "modelVersion": "gemini-3"}


def _encode(value: Any) -> bytes:
    return msgspec.json.encode(value)


def _sse(*values: Any) -> bytes:
    return b"".join(b"data: " + _encode(value) + b"\r\n\r\n" for value in values)


SIGNED = {"functionCall": {"name": "get_order", "args": {"id": 7}}, "thoughtSignature": "c2ln"}
GEMINI = _gemini({"text": "I think", "thought": True}, {"text": "Let me see."}, SIGNED, finishReason="STOP")
CHUNKS = (
    _gemini({"text": "I think", "thought": True}),
    _gemini({"text": "Let me"}),
    _gemini({"text": " see."}, SIGNED),
    _gemini({"text": ""}, finishReason="STOP"),
)
URL = "https://generativelanguage.googleapis.com/v1beta/models/gemini-3"
CONVERSE = {
    "output": {
        "message": {
            "role": "assistant",
            "content": [
                {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "c2ln"}}},
                {"text": "Let me see."},
                {"toolUse": {"toolUseId": "t1", "name": "get_order", "input": {"id": 7}}},
            ],
        }
    },
    "stopReason": "tool_use",
    "usage": {"inputTokens": 5, "outputTokens": 7, "totalTokens": 12},
    "metrics": {"latencyMs": 30},
}
FRAMES = (
    ("messageStart", {"role": "assistant"}),
    ("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"reasoningContent": {"text": "hm"}}}),
    ("contentBlockStop", {"contentBlockIndex": 0}),
    ("contentBlockDelta", {"contentBlockIndex": 1, "delta": {"text": "Let me"}}),
    ("contentBlockDelta", {"contentBlockIndex": 1, "delta": {"text": " see."}}),
    ("contentBlockStop", {"contentBlockIndex": 1}),
    ("contentBlockStart", {"contentBlockIndex": 2, "start": {"toolUse": {"toolUseId": "t1", "name": "get_order"}}}),
    ("contentBlockDelta", {"contentBlockIndex": 2, "delta": {"toolUse": {"input": '{"id":'}}}),
    ("contentBlockDelta", {"contentBlockIndex": 2, "delta": {"toolUse": {"input": "7}"}}}),
    ("contentBlockStop", {"contentBlockIndex": 2}),
    ("messageStop", {"stopReason": "tool_use"}),
    ("metadata", {"usage": CONVERSE["usage"], "metrics": {"latencyMs": 30}}),
)
CLAUDE = (
    {"type": "message_start", "message": {"id": "m", "model": "claude", "content": [], "usage": {"input_tokens": 5}}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": "", "signature": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "hm"}},
    {"type": "content_block_stop", "index": 0},
    {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "Let me see."}},
    {"type": "content_block_stop", "index": 1},
    {"type": "content_block_start", "index": 2,
     "content_block": {"type": "tool_use", "id": "t1", "name": "get_order", "input": {}}},
    {"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": '{"id": 7}'}},
    {"type": "content_block_stop", "index": 2},
    {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 7}},
    {"type": "message_stop"},
)  # fmt: skip
BEDROCK = "https://bedrock-runtime.us-east-1.amazonaws.com/model/claude"
OLLAMA = {
    "model": "llama", "created_at": "2026-01-01T00:00:00Z", "done": True, "done_reason": "stop",
    "message": {
        "role": "assistant", "content": "Let me see.", "thinking": "hm",
        "tool_calls": [{"function": {"name": "get_order", "arguments": {"id": 7}}}],
    },
    "prompt_eval_count": 5, "eval_count": 7,
}  # fmt: skip
LINES = (
    {"model": "llama", "message": {"role": "assistant", "content": "", "thinking": "hm"}, "done": False},
    {"model": "llama", "message": {"role": "assistant", "content": "Let me"}, "done": False},
    {"model": "llama", "message": {"role": "assistant", "content": " see."}, "done": False},
    {"model": "llama", "message": {**OLLAMA["message"], "content": "", "thinking": ""}, "done": False},
    {"model": "llama", "message": {"role": "assistant", "content": ""}, "done": True, "done_reason": "stop",
     "prompt_eval_count": 5, "eval_count": 7},
)  # fmt: skip
EVENT_STREAM = (("content-type", "application/vnd.amazon.eventstream"),)
CASES: dict[str, Case] = {
    "gemini": (f"{URL}:generateContent", {"contents": []}, JSON, _encode(GEMINI)),
    "gemini sse": (
        f"{URL}:streamGenerateContent?alt=sse", {"contents": []}, SSE, _sse(*CHUNKS),
    ),
    "gemini array": (f"{URL}:streamGenerateContent", {"contents": []}, JSON, _encode(CHUNKS)),
    "converse": (f"{BEDROCK}/converse", {"messages": []}, JSON, _encode(CONVERSE)),
    "converse stream": (f"{BEDROCK}/converse-stream", {"messages": []}, EVENT_STREAM, streams.frames(FRAMES)),
    "invoked": (f"{BEDROCK}/invoke-with-response-stream", {"messages": []}, EVENT_STREAM, streams.wrapped(CLAUDE)),
    "ollama": ("http://127.0.0.1:11434/api/chat", {"model": "llama", "stream": False}, JSON, _encode(OLLAMA)),
    "ollama lines": (
        "http://127.0.0.1:11434/api/chat", {"model": "llama"}, (("content-type", "application/x-ndjson"),),
        b"".join(_encode(line) + b"\n" for line in LINES),
    ),
}  # fmt: skip
each_api = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


def _request(case: Case) -> Any:
    return {"method": "POST", "url": case[0], "headers": [], "body": _encode(case[1])}


def _recorded(case: Case) -> State:
    return State(200, case[2], case[3])


def _read(case: Case, state: State) -> messages.Conversation:
    pairs: Any = [list(pair) for pair in state.headers]
    return messages.read(_request(case), {"status": state.status, "headers": pairs, "body": state.body})


@each_api
def test_another_text_is_said_and_all_else_stays(case: Case) -> None:
    before = _read(case, _recorded(case))
    after = _read(case, rewording.edited(_request(case), _recorded(case), ("content",), "Lost.\nFor good."))
    assert before.answer is not None
    said = msgspec.structs.replace(before.answer.message, text="Lost.\nFor good.")
    assert after == msgspec.structs.replace(before, answer=msgspec.structs.replace(before.answer, message=said))


@each_api
def test_other_tools_are_called_and_all_else_stays(case: Case) -> None:
    request, recorded = _request(case), _recorded(case)
    before = _read(case, recorded).answer
    assert before is not None
    after = _read(case, rewording.edited(request, recorded, ("tool_calls", 0, "arguments", "id"), 8)).answer
    assert after is not None
    call = msgspec.structs.replace(before.message.tool_calls[0], arguments='{"id":8}')
    assert after == msgspec.structs.replace(before, message=msgspec.structs.replace(before.message, tool_calls=(call,)))
    none = _read(case, rewording.edited(request, recorded, (), "No.")).answer
    assert none is not None
    assert (none.message.text, none.message.tool_calls, none.usage) == ("No.", (), before.usage)
    assert none.finish in ("STOP", "end_turn", "stop")


@each_api
def test_reasoning_stays_where_it_was(case: Case) -> None:
    edited = rewording.edited(_request(case), _recorded(case), ("content",), "Lost.")
    after, before = (
        _encode(streams.unwrapped(bodies.frames(body))) if "invoke" in case[0] else body
        for body in (edited.body, case[3])
    )
    assert after.count(b'"hm"') + after.count(b"I think") == 1
    assert after.count(b"c2ln") == before.count(b"c2ln")


@each_api
def test_it_is_the_recorded_answer_again(case: Case) -> None:
    request, recorded = _request(case), _recorded(case)
    assert rewording.edited(request, recorded, ("content",), "Let me see.") is recorded
    there = rewording.edited(request, recorded, ("content",), "Lost.")
    back = rewording.edited(request, there, ("content",), "Let me see.")
    assert _read(case, back) == _read(case, recorded)
    assert rewording.edited(request, there, ("content",), "Lost.") is there


@each_api
def test_an_error_becomes_a_message_in_the_form_that_was_asked_for(case: Case) -> None:
    for failed in (State(500, JSON, b'{"message": "no"}'), State(None, (), b"", error={"name": "OSError"})):
        form = {"content": "Sent.", "tool_calls": [{"name": "get_order", "arguments": {"id": 7}}]}
        made = rewording.edited(_request(case), failed, (), form)
        read = _read(case, made)
        assert read.answer is not None
        assert (made.status, made.error, read.streamed) == (200, None, _read(case, _recorded(case)).streamed)
        assert (read.answer.message.text, read.note) == ("Sent.", "")
        assert [(call.name, call.arguments) for call in read.answer.message.tool_calls] == [("get_order", '{"id":7}')]


def test_frames_have_the_checksums_of_amazons_event_streams() -> None:
    # The frame of the format's own documentation: an empty payload and no headers.
    assert streams.frames([]) == b""
    made = streams.frames([("messageStop", {"stopReason": "end_turn"})])
    assert list(bodies.frames(made)) == [("messageStop", {"stopReason": "end_turn"})]
    assert base64.b64encode(made[:12]) == base64.b64encode(
        streams.frames([("messageStop", {"stopReason": "max_turn"})])[:12]
    )


def test_what_stands_for_other_blocks_does_not_become_text() -> None:
    body = {
        "content": [
            {"type": "text", "text": "See:"},
            {"type": "image", "source": {}},
            {"type": "text", "text": "that."},
        ],
        "stop_reason": "end_turn",
    }
    case = ("https://api.anthropic.com/v1/messages", {"messages": []}, JSON, _encode(body))
    shown = _read(case, _recorded(case)).answer
    assert shown is not None and shown.message.text == "See:\n[image]\nthat."
    made = json.loads(rewording.edited(_request(case), _recorded(case), ("content",), "Look:\n[image]\nthere.").body)
    assert made["content"] == [{"type": "text", "text": "Look:\nthere."}, {"type": "image", "source": {}}]


@pytest.mark.parametrize(
    ("url", "body"),
    [
        ("https://api.openai.com/v1/images/generations", b'{"data": [{"url": "x"}]}'),
        (f"{BEDROCK}/invoke", b'{"results": [{"outputText": "x"}]}'),
        ("http://127.0.0.1:11434/api/embed", b'{"embeddings": [[1, 2]]}'),
        (f"{URL}:countTokens", b'{"totalTokens": 5}'),
    ],
)
def test_an_answer_that_holds_no_message_is_refused(url: str, body: bytes) -> None:
    case = (url, {}, JSON, body)
    with pytest.raises(EditError, match="LS213 no message can be put into this answer"):
        rewording.edited(_request(case), _recorded(case), (), "hello")


def test_what_the_providers_own_tools_did_stays() -> None:
    search = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "x"}}
    result = {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []}
    text = {"type": "text", "text": "Found."}
    body = {"content": [search, result, text], "stop_reason": "end_turn"}
    plain = ("https://api.anthropic.com/v1/messages", {"messages": []}, JSON, _encode(body))
    made = json.loads(rewording.edited(_request(plain), _recorded(plain), (), "Nothing.").body)
    assert made == {**body, "content": [search, result, {**text, "text": "Nothing."}]}
    events = (
        {"type": "message_start", "message": {"content": []}},
        {"type": "content_block_start", "index": 0, "content_block": {**search, "input": {}}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": "{}"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_start", "index": 1, "content_block": result},
        {"type": "content_block_stop", "index": 1},
        {"type": "content_block_start", "index": 2, "content_block": {**text, "text": ""}},
        {"type": "content_block_delta", "index": 2, "delta": {"type": "text_delta", "text": "Found."}},
        {"type": "content_block_stop", "index": 2},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}},
        {"type": "message_stop"},
    )
    streamed = (plain[0], plain[1], SSE, streams.written(streams.Event(event["type"], event) for event in events))
    read = _read(streamed, _recorded(streamed)).answer
    assert read is not None and (read.message.text, read.message.tool_calls) == ("Found.", ())
    again = streams.events(rewording.edited(_request(streamed), _recorded(streamed), (), "Nothing.").body)
    assert [event.data for event in again][:6] == list(events[:6])
    assert [event.data.get("delta") for event in again][7] == {"type": "text_delta", "text": "Nothing."}
