"""Model calls as people read them, out of the bytes that went over the wire."""

from __future__ import annotations

import base64
import gzip
import json
import random
import struct
import urllib.error
import urllib.request
import zlib
from typing import Any

import pytest
import zstandard

from lockstep.debugger.messages import Conversation, Message, ToolCall, Usage, read
from lockstep.testing import Answer, Provider
from lockstep.testing import ToolCall as Called

CHAT = {
    "model": "gpt-4o",
    "messages": [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": [{"type": "text", "text": "weather?"}, {"type": "image_url", "image_url": {}}]},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c1", "function": {"name": "weather", "arguments": '{"city":"Oslo"}'}}],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "rain"},
    ],
}
CLAUDE = {
    "model": "claude-sonnet-4-5",
    "max_tokens": 100,
    "system": [{"type": "text", "text": "be brief"}],
    "messages": [
        {"role": "user", "content": "weather?"},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm"},
                {"type": "tool_use", "id": "c1", "name": "weather", "input": {"city": "Oslo"}},
            ],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "rain"}]},
    ],
}
RESPONSES = {
    "model": "gpt-5",
    "instructions": "be brief",
    "input": [
        {"role": "user", "content": [{"type": "input_text", "text": "weather?"}]},
        {"type": "function_call", "name": "weather", "arguments": '{"city":"Oslo"}', "call_id": "c1"},
        {"type": "function_call_output", "call_id": "c1", "output": "rain"},
    ],
}
ASKED = (
    Message("system", "be brief"),
    Message("user", "weather?"),
    Message("assistant", "", (ToolCall("weather", '{"city":"Oslo"}', "c1"),)),
    Message("tool", "rain", of="c1"),
)
APIS = [
    ("/v1/chat/completions", CHAT, "openai chat", {"stream_options": {"include_usage": True}}),
    ("/v1/messages", CLAUDE, "anthropic", {}),
    ("/v1/responses", RESPONSES, "openai responses", {}),
]
SAID = Answer("It rains. Ürgh 雨", calls=(Called("umbrella", {"open": True}, "t1"), Called("coat", {"n": 2}, "t2")))


