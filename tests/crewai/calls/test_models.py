"""Models' calls, recorded and served: of CrewAI's own providers, and of a program's own."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from asked import LANE, Tape
from crew_events import Heard
from crewai import LLM, BaseLLM
from crewai.events.types.llm_events import LLMCallType
from crewai.hooks import HookAborted, InterceptionPoint
from crewai.hooks.dispatch import register_scoped, scoped_hooks
from crewai.llms.providers.openai.completion import OpenAICompletion
from crewai.utilities.internal_instructor import InternalInstructor
from pydantic import BaseModel

from lockstep.errors import Code, Divergence
from lockstep.testing import Answer, Provider, ToolCall
from lockstep_crewai.voice import Voice

LOOK_UP = {
    "type": "function",
    "function": {
        "name": "look_up", "description": "Looks an order up.",
        "parameters": {"type": "object", "properties": {"order": {"type": "integer"}}},
    },
}  # fmt: skip
MODEL = "gpt-4o"


class Verdict(BaseModel):
    score: int
    because: str


def model(**more: Any) -> Any:
    return LLM(model=f"openai/{MODEL}", **more)


def said(text: str, **more: Any) -> Answer:
    return Answer(text, **more)


def once_more(tape: Tape, provider: Provider, heard: Heard, code: Any) -> tuple[Any, Any]:
    """What code gave when it was recorded, and when it is served with nobody to answer. Fails unless listeners heard
    the same, and tokens were counted alike."""
    first = tape.record(code)
    told, requests = heard.taken(), provider.requests
    assert tape.faults == []
    provider.stop()
    again = tape.replay(code)
    assert heard.taken() == told
    assert provider.requests == requests
    return first, again


def counted(llm: Any) -> Any:
    return llm.get_token_usage_summary().model_dump()


def test_an_answer_is_what_was_asked_and_what_the_caller_got(provider: Provider, tape: Tape, heard: Heard) -> None:
    provider.script = [said("it is fine")]
    tokens = []

    def ask() -> Any:
        llm = model(temperature=0.2)
        answer = llm.call("is it fine?")
        tokens.append(counted(llm))
        return answer

    first, again = once_more(tape, provider, heard, ask)
    assert first == again == "it is fine"
    assert tokens[0] == tokens[1] and tokens[0]["total_tokens"] > 0 and tokens[0]["successful_requests"] == 1
    assert tape.calls() == [(LANE, "model", MODEL)]
    assert tape.request() == {"messages": "is it fine?", "settings": {"temperature": 0.2}}
    outcome = tape.outcome()
    assert outcome["text"] == "it is fine" and outcome["finish_reason"] == "stop"
    assert outcome["usage"]["total_tokens"] == tokens[0]["total_tokens"]
    assert tape.effect_class() == "inference"


def test_a_call_of_a_coroutine_is_served_to_one(provider: Provider, tape: Tape, heard: Heard) -> None:
    provider.script = [said("it is fine")]
    tokens = []

    def ask() -> Any:
        llm = model()
        answer = asyncio.run(llm.acall([{"role": "user", "content": "is it fine?"}]))
        tokens.append(counted(llm))
        return answer

    first, again = once_more(tape, provider, heard, ask)
    assert first == again == "it is fine"
    assert tokens[0] == tokens[1] and tokens[0]["total_tokens"] > 0


@pytest.mark.parametrize("is_async", [False, True])
def test_a_stream_is_recorded_and_served_piece_by_piece(
    provider: Provider, tape: Tape, heard: Heard, is_async: bool
) -> None:
    provider.script = [said("it is fine, as far as one can see")]
    pieces: list[Any] = []

    def ask() -> Any:
        llm = model(stream=True)
        answer = asyncio.run(llm.acall("fine?")) if is_async else llm.call("fine?")
        pieces.append([(event.chunk, event.response_id) for event in heard.events("llm_stream_chunk")])
        return answer

    first, again = once_more(tape, provider, heard, ask)
    assert first == again == "it is fine, as far as one can see"
    assert pieces[0] == pieces[1] and len(pieces[0]) > 2
    recorded = tape.pieces()
    assert recorded[0]["chunk"] == pieces[0][0][0] and recorded[1:] == [text for text, _ in pieces[0][1:]]


def test_tool_calls_come_back_as_the_sdk_has_them(provider: Provider, tape: Tape, heard: Heard) -> None:
    provider.script = [Answer(calls=(ToolCall("look_up", {"order": 7}), ToolCall("look_up", {"order": 8})))]
    first, again = once_more(tape, provider, heard, lambda: model().call("order 7?", tools=[LOOK_UP]))
    assert [type(call) for call in first] == [type(call) for call in again]
    assert [call.model_dump() for call in first] == [call.model_dump() for call in again]
    assert again[1].function.name == "look_up" and again[1].function.arguments == first[1].function.arguments
    outcome = tape.outcome()
    assert [call["function"]["name"] for call in outcome["tool_calls"]] == ["look_up", "look_up"]
    assert outcome["class"].startswith("openai.types.chat.")
    assert tape.request()["tools"] == [LOOK_UP]


def test_streamed_tool_calls_come_back_as_the_plain_data_they_were(
    provider: Provider, tape: Tape, heard: Heard
) -> None:
    provider.script = [Answer(calls=(ToolCall("look_up", {"order": 7}), ToolCall("look_up", {"order": 8})))]
    told: list[Any] = []

    def ask() -> Any:
        answer = model(stream=True).call("order 7?", tools=[LOOK_UP])
        told.append([event.tool_call for event in heard.events("llm_stream_chunk")])
        return answer

    first, again = once_more(tape, provider, heard, ask)
    assert first == again and type(again[0]) is dict
    assert told[0] == told[1] and told[0]
    assert "class" not in tape.outcome()


def test_an_object_comes_back_as_one_of_the_class_that_is_asked_for(
    provider: Provider, tape: Tape, heard: Heard
) -> None:
    provider.script = [said('{"score": 3, "because": "it is late"}')]
    first, again = once_more(tape, provider, heard, lambda: model().call("judge", response_model=Verdict))
    assert type(first) is type(again) is Verdict
    assert first == again == Verdict(score=3, because="it is late")
    assert tape.outcome()["object"] == {"score": 3, "because": "it is late"}
    form = tape.request()["response_model"]
    assert form["$class"].endswith(":Verdict") and "score" in form["schema"]["properties"]


def test_ids_of_tool_calls_are_no_part_of_what_has_to_be_the_same(provider: Provider, tape: Tape) -> None:
    provider.script = [said("40.00")]

    def ask(first: str, second: str) -> Any:
        called = [
            {"id": id, "type": "function", "function": {"name": "f", "arguments": "{}"}} for id in (first, second)
        ]
        return model().call([
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": None, "tool_calls": called},
            {"role": "tool", "tool_call_id": second, "content": "two"},
            {"role": "tool", "tool_call_id": first, "content": "one"},
        ])  # fmt: skip

    assert tape.record(lambda: ask("call_x", "call_y")) == "40.00"
    assert tape.replay(lambda: ask("call_1", "call_2")) == "40.00"
    assert [message["tool_call_id"] for message in tape.request()["messages"][2:]] == ["call-2", "call-1"]
    # The answers of two calls must not be exchanged, whatever their ids are.
    tape.serve(lambda: model().call([
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": None, "tool_calls": [
            {"id": id, "type": "function", "function": {"name": "f", "arguments": "{}"}} for id in "ab"
        ]},
        {"role": "tool", "tool_call_id": "a", "content": "two"},
        {"role": "tool", "tool_call_id": "b", "content": "one"},
    ]))  # fmt: skip
    assert tape.difference is not None and tape.difference.code == Code.REQUEST


def test_another_request_is_stopped_by_what_nobody_can_take_for_a_failure(provider: Provider, tape: Tape) -> None:
    provider.script = [said("it is fine")]
    tape.record(lambda: model().call("is it fine?"))
    requests = provider.requests
    found = tape.serve(lambda: model().call("is it good?"))
    assert isinstance(found, Divergence) and not isinstance(found, Exception)
    assert found.difference.code == Code.REQUEST and found.difference.path == "messages"
    assert provider.requests == requests


@pytest.mark.parametrize("change", [{"temperature": 0.9}, {"max_tokens": 5}, {"stop": ["END"]}, {"seed": 3}])
def test_what_a_model_is_set_to_is_part_of_what_it_is_asked(
    provider: Provider, tape: Tape, change: dict[str, Any]
) -> None:
    provider.script = [said("it is fine")]
    tape.record(lambda: model().call("is it fine?"))
    assert isinstance(tape.serve(lambda: model(**change).call("is it fine?")), Divergence)


@pytest.mark.parametrize("is_async", [False, True])
def test_a_failure_is_raised_again_as_it_was(provider: Provider, tape: Tape, heard: Heard, is_async: bool) -> None:
    provider.script = [said("no such model here", status=400)]

    def ask() -> Any:
        llm = model(max_retries=0)
        return asyncio.run(llm.acall("hello")) if is_async else llm.call("hello")

    first, again = once_more(tape, provider, heard, ask)
    assert type(first).__name__ == "BadRequestError"
    assert type(first) is type(again) and str(first) == str(again)


own: list[str] = []
"""What models of the program's own were asked."""


