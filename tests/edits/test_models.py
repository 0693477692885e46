"""What a model said, edited: the provider's own SDK makes of it what it would make of such an answer."""

from __future__ import annotations

import asyncio
import copy
import functools
from collections.abc import Callable
from typing import Any

import anthropic
import httpx2
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


@functools.cache
def _http() -> httpx2.Client:
    return httpx2.Client(verify=False)  # loading certificates takes longer than all else here


def _openai(url: str) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{url}/v1", api_key="any", max_retries=0, http_client=_http())


def _anthropic(url: str) -> anthropic.Anthropic:
    return anthropic.Anthropic(base_url=url, api_key="any", max_retries=0, http_client=_http())


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


@pytest.mark.parametrize("ask", APIS)
def test_what_a_model_said_is_edited(editing: Any, ask: Ask) -> None:
    def ask_thrice() -> list[Any]:
        made = []
        for _ in range(3):
            try:
                made.append(ask(provider.url))
            except (openai.RateLimitError, anthropic.RateLimitError) as error:
                made.append(error.message)
        return made

    with Provider([SAYING] * 3) as provider:
        recorded = editing.record(ask_thrice)
        assert editing.shown() == {"role": "assistant", "content": "Sent on Monday."}
        text = 'Lost — "für immer"\n\ndata: x'
        wanted = [{"name": "issue_refund", "arguments": {"cents": 4000}}]
        body = {"type": "error", "error": {"type": "rate_limit_error", "message": "slow down"}}
        spoken, called, refused = editing.served_all(
            ask_thrice,
            {
                "1": (("content", text),),
                "2": (("tool_calls", wanted), ("content", None)),
                "3": (("", {"status": 429, "body": body}),),
            },
        )
    assert spoken == said(recorded[0], text)
    assert calls(called) == [("issue_refund", {"cents": 4000} if "content" in called else '{"cents":4000}')]
    assert finish(called) in ("tool_calls", "completed", "tool_use")
    assert "slow down" in refused


@pytest.mark.parametrize("ask", PLAIN)
def test_what_a_model_said_to_tasks_is_edited(editing: Any, ask: Ask) -> None:
    with Provider([SAYING]) as provider:
        recorded = editing.record(lambda: ask(provider.url))
        assert editing.served(lambda: ask(provider.url), ("content", "Lost.")) == said(recorded, "Lost.")


@pytest.mark.parametrize("answer", [SAYING, CALLING], ids=["says", "calls"])
@pytest.mark.parametrize("ask", APIS)
def test_a_message_edited_to_itself_is_the_recorded_one(editing: Any, ask: Ask, answer: Answer) -> None:
    with Provider([answer] * 2) as provider:
        recorded = editing.record(lambda: [ask(provider.url), ask(provider.url)])
        whole, again = editing.shown("1"), editing.shown("2")
        # The second is made again, since it said something else meanwhile.
        changed = [{**call, "arguments": {"a": 1}} for call in again.get("tool_calls", ())]
        other = {"content": "other", "tool_calls": [*changed, {"name": "other", "arguments": {"b": 2}}]}
        edits = {"1": (("", whole),), "2": (("", other), ("", again))}
        assert editing.served_all(lambda: [ask(provider.url), ask(provider.url)], edits) == recorded


@pytest.mark.parametrize("ask", APIS)
def test_tool_calls_are_edited(editing: Any, ask: Ask) -> None:
    with Provider([CALLING, CALLING]) as provider:
        recorded = editing.record(lambda: (ask(provider.url), ask(provider.url)))
        changed, silent = editing.served_all(
            lambda: (ask(provider.url), ask(provider.url)),
            {"1": (("tool_calls[0].arguments.id", 8),), "2": (("", "Never mind."),)},
        )
    arguments: Any = {"id": 8, "note": 'für "uns"'}
    if ask not in (messages, messages_streamed):
        arguments = '{"id":8,"note":"für \\"uns\\""}'
    assert calls(changed) == [("get_order", arguments), calls(recorded[0])[1]]
    assert finish(changed) == finish(recorded[0])
    assert calls(silent) == []
    assert finish(silent) in ("stop", "completed", "end_turn")


@pytest.mark.parametrize("ask", APIS)
def test_an_error_of_the_provider_becomes_a_message(editing: Any, ask: Ask) -> None:
    def ask_twice() -> list[Any]:
        made = []
        for _ in range(2):
            try:
                made.append(ask(provider.url))
            except (openai.InternalServerError, anthropic.APIStatusError) as error:
                made.append(error.status_code)
        return made

    with Provider([Answer("overloaded", status=503)] * 2) as provider:
        assert editing.record(ask_twice) == [503, 503]
        assert editing.shown()["status"] == 503
        calling = {"tool_calls": [{"name": "get_order", "arguments": {}, "id": "c1"}]}
        spoken, called = editing.served_all(
            ask_twice, {"1": (("", {"role": "assistant", "content": "Sent."}),), "2": (("", calling),)}
        )
    assert said(spoken, "Sent.") == spoken
    assert finish(spoken) in ("stop", "completed", "end_turn")
    assert [name for name, _ in calls(called)] == ["get_order"]


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