def exchange(url: str, body: Any, headers: dict[str, str] | None = None) -> tuple[Any, Any]:
    """A real exchange, in the shape in which it is recorded."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    sent = {"Content-Type": "application/json", "anthropic-version": "2023-06-01", **(headers or {})}
    asked = urllib.request.Request(url, raw, sent)
    try:
        with urllib.request.urlopen(asked) as answer:
            status, got, data = answer.status, answer.headers.items(), answer.read()
    except urllib.error.HTTPError as error:
        status, got, data = error.code, error.headers.items(), error.read()
    request = {"method": "POST", "url": url, "headers": [list(pair) for pair in sent.items()], "body": raw}
    return request, {"status": status, "headers": [list(pair) for pair in got], "body": data}


def plain_json(text: str) -> Any:
    return json.loads(text)


def check(found: Conversation, api: str, model: str) -> None:
    assert (found.api, found.model, found.error, found.note) == (api, model, "", "")
    assert found.answer is not None
    assert found.answer.message.text == SAID.text
    calls = found.answer.message.tool_calls
    assert [(call.name, plain_json(call.arguments), call.id) for call in calls] == [
        ("umbrella", {"open": True}, "t1"),
        ("coat", {"n": 2}, "t2"),
    ]
    assert found.answer.usage.input is not None
    assert found.answer.usage.input > 0
    assert found.answer.usage.output is not None
    assert found.answer.usage.output > 0
    assert found.answer.finish in ("tool_calls", "tool_use", "completed")


@pytest.mark.parametrize(("path", "body", "api", "more"), APIS, ids=[api for _, _, api, _ in APIS])
def test_plain_and_streamed_answers_read_the_same(path: str, body: dict[str, Any], api: str, more: Any) -> None:
    with Provider(lambda _: SAID) as provider:
        base = provider.url.removesuffix("/v1").rstrip("/")
        plain = read(*exchange(base + path, body))
        streamed = read(*exchange(base + path, {**body, "stream": True, **more}))
    for found in (plain, streamed):
        check(found, api, body["model"])
    assert not plain.streamed
    assert streamed.streamed
    assert plain.answer is not None
    assert streamed.answer is not None
    assert (plain.answer.message, plain.answer.finish) == (streamed.answer.message, streamed.answer.finish)


@pytest.mark.parametrize(("path", "body", "api", "more"), APIS, ids=[api for _, _, api, _ in APIS])
def test_what_was_sent_reads_the_same_in_every_api(path: str, body: dict[str, Any], api: str, more: Any) -> None:
    found = read({"method": "POST", "url": f"http://x{path}", "headers": [], "body": json.dumps(body).encode()})
    sent = [
        Message(each.role, each.text.replace("\n[image_url]", ""), each.tool_calls, each.of) for each in found.messages
    ]
    for message, expected in zip(sent, ASKED, strict=True):
        assert (message.role, message.text, message.of) == (expected.role, expected.text, expected.of)
        assert [(c.name, plain_json(c.arguments), c.id) for c in message.tool_calls] == [
            (c.name, plain_json(c.arguments), c.id) for c in expected.tool_calls
        ]
    assert found.answer is None


def test_a_part_that_is_no_text_is_named() -> None:
    found = read({"method": "POST", "url": "http://x/v1/chat/completions", "headers": [], "body": json.dumps(CHAT)})
    assert found.messages[1].text == "weather?\n[image_url]"


@pytest.mark.parametrize(("path", "body", "api", "more"), APIS, ids=[api for _, _, api, _ in APIS])
def test_a_stream_that_broke_off_shows_what_came(path: str, body: dict[str, Any], api: str, more: Any) -> None:
    with Provider(lambda _: Answer("one two three four five six seven eight")) as provider:
        base = provider.url.removesuffix("/v1").rstrip("/")
        request, answer = exchange(base + path, {**body, "stream": True})
    for size in range(0, len(answer["body"]), 97):
        found = read(request, {**answer, "body": answer["body"][:size]})
        if found.answer is not None:
            assert "one two three four five six seven eight".startswith(found.answer.message.text)
    assert read(request, answer).answer is not None


def test_an_error_is_shown_in_the_providers_words() -> None:
    with Provider(lambda _: Answer("slow down", status=429)) as provider:
        base = provider.url.removesuffix("/v1").rstrip("/")
        for path, body, api, _ in APIS:
            found = read(*exchange(base + path, body))
            assert (found.api, found.error, found.answer) == (api, "slow down", None)


def answered(body: bytes, encoding: str = "", kind: str = "application/json") -> Conversation:
    headers = [[b"Content-Type", kind.encode()], [b"Content-Encoding", encoding.encode()]]
    request = {"url": "http://x/v1/chat/completions", "body": json.dumps(CHAT).encode()}
    return read(request, {"status": 200, "headers": headers, "body": body})


REPLY = json.dumps({"choices": [{"message": {"content": "hi"}, "finish_reason": "stop"}]}).encode()


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        ("gzip", gzip.compress(REPLY)),
        ("deflate", zlib.compress(REPLY)),
        ("deflate", zlib.compress(REPLY, wbits=-15)),
        ("zstd", zstandard.compress(REPLY)),
        ("gzip, zstd", zstandard.compress(gzip.compress(REPLY))),
        ("identity", REPLY),
    ],
)
def test_an_encoded_answer_is_decoded(encoding: str, body: bytes) -> None:
    found = answered(body, encoding)
    assert found.answer is not None
    assert (found.answer.message.text, found.answer.finish, found.note) == ("hi", "stop", "")


def test_what_cannot_be_decoded_is_said() -> None:
    assert "sdch" in answered(b"x", "sdch").note
    assert "gzip" in answered(b"not gzip", "gzip").note
    cut = answered(gzip.compress(REPLY)[:-9], "gzip")
    assert "not whole" in cut.note
    assert "br" in answered(b"\xff\xfe\xfd", "br").note
    assert answered(b"<html>", kind="text/html").note == "the answer is not JSON"


def test_tokens_that_went_through_the_cache_are_counted() -> None:
    usage = {"input_tokens": 5, "cache_read_input_tokens": 90, "cache_creation_input_tokens": 5, "output_tokens": 2}
    body = json.dumps({"content": [{"type": "text", "text": "hi"}], "usage": usage}).encode()
    found = read({"url": "http://x/v1/messages", "body": b"{}"}, {"status": 200, "headers": [], "body": body})
    assert found.answer is not None
    assert found.answer.usage == Usage(100, 2)


def test_gemini_plain_stream_and_array() -> None:
    call = {"name": "umbrella", "args": {"open": 1}}
    parts = [
        {"candidates": [{"content": {"role": "model", "parts": [{"text": "it "}]}}]},
        {
            "candidates": [{"content": {"parts": [{"text": "rains"}, {"functionCall": call}]}, "finishReason": "STOP"}],
            "usageMetadata": {"promptTokenCount": 7, "candidatesTokenCount": 3, "thoughtsTokenCount": 2},
        },
    ]
    asked = {
        "systemInstruction": {"parts": [{"text": "be brief"}]},
        "contents": [
            {"role": "user", "parts": [{"text": "weather?"}, {"inlineData": {}}]},
            {"role": "model", "parts": [{"functionCall": {"name": "weather", "args": {}}}]},
            {"role": "user", "parts": [{"functionResponse": {"name": "weather", "response": {"sky": "rain"}}}]},
        ],
    }
    url = "http://x/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse"
    request: Any = {"url": url, "body": json.dumps(asked).encode()}
    events = b"".join(b"data: " + json.dumps(part).encode() + b"\r\n\r\n" for part in parts)
    for kind, body in (("text/event-stream", events), ("application/json", json.dumps(parts).encode())):
        headers: Any = [["content-type", kind]]
        found = read(request, {"status": 200, "headers": headers, "body": body})
        assert (found.api, found.model, found.streamed) == ("gemini", "gemini-2.5-flash", True)
        assert found.answer is not None
        assert found.answer.message == Message("assistant", "it rains", (ToolCall("umbrella", '{"open":1}'),))
        assert (found.answer.finish, found.answer.usage) == ("STOP", Usage(7, 5))
        assert [message.role for message in found.messages] == ["system", "user", "assistant", "tool"]
        assert found.messages[1].text == "weather?\n[inlineData]"
        assert found.messages[3].text == '{"sky":"rain"}'


def test_ollama_plain_and_json_lines() -> None:
    call = {"name": "umbrella", "arguments": {"open": 1}}
    lines = [
        {"model": "llama3", "message": {"role": "assistant", "content": "it "}, "done": False},
        {
            "message": {
                "content": "rains",
                "tool_calls": [{"function": call}],
            },
            "done": True,
            "done_reason": "stop",
            "prompt_eval_count": 7,
            "eval_count": 3,
        },
    ]
    asked = {"model": "llama3", "messages": [{"role": "user", "content": "weather?"}]}
    request: Any = {"url": "http://localhost:11434/api/chat", "body": json.dumps(asked).encode()}
    for body in (b"\n".join(json.dumps(line).encode() for line in lines), json.dumps(lines[1]).encode()):
        headers: Any = [["content-type", "application/x-ndjson"]]
        found = read(request, {"status": 200, "headers": headers, "body": body})
        assert (found.api, found.model) == ("ollama", "llama3")
        assert found.answer is not None
        assert found.answer.message.text.endswith("rains")
        assert found.answer.message.tool_calls == (ToolCall("umbrella", '{"open":1}'),)
        assert (found.answer.finish, found.answer.usage) == ("stop", Usage(7, 3))


def frame(kind: str, payload: Any) -> bytes:
    name, value, data = b":event-type", kind.encode(), json.dumps(payload).encode()
    head = bytes([len(name)]) + name + b"\x07" + struct.pack(">H", len(value)) + value
    total = 16 + len(head) + len(data)
    start = struct.pack(">II", total, len(head))
    whole = start + struct.pack(">I", zlib.crc32(start)) + head + data
    return whole + struct.pack(">I", zlib.crc32(whole))


def test_bedrock_converse_plain_and_binary_stream() -> None:
    asked = {"system": [{"text": "be brief"}], "messages": [{"role": "user", "content": [{"text": "weather?"}]}]}
    url = "http://x/model/amazon.nova%3A0/converse"
    call = {"toolUseId": "t1", "name": "umbrella"}
    usage = {"inputTokens": 7, "outputTokens": 3, "totalTokens": 10}
    whole = {
        "output": {
            "message": {"role": "assistant", "content": [{"text": "it rains"}, {"toolUse": {**call, "input": {}}}]}
        },
        "stopReason": "tool_use",
        "usage": usage,
    }
    stream = b"".join(
        [
            frame("messageStart", {"role": "assistant"}),
            frame("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "it "}}),
            frame("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "rains"}}),
            frame("contentBlockStart", {"contentBlockIndex": 1, "start": {"toolUse": call}}),
            frame("contentBlockDelta", {"contentBlockIndex": 1, "delta": {"toolUse": {"input": "{}"}}}),
            frame("messageStop", {"stopReason": "tool_use"}),
            frame("metadata", {"usage": usage}),
        ]
    )
    for kind, body in (
        ("application/json", json.dumps(whole).encode()),
        ("application/vnd.amazon.eventstream", stream),
    ):
        request: Any = {"url": url, "body": json.dumps(asked).encode()}
        headers: Any = [["content-type", kind]]
        found = read(request, {"status": 200, "headers": headers, "body": body})
        assert (found.api, found.model) == ("bedrock", "amazon.nova:0")
        assert found.messages == (Message("system", "be brief"), Message("user", "weather?"))
        assert found.answer is not None
        assert found.answer.message == Message("assistant", "it rains", (ToolCall("umbrella", "{}", "t1"),))
        assert (found.answer.finish, found.answer.usage) == ("tool_use", Usage(7, 3))


def test_a_claude_invoked_on_bedrock() -> None:
    asked = {
        "anthropic_version": "bedrock-2023-05-31",
        "max_tokens": 9,
        "messages": [{"role": "user", "content": "hi"}],
    }
    request: Any = {"url": "http://x/model/anthropic.claude/invoke", "body": json.dumps(asked).encode()}
    headers: Any = [["x-amzn-bedrock-input-token-count", "4"], ["x-amzn-bedrock-output-token-count", "2"]]
    body = json.dumps({"content": [{"type": "text", "text": "hey"}], "stop_reason": "end_turn"}).encode()
    found = read(request, {"status": 200, "headers": headers, "body": body})
    assert found.answer is not None
    assert (found.model, found.answer.message.text, found.answer.usage) == ("anthropic.claude", "hey", Usage(4, 2))
    event = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "hey"}}
    chunk = frame("chunk", {"bytes": base64.b64encode(json.dumps(event).encode()).decode()})
    streaming: Any = [["content-type", "application/vnd.amazon.eventstream"]]
    found = read(request, {"status": 200, "headers": streaming, "body": chunk})
    assert found.answer is not None
    assert found.answer.message.text == "hey"


_KEYS = """
    messages choices delta content tool_calls function arguments message usage error data output input type text
    system role candidates parts functionCall index item response model status