class Own(BaseLLM):
    """A model of a program's own, that tells nobody of anything."""

    def call(self, messages: Any, *args: Any, **options: Any) -> Any:
        own.append(str(messages))
        return self.answer(messages)

    async def acall(self, messages: Any, *args: Any, **options: Any) -> Any:
        return self.call(messages)

    def answer(self, messages: Any) -> Any:
        return f"own {len(own)}: {messages}"


class Telling(Own):
    """One that tells of itself by the means that CrewAI has for it, and calls the one that it overrides."""

    def call(self, messages: Any, *args: Any, **options: Any) -> Any:
        self._emit_call_started_event(messages)
        for word in ("fine", " indeed"):
            self._emit_stream_chunk_event(word)
        answer = super().call(messages)
        usage = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
        self._track_token_usage_internal(usage)
        self._emit_call_completed_event(answer, LLMCallType.LLM_CALL, usage=usage, finish_reason="length")
        self._emit_thinking_chunk_event("hm")
        return answer


@pytest.mark.parametrize("kind", [Own, Telling])
@pytest.mark.parametrize("is_async", [False, True])
def test_a_model_of_a_programs_own_is_not_run_again(
    provider: Provider, tape: Tape, heard: Heard, kind: type[Own], is_async: bool
) -> None:
    tokens = []

    def ask() -> Any:
        llm = kind(model="own-1")
        answer = asyncio.run(llm.acall("hello")) if is_async else llm.call("hello")
        tokens.append(counted(llm))
        return answer

    own.clear()
    first, again = once_more(tape, provider, heard, ask)
    assert first == again == "own 1: hello"
    assert own == ["hello"]
    assert tokens[0] == tokens[1]
    assert tape.calls() == [(LANE, "model", "own-1")]
    if kind is Telling:
        assert tokens[0]["total_tokens"] == 5
        assert tape.pieces()[:3] == [{"event": "started"}, "fine", " indeed"]
        assert tape.pieces()[-1] == {"thinking": "hm"}


