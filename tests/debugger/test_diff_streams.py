"""A streamed answer is what it says, not how it came."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from tests.debugger.conftest import Agent, user

import lockstep
from lockstep.debugger.folding import fold
from lockstep.testing import Answer, Provider, Request


def read(path: str = "/v1/chat/completions", lines: int | None = None) -> Callable[[Agent], None]:
    """Streams an answer, and reads it to its end or so many lines of it."""

    def run(agent: Agent) -> None:
        asked = "input" if path.endswith("responses") else "messages"
        body = {"model": "gpt-4o", asked: [user("tell me")], "stream": True, "max_tokens": 99}
        with agent.client() as client, client.stream("POST", path, json=body) as answer:
            for number, _ in enumerate(answer.iter_lines(), 1):
                if number == lines:
                    break

    return run


def pieces(*texts: str) -> Callable[[Request], Answer]:
    """A chat completion in these deltas, each sent by itself."""

    def answer(request: Request) -> Answer:
        frame = {"id": f"chatcmpl-{request.number:024x}", "object": "chat.completion.chunk", "model": "gpt-4o"}
        said = [{**frame, "choices": [{"index": 0, "delta": {"content": text}}]} for text in texts]
        last = {**frame, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
        body = tuple(b"data: " + json.dumps(event).encode() + b"\n\n" for event in [*said, last])
        return Answer(body=(*body, b"data: [DONE]\n\n"), headers=(("content-type", "text/event-stream"),))

    return answer


@pytest.fixture
def streamed(record: Callable[..., str], model: Provider) -> Callable[..., str]:
    def run(name: str, script: Any, program: Callable[[Agent], None] | None = None) -> str:
        model.script = script
        return record(name, program or read())

    return run


def test_other_pieces_of_the_same_text_are_the_same(streamed: Callable[..., str]) -> None:
    streamed("a", pieces("Hel", "lo", " world"))
    streamed("b", pieces("Hello wor", "ld"))
    found = lockstep.diff("a", "b", times=True)
    assert found.differences == ()
    assert [(timing.pieces_a == timing.pieces_b) for timing in found.times] == [False]


def test_another_text_is_told_as_a_whole(streamed: Callable[..., str]) -> None:
    streamed("a", pieces("Hel", "lo", " world"))
    streamed("b", pieces("Hello", " moon"))
    [entry] = lockstep.diff("a", "b").differences
    assert (entry.path, entry.a, entry.b) == ("answer.content", '"Hello world"', '"Hello moon"')
    assert len(entry.changes) == 1


@pytest.mark.parametrize("path", ["/v1/messages", "/v1/responses"])
def test_streams_of_every_provider_are_the_same_when_they_say_the_same(streamed: Callable[..., str], path: str) -> None:
    streamed("a", lambda request: Answer("the same for all of us"), read(path))
    streamed("b", lambda request: Answer("the same for all of us", gap=0.001), read(path))
    streamed("c", lambda request: Answer("the same for none of us"), read(path))
    assert lockstep.diff("a", "b").differences == ()
    [entry] = lockstep.diff("a", "c").differences
    assert (entry.path, entry.b) == ("answer.content", '"the same for none of us"')


def test_how_far_an_answer_had_come_when_nobody_read_on_does_not_count(streamed: Callable[..., str]) -> None:
    streamed("a", pieces("one ", "two ", "three ", "four"), read(lines=1))
    streamed("b", pieces("one two three four"), read(lines=1))
    streamed("c", pieces("uno ", "two ", "three ", "four"), read(lines=1))
    assert lockstep.diff("a", "b").differences == ()
    assert not lockstep.diff("a", "c").same


def test_an_answer_that_broke_off_is_another_one(streamed: Callable[..., str]) -> None:
    def program(agent: Agent) -> None:
        try:
            read()(agent)
        except httpx.RemoteProtocolError:
            print("broken")

    streamed("a", pieces("one ", "two"), program)

    def cut(request: Request) -> Answer:
        whole = pieces("one ", "two")(request)
        return Answer(body=whole.body, headers=whole.headers, cut=1)

    streamed("b", cut, program)
    first = lockstep.diff("a", "b").first
    assert first is not None and first.reason == "failed in the second run only"
    assert {change.path for change in first.changes} >= {"answer.content", "error"}


def test_tool_calls_that_come_in_pieces_are_put_together() -> None:
    def delta(**call: Any) -> dict[str, Any]:
        return {"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, **call}]}}]}

    head = delta(id="call_1", function={"name": "f", "arguments": ""})
    one = fold([head, delta(function={"arguments": '{"a"'}), delta(function={"arguments": ": 1}"})])
    other = fold([head, delta(function={"arguments": '{"a": 1}'})])
    assert one == other
    assert one["choices"][0]["delta"]["tool_calls"][0]["function"] == {"name": "f", "arguments": '{"a": 1}'}


def test_nothing_that_changes_from_event_to_event_is_lost() -> None:
    assert fold([{"n": 1}, {"n": 2}, {"n": 2}, {"n": 1}]) == {"n": [1, 2, 1]}
    assert fold([{"finish_reason": None}, {"finish_reason": "stop"}]) == {"finish_reason": "stop"}
    assert fold([{"parts": [{"text": "a"}]}, {"parts": [{"functionCall": {"name": "f"}}]}]) == {
        "parts": [{"text": "a"}, {"functionCall": {"name": "f"}}]
    }
    assert fold(["one", "two"]) == {"(text)": ["one", "two"]}
