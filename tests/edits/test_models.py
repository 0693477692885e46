"""What a model said, edited: the provider's own SDK makes of it what it would make of such an answer."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable
from typing import Any

import anthropic
import openai
import pytest

from lockstep.errors import EditError
from lockstep.testing import Answer, Provider, ToolCall

ORDER = ToolCall("get_order", {"id": 7, "note": 'für "uns"'}, id="call_7")
SAYING = Answer("Sent on Monday.")
CALLING = Answer("Let me see.", calls=(ORDER, ToolCall("get_policy", {"name": "refunds"}, id="call_8")))
TOOL = {"type": "object", "properties": {"id": {"type": "integer"}}}
ASKED: list[Any] = [{"role": "user", "content": "where is order 7?"}]

type Ask = Callable[[str], Any]


def _openai(url: str) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{url}/v1", api_key="any", max_retries=0)


def _anthropic(url: str) -> anthropic.Anthropic:
    return anthropic.Anthropic(base_url=url, api_key="any", max_retries=0)


def chat(url: str) -> Any:
    return _openai(url).chat.completions.create(model="gpt-4o", messages=ASKED).model_dump()


def chat_streamed(url: str) -> Any:
    options: Any = {"include_usage": True}
    with _openai(url).chat.completions.stream(model="gpt-4o", messages=ASKED, stream_options=options) as stream:
        for _ in stream:
            pass
        return stream.get_final_completion().model_dump()


def responses(url: str) -> Any:
    return _openai(url).responses.create(model="gpt-5", input=ASKED).model_dump()


def responses_streamed(url: str) -> Any:
    with _openai(url).responses.stream(model="gpt-5", input=ASKED) as stream:
        text = "".join(event.delta for event in stream if event.type == "response.output_text.delta")
        made = stream.get_final_response().model_dump()
    assert text == "".join(
        part["text"] for item in made["output"] if item["type"] == "message" for part in item["content"]
    )
    return made


def messages(url: str) -> Any:
    return _anthropic(url).messages.create(model="claude-test", max_tokens=99, messages=ASKED).model_dump()


def messages_streamed(url: str) -> Any:
    with _anthropic(url).messages.stream(model="claude-test", max_tokens=99, messages=ASKED) as stream:
        text = "".join(stream.text_stream)
        made = stream.get_final_message().model_dump()
    assert text == "".join(block["text"] for block in made["content"] if block["type"] == "text")
    return made


def by_tasks(url: str) -> Any:
    async def ask() -> Any:
        async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="any", max_retries=0) as client:
            stream = await client.chat.completions.create(model="gpt-4o", messages=ASKED, stream=True)
            said, word = "", None
            async for chunk in stream:
                said += chunk.choices[0].delta.content or ""
                word = chunk.choices[0].finish_reason or word
            return {"choices": [{"message": {"content": said}, "finish_reason": word}]}

    return asyncio.run(ask())


def by_aiohttp(url: str) -> Any:
    async def ask() -> Any:
        client = openai.AsyncOpenAI(
            base_url=f"{url}/v1", api_key="any", max_retries=0, http_client=openai.DefaultAioHttpClient()
        )
        async with client:
            return (await client.chat.completions.create(model="gpt-4o", messages=ASKED)).model_dump()

    return asyncio.run(ask())


@pytest.fixture(scope="module", autouse=True)
def _warm() -> None:
    """What the SDKs load with their first call is loaded: it draws random numbers."""
    with Provider() as provider:
        for ask in APIS:
            ask(provider.url)


APIS: tuple[Ask, ...] = (chat, chat_streamed, responses, responses_streamed, messages, messages_streamed)
PLAIN = (by_tasks, by_aiohttp)


def said(made: Any, text: str) -> Any:
    """The recorded object with another text in it."""
    made = copy.deepcopy(made)
    if "choices" in made:
        made["choices"][0]["message"]["content"] = text
    elif "output" in made:
        next(item for item in made["output"] if item["type"] == "message")["content"][0]["text"] = text
    else:
        next(block for block in made["content"] if block["type"] == "text")["text"] = text
    return made


def calls(made: Any) -> list[tuple[str, Any]]:
    """The tool calls of an object, by name and arguments."""
    if "choices" in made:
        found = made["choices"][0]["message"].get("tool_calls") or []
        return [(call["function"]["name"], call["function"]["arguments"]) for call in found]
    if "output" in made:
        return [(item["name"], item["arguments"]) for item in made["output"] if item["type"] == "function_call"]
    return [(block["name"], block["input"]) for block in made["content"] if block["type"] == "tool_use"]


def finish(made: Any) -> Any:
    return made["choices"][0]["finish_reason"] if "choices" in made else made.get("stop_reason") or made.get("status")


@pytest.mark.parametrize("ask", [*APIS, *PLAIN])
def test_what_a_model_said_is_edited(editing: Any, ask: Ask) -> None:
    with Provider([SAYING]) as provider:
        recorded = editing.record(lambda: ask(provider.url))
        assert editing.shown() == {"role": "assistant", "content": "Sent on Monday."}
        text = 'Lost — "für immer"\n\ndata: x'
        assert editing.served(lambda: ask(provider.url), ("content", text)) == said(recorded, text)


@pytest.mark.parametrize("answer", [SAYING, CALLING], ids=["says", "calls"])
@pytest.mark.parametrize("ask", APIS)
def test_a_message_edited_to_itself_is_the_recorded_one(editing: Any, ask: Ask, answer: Answer) -> None:
    with Provider([answer]) as provider:
        recorded = editing.record(lambda: ask(provider.url))
        whole = editing.shown()
        assert editing.served(lambda: ask(provider.url), ("", whole)) == recorded
        # And where all of it is made again, since it said something else meanwhile:
        changed = [{**call, "arguments": {"a": 1}} for call in whole.get("tool_calls", ())]
        other = {"content": "other", "tool_calls": [*changed, {"name": "other", "arguments": {"b": 2}}]}
        assert editing.served(lambda: ask(provider.url), ("", other), ("", whole)) == recorded


@pytest.mark.parametrize("ask", APIS)
def test_tool_calls_are_edited(editing: Any, ask: Ask) -> None:
    with Provider([CALLING]) as provider:
        recorded = editing.record(lambda: ask(provider.url))
        changed = editing.served(lambda: ask(provider.url), ("tool_calls[0].arguments.id", 8))
        text = (
            '{"id":8,"note":"für \\"uns\\""}'
            if ask not in (messages, messages_streamed)
            else {"id": 8, "note": 'für "uns"'}
        )
        assert calls(changed) == [("get_order", text), calls(recorded)[1]]
        assert finish(changed) == finish(recorded)
        silent = editing.served(lambda: ask(provider.url), ("", "Never mind."))
        assert calls(silent) == []
        assert finish(silent) in ("stop", "completed", "end_turn")


@pytest.mark.parametrize("ask", APIS)
def test_a_model_that_only_spoke_calls_a_tool(editing: Any, ask: Ask) -> None:
    with Provider([SAYING]) as provider:
        editing.record(lambda: ask(provider.url))
        wanted = [{"name": "issue_refund", "arguments": {"cents": 4000}}]
        made = editing.served(lambda: ask(provider.url), ("tool_calls", wanted), ("content", None))
        text = '{"cents":4000}' if ask not in (messages, messages_streamed) else {"cents": 4000}
        assert calls(made) == [("issue_refund", text)]
        assert finish(made) in ("tool_calls", "completed", "tool_use")


@pytest.mark.parametrize("ask", APIS)
def test_an_error_of_the_provider_becomes_a_message(editing: Any, ask: Ask) -> None:
    with Provider([Answer("overloaded", status=503)]) as provider:
        with pytest.raises((openai.InternalServerError, anthropic.APIStatusError)):
            editing.record(lambda: ask(provider.url))
        assert editing.shown()["status"] == 503
        made = editing.served(lambda: ask(provider.url), ("", {"role": "assistant", "content": "Sent."}))
        assert said(made, "Sent.") == made
        assert finish(made) in ("stop", "completed", "end_turn")
        asking = editing.served(
            lambda: ask(provider.url), ("", {"tool_calls": [{"name": "get_order", "arguments": {}, "id": "c1"}]})
        )
        assert [name for name, _ in calls(asking)] == ["get_order"]


@pytest.mark.parametrize("ask", APIS)
def test_a_message_becomes_an_error_of_the_provider(editing: Any, ask: Ask) -> None:
    with Provider([SAYING]) as provider:
        editing.record(lambda: ask(provider.url))
        body = {"type": "error", "error": {"type": "rate_limit_error", "message": "slow down"}}
        with pytest.raises((openai.RateLimitError, anthropic.RateLimitError), match="slow down"):
            editing.served(lambda: ask(provider.url), ("", {"status": 429, "body": body}))


def test_a_place_in_the_answer_of_a_model_is_edited(editing: Any) -> None:
    with Provider([SAYING]) as provider:
        recorded = editing.record(lambda: chat(provider.url))
        made = editing.served(
            lambda: chat(provider.url),
            ("body.choices[0].finish_reason", "length"), ("content", "Sent on"), ("headers.x-request-id", "req_1"),
        )  # fmt: skip
    expected = said(recorded, "Sent on")
    expected["choices"][0]["finish_reason"] = "length"
    assert made == expected


def test_a_stream_that_broke_off_is_made_whole(editing: Any) -> None:
    with Provider([Answer("Sent on Monday, we think.", cut=3)]) as provider:
        with pytest.raises((openai.APIError, Exception)) as broken:
            editing.record(lambda: chat_streamed(provider.url))
        assert not isinstance(broken.value, AssertionError)
        assert editing.shown()["content"] == "Sent on"
        made = editing.served(lambda: chat_streamed(provider.url), ("content", "Sent on Monday."))
    assert (said(made, "Sent on Monday."), finish(made)) == (made, "stop")


@pytest.mark.parametrize(
    ("path", "value", "says"),
    [
        ("content.text", "x", "LS212 there is no content.text"),
        ("contents", "x", "LS212 there is no contents: the outcome has role, content"),
        ("", {"text": "x"}, "LS213 a model's message is"),
        ("", {"role": "user", "content": "x"}, "LS213 a model's message is the assistant's"),
        ("content", {"text": "x"}, "LS213 the content of a model's message is a text"),
        ("tool_calls", [{"arguments": {}}], "LS213 a tool call is"),
    ],
)
def test_a_message_that_none_can_say_is_refused(editing: Any, path: str, value: Any, says: str) -> None:
    with Provider([SAYING]) as provider:
        editing.record(lambda: chat(provider.url))
    with pytest.raises(EditError) as refused:
        editing.pieces((path, value))
    assert says in str(refused.value)


def test_an_answer_without_a_message_is_edited_as_an_answer(editing: Any) -> None:
    body = b'{"object":"list","data":[{"object":"embedding","index":0,"embedding":[0.5,1.5]}],"model":"e"}'

    def ask() -> Any:
        client = _openai(provider.url)
        return client.embeddings.create(model="e", input="x", encoding_format="float").data[0].embedding

    with Provider(lambda request: Answer(body=body, headers=(("content-type", "application/json"),))) as provider:
        assert editing.record(ask) == [0.5, 1.5]
        with pytest.raises(EditError, match="LS213 no message can be put into this answer"):
            editing.pieces(("content", "x"))
        assert editing.served(ask, ("body.data[0].embedding[1]", 2.5)) == [0.5, 2.5]