@pytest.mark.parametrize(("ahead", "times"), [(False, 2), (True, 1)])
def test_that_it_was_over_is_said_again_as_often_as_it_was_said(ahead: bool, times: int) -> None:
    """Told ahead of the end it was the last word; otherwise something came after it, and it was said once more."""
    said: list[Any] = []

    class Saying:
        def _emit_call_completed_event(self, **told: Any) -> None:
            said.append(told["response"])

    voice = Voice(Saying(), {}, own=True)
    voice.part({"event": "completed", "response": "first", **({"ahead": True} if ahead else {})})
    voice.over("last", {})
    assert said == ["first", "last"][:times]


def test_a_class_that_is_made_later_is_seen_too(provider: Provider, tape: Tape) -> None:
    class Later(Own):
        def call(self, messages: Any, *args: Any, **options: Any) -> Any:
            return {"odd": [messages, 1]}

    assert tape.record(lambda: Later(model="later").call("hello")) == {"odd": ["hello", 1]}
    assert tape.outcome() == {"value": {"odd": ["hello", 1]}}
    assert tape.replay(lambda: Later(model="later").call("hello")) == {"odd": ["hello", 1]}


def test_what_cannot_be_recorded_is_told_and_its_replay_stops_there(provider: Provider, tape: Tape) -> None:
    class Odd(Own):
        def answer(self, messages: Any) -> Any:
            return iter(messages)

    assert [*tape.record(lambda: Odd(model="odd").call("ab"))] == ["a", "b"]
    assert len(tape.faults) == 1 and tape.faults[0].startswith("a model's answer: ")
    assert isinstance(tape.serve(lambda: Odd(model="odd").call("ab")), Divergence)
    assert tape.difference is not None and tape.difference.code == Code.UNSERVABLE


