"""Which requests are inference calls, and what can be said of them without parsing in the agent's call."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lockstep.session.inference import describe, harmless
from lockstep.taps.http.endpoints import classify

STAINLESS = [["X-Stainless-Lang", "python"]]
ANTHROPIC = [["anthropic-version", "2023-06-01"], *STAINLESS]
CHAT = {"messages": [{"role": "user", "content": "hi"}], "model": "gpt-4o"}
CLAUDE = {"max_tokens": 10, "messages": [], "model": "claude-sonnet-4-5"}
LOCAL = "http://127.0.0.1:8123"


def raw(body: Any) -> bytes:
    return json.dumps(body).encode()


MODEL_CALLS = [
    ("https://api.openai.com/v1/chat/completions", STAINLESS, CHAT, "gpt-4o"),
    (f"{LOCAL}/v1/chat/completions", [], CHAT, "gpt-4o"),
    (f"{LOCAL}/v1/chat/completions?x=1", STAINLESS, None, ""),
    ("https://me.openai.azure.com/openai/deployments/four/chat/completions?api-version=1", [], None, "four"),
    ("https://openrouter.ai/api/v1/chat/completions", [], CHAT, "gpt-4o"),
    ("https://api.openai.com/v1/responses", STAINLESS, {"input": "hi", "model": "gpt-5"}, "gpt-5"),
    (f"{LOCAL}/v1/responses", [], {"input": "hi", "model": "gpt-5"}, "gpt-5"),
    ("https://api.openai.com/v1/embeddings", STAINLESS, {"input": "hi", "model": "e3"}, "e3"),
    ("https://api.openai.com/v1/completions", STAINLESS, {"prompt": "hi", "model": "g"}, "g"),
    ("https://api.openai.com/v1/audio/speech", STAINLESS, {"input": "hi", "model": "tts"}, "tts"),
    ("https://api.anthropic.com/v1/messages", ANTHROPIC, CLAUDE, "claude-sonnet-4-5"),
    (f"{LOCAL}/v1/messages", ANTHROPIC, None, ""),
    (f"{LOCAL}/v1/messages", [], CLAUDE, "claude-sonnet-4-5"),
    (
        "https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse",
        [],
        None,
        "gemini-2.5-flash",
    ),
    (f"{LOCAL}/v1beta/models/gemini-2.5-pro:generateContent", [["x-goog-api-key", "k"]], None, "gemini-2.5-pro"),
    (
        "https://us-east5-aiplatform.googleapis.com/v1/projects/p/locations/l/publishers/anthropic/models/c@1:rawPredict",
        [],
        None,
        "c@1",
    ),
    (
        "https://bedrock-runtime.us-east-1.amazonaws.com/model/anthropic.claude%3A0/converse-stream",
        [],
        None,
        "anthropic.claude:0",
    ),
    (f"{LOCAL}/model/amazon.nova/converse", [["amz-sdk-invocation-id", "1"]], None, "amazon.nova"),
    ("http://localhost:11434/api/chat", [], {"model": "llama3", "messages": []}, "llama3"),
    ("http://localhost:11434/api/generate", [], {"model": "llama3", "prompt": "hi"}, "llama3"),
]


@pytest.mark.parametrize(("url", "headers", "body", "name"), MODEL_CALLS)
def test_a_model_call_is_known_and_named(url: str, headers: list[list[str]], body: Any, name: str) -> None:
    sent = None if body is None else raw(body)
    assert classify("POST", url, headers, sent) == "model"
    assert describe(url, sent) == name


OTHERS = [
    ("GET", "https://api.openai.com/v1/chat/completions", STAINLESS, None),
    ("GET", "https://api.openai.com/v1/responses/resp_1", STAINLESS, None),
    ("POST", "https://api.openai.com/v1/responses/resp_1/cancel", STAINLESS, None),
    ("POST", "https://api.openai.com/v1/threads/t1/messages", STAINLESS, {"role": "user", "content": "hi"}),
    ("POST", "https://api.openai.com/v1/files", STAINLESS, None),
    ("POST", "https://api.anthropic.com/v1/messages/batches", ANTHROPIC, {"requests": []}),
    ("POST", "https://api.anthropic.com/v1/messages/count_tokens", ANTHROPIC, CLAUDE),
    ("POST", "https://shop.example/orders/7/messages", [], {"text": "hi"}),
    ("POST", "https://forms.example/surveys/1/responses", [], {"answer": 4}),
    ("POST", "https://app.example/api/chat", [], {"messages": []}),
    ("POST", "https://app.example/api/generate", [], {"report": 1}),
    ("POST", "https://app.example/model/7/invoke", [], {"x": 1}),
    ("POST", "https://app.example/predict", [], {"x": 1}),
    ("POST", "https://app.example/v1/models/house:predict", [], {"instances": []}),
    ("POST", "https://notollama.com/rerank", [], {"q": 1}),
    ("POST", "https://example.com/", [], None),
    ("POST", "https://example.com", [], None),
]


@pytest.mark.parametrize(("method", "url", "headers", "body"), OTHERS)
def test_everything_else_is_plain_http(method: str, url: str, headers: list[list[str]], body: Any) -> None:
    assert classify(method, url, headers, None if body is None else raw(body)) == "http"


def test_the_signs_are_found_at_either_end_of_a_large_body() -> None:
    filler = [{"role": "user", "content": "x" * 100_000}]
    first = raw({"model": "gpt-4o", "messages": filler, "n": 1})
    last = raw({"metadata": "x" * 100_000, "messages": [], "model": "gpt-4o"})
    for body in (first, last):
        assert classify("POST", f"{LOCAL}/v1/chat/completions", [], body) == "model"


def test_a_name_is_read_from_a_form_and_odd_bodies_name_nothing() -> None:
    form = b'--b\r\nContent-Disposition: form-data; name="model"\r\n\r\nwhisper-1\r\n--b--\r\n'
    assert describe("https://api.openai.com/v1/audio/transcriptions", form) == "whisper-1"
    for odd in (b"", b"{", b"[1]", b'{"model": 3}', b"\xff\xfe", b'{"model": "\xff"}'):
        assert describe("https://api.openai.com/v1/chat/completions", odd) == ""


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (CHAT, True),
        ({**CHAT, "tools": [{"type": "function", "function": {"name": "f"}}]}, True),
        ({**CLAUDE, "tools": [{"name": "f", "input_schema": {}}, {"type": "bash_20250124", "name": "bash"}]}, True),
        ({"contents": [], "tools": [{"functionDeclarations": []}]}, True),
        ({**CHAT, "tools": [{"type": "web_search"}]}, False),
        ({**CLAUDE, "tools": [{"type": "web_search_20250305", "name": "web_search"}]}, False),
        ({**CLAUDE, "mcp_servers": [{"url": "https://x"}]}, False),
        ({"contents": [], "tools": [{"google_search": {}}]}, False),
        ({"input": "hi", "background": True}, False),
        ({**CHAT, "tools": "odd"}, False),
        ([1], False),
    ],
)
def test_hosted_tools_and_background_jobs_are_not_harmless(body: Any, expected: bool) -> None:
    assert harmless(raw(body)) is expected
    assert harmless(None) is False