"""


def test_odd_input_never_raises() -> None:
    random.seed(7)
    odd: list[Any] = [None, True, -1, 2.5, "", "x", b"", b"\xff", [], {}, [[]], {"a": None}]
    names = _KEYS.split()

    def value(depth: int) -> Any:
        if depth == 0 or random.random() < 0.3:
            return random.choice(odd)
        if random.random() < 0.4:
            return [value(depth - 1) for _ in range(3)]
        return {random.choice(names): value(depth - 1) for _ in range(5)}

    paths = ["/v1/chat/completions", "/v1/messages", "/v1/responses", "/models/g:generateContent", "/model/b/converse"]
    paths += ["/api/chat", "/v1/embeddings", "/else", ""]
    kinds = ["application/json", "text/event-stream", "application/vnd.amazon.eventstream"]
    for _ in range(3000):
        data = json.dumps(value(5), default=str).encode()
        body = random.choice([data, b"data: " + data + b"\n\n", frame("chunk", {}) + data, data[: len(data) // 2]])
        url = "http://x" + random.choice(paths)
        headers: Any = [["content-type", random.choice(kinds)], random.choice(odd)]
        status = random.choice([200, 200, 400, None])
        assert isinstance(
            read({"url": url, "body": data}, {"status": status, "headers": headers, "body": body}), Conversation
        )
        assert isinstance(read(random.choice(odd), random.choice(odd)), Conversation)
    deep = b"[" * 100_000
    assert isinstance(read({"url": "http://x/v1/messages", "body": deep}, {"body": deep}), Conversation)