def test_nobody_is_asked_outside_of_a_recording(provider: Provider, tape: Tape, heard: Heard) -> None:
    provider.script = [said("one"), said("two")]
    assert model().call("hello") == "one"
    plain = heard.taken()
    assert tape.record(lambda: model().call("hello")) == "two"
    assert heard.taken() == plain


def test_hooks_of_a_call_that_no_agent_makes_look_at_it_again(provider: Provider, tape: Tape, heard: Heard) -> None:
    provider.script = [said("it is fine")]
    seen: list[str] = []

    def before(context: Any) -> None:
        seen.append(f"before {context.messages[-1]['content']}")

    def after(context: Any) -> str:
        seen.append(f"after {context.response}")
        return f"{context.response}!"

    def ask() -> Any:
        with scoped_hooks():
            register_scoped(InterceptionPoint.PRE_MODEL_CALL, before)
            register_scoped(InterceptionPoint.POST_MODEL_CALL, after)
            return model().call("is it fine?")

    first, again = once_more(tape, provider, heard, ask)
    assert first == again == "it is fine!"
    assert seen == ["before is it fine?", "after it is fine"] * 2


def test_a_hook_that_lets_nothing_through_does_so_again(provider: Provider, tape: Tape, heard: Heard) -> None:
    def stop(context: Any) -> None:
        raise HookAborted("not today", "me")

    def ask() -> Any:
        with scoped_hooks():
            register_scoped(InterceptionPoint.PRE_MODEL_CALL, stop)
            return model().call("is it fine?")

    first, again = once_more(tape, provider, heard, ask)
    assert type(first) is type(again) is HookAborted and str(again) == "not today"
    assert provider.requests == 0


def test_functions_that_a_model_may_run_itself_are_not_run_again(provider: Provider, tape: Tape, heard: Heard) -> None:
    ran: list[int] = []

    def look_up(order: int) -> str:
        ran.append(order)
        return f"order {order}"

    provider.script = [Answer(calls=(ToolCall("look_up", {"order": 7}),))]
    code = lambda: model().call("7?", tools=[LOOK_UP], available_functions={"look_up": look_up})  # noqa: E731
    first, again = once_more(tape, provider, heard, code)
    assert first == again == "order 7"
    assert tape.effect_class() == "unknown"  # so that a fork does not run them unasked
    assert ran == [7]


def test_what_takes_a_text_apart_asks_a_provider_by_itself(provider: Provider, tape: Tape, heard: Heard) -> None:
    provider.script = [Answer(calls=(ToolCall("Verdict", {"score": 3, "because": "it is late"}),))]

    def ask() -> Any:
        return InternalInstructor(content="it is late", model=Verdict, llm=model()).to_json()

    first, again = once_more(tape, provider, heard, ask)
    assert first == again and json.loads(first)["score"] == 3
    assert tape.calls() == [(LANE, "model", MODEL)]
    assert tape.outcome()["object"] == {"score": 3, "because": "it is late"}


def test_what_a_model_keeps_for_its_next_request_is_kept_again(provider: Provider, tape: Tape, heard: Heard) -> None:
    provider.script = [said("one"), said("two")]

    def ask() -> Any:
        llm = model(api="responses", auto_chain=True)
        return [(llm.call(text), llm.last_response_id) for text in ("first", "second")]

    first, again = once_more(tape, provider, heard, ask)
    assert first == again
    assert first[0][1] and first[0][1] != first[1][1]
    assert provider.seen[1].json["previous_response_id"] == first[0][1]


def test_tokens_that_a_provider_counts_are_an_answer_of_its(
    provider: Provider, tape: Tape, monkeypatch: pytest.MonkeyPatch
) -> None:
    llm = model()
    assert tape.record(lambda: llm.get_input_tokens_count("hello there")) > 0
    assert tape.calls() == []  # a server that is like OpenAI's does not count: it is done here

    monkeypatch.setattr(OpenAICompletion, "_on_compatible_server", lambda self: False)
    tape = Tape("counted")
    provider.script = lambda request: Answer(body=b'{"object": "response.input_tokens", "input_tokens": 11}')
    assert tape.record(lambda: model().get_input_tokens_count("hello there")) == 11
    provider.stop()
    assert tape.replay(lambda: model().get_input_tokens_count("hello there")) == 11
    assert tape.calls() == [(LANE, "model", f"{MODEL}.count_tokens")]
    assert tape.effect_class() == "read"
