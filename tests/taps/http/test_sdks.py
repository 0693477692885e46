"""The OpenAI and Anthropic SDKs of whichever generation is installed: on httpx, or (openai 3, anthropic 1) httpx2."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import anthropic
import openai
import pytest
from tests.taps.http.conftest import Same, chain, raised

from lockstep.testing import Answer, Provider, Request, ToolCall

ASKED: Any = {"model": "gpt-4o", "messages": [{"role": "user", "content": "hello"}]}
CLAUDE: Any = {**ASKED, "model": "claude-test", "max_tokens": 100}


@pytest.fixture
def same(same_model: Same[Provider]) -> Same[Provider]:
    return same_model


def openai_of(provider: Provider, **options: Any) -> openai.OpenAI:
    return openai.OpenAI(base_url=provider.url + "/v1", api_key="sk-test", **options)


def aopenai_of(provider: Provider, **options: Any) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(base_url=provider.url + "/v1", api_key="sk-test", **options)


def claude_of(provider: Provider, **options: Any) -> anthropic.Anthropic:
    return anthropic.Anthropic(base_url=provider.url, api_key="sk-test", **options)


def aclaude_of(provider: Provider, **options: Any) -> anthropic.AsyncAnthropic:
    return anthropic.AsyncAnthropic(base_url=provider.url, api_key="sk-test", **options)


def openai_plain(provider: Provider) -> Any:
    with openai_of(provider) as client:
        chat = client.chat.completions.create(**ASKED)
        response = client.responses.create(model="gpt-4o", input="hello")
        return chat.model_dump(), chat._request_id, response.model_dump(), response.output_text


def openai_streams(provider: Provider) -> Any:
    with openai_of(provider) as client:
        chunks = [chunk.model_dump() for chunk in client.chat.completions.create(**ASKED, stream=True)]
        events = [event.model_dump() for event in client.responses.create(model="m", input="hi", stream=True)]
        return chunks, events


def openai_raw(provider: Provider) -> Any:
    with openai_of(provider) as client:
        raw = client.chat.completions.with_raw_response.create(**ASKED)
        answers: list[Any] = [raw.status_code, raw.headers.multi_items(), raw.parse().model_dump()]
        with client.chat.completions.with_streaming_response.create(**ASKED) as response:
            answers.append([response.status_code, response.read()])
        with client.chat.completions.with_streaming_response.create(**ASKED, stream=True) as response:
            answers.append(list(response.iter_lines()))
        return answers


def openai_stops_early(provider: Provider) -> Any:
    with openai_of(provider) as client:
        stream = client.chat.completions.create(**ASKED, stream=True)
        first = [next(stream).model_dump(), next(stream).model_dump()]
        stream.close()
        for chunk in client.chat.completions.create(**ASKED, stream=True):
            first.append(chunk.model_dump())
            break
        return first


def openai_uploads(provider: Provider) -> Any:
    with openai_of(provider) as client:
        with client.files.with_streaming_response.create(file=("notes.txt", b"notes"), purpose="batch") as response:
            return response.status_code, response.read()


def claude_plain(provider: Provider) -> Any:
    with claude_of(provider) as client:
        message = client.messages.create(**CLAUDE)
        return message.model_dump(), message._request_id


def claude_streams(provider: Provider) -> Any:
    with claude_of(provider) as client:
        events = [event.model_dump() for event in client.messages.create(**CLAUDE, stream=True)]
        with client.messages.stream(**CLAUDE) as stream:
            text = list(stream.text_stream)
            final = stream.get_final_message().model_dump()
        with client.messages.stream(**CLAUDE) as stream:
            half = next(iter(stream)).type
        return events, text, final, half


async def aopenai_everything(provider: Provider) -> Any:
    async with aopenai_of(provider) as client:
        chat = await client.chat.completions.create(**ASKED)
        chunks = [chunk.model_dump() async for chunk in await client.chat.completions.create(**ASKED, stream=True)]
        async with client.chat.completions.with_streaming_response.create(**ASKED, stream=True) as response:
            lines = [line async for line in response.iter_lines()]
        async for chunk in await client.chat.completions.create(**ASKED, stream=True):
            half = chunk.model_dump()
            break
        return chat.model_dump(), chunks, lines, half


async def aclaude_everything(provider: Provider) -> Any:
    async with aclaude_of(provider) as client:
        message = await client.messages.create(**CLAUDE)
        events = [event.model_dump() async for event in await client.messages.create(**CLAUDE, stream=True)]
        async with client.messages.stream(**CLAUDE) as stream:
            text = [piece async for piece in stream.text_stream]
        return message.model_dump(), events, text


async def six_at_once(provider: Provider) -> Any:
    async with aopenai_of(provider) as client:

        async def ask(number: int) -> Any:
            messages: Any = [{"role": "user", "content": f"question {number}"}]
            if number % 2:
                stream = await client.chat.completions.create(model="m", messages=messages, stream=True)
                return [chunk.choices[0].delta.content async for chunk in stream]
            answer = await client.chat.completions.create(model="m", messages=messages)
            return answer.choices[0].message.content

        return await asyncio.gather(*(ask(number) for number in range(6)))


def of_tasks(program: Callable[[Provider], Any]) -> Callable[[Provider], Any]:
    return lambda provider: asyncio.run(program(provider))


PROGRAMS: list[Callable[[Provider], Any]] = [
    openai_plain,
    openai_streams,
    openai_raw,
    openai_stops_early,
    openai_uploads,
    claude_plain,
    claude_streams,
]


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_client_sees_the_same_exchange(same: Same[Provider], program: Callable[[Provider], Any]) -> None:
    same(program)


@pytest.mark.parametrize("program", [aopenai_everything, aclaude_everything, six_at_once])
def test_an_async_client_sees_the_same_exchange(same: Same[Provider], program: Callable[[Provider], Any]) -> None:
    same(of_tasks(program))


def test_model_calls_are_of_kind_model(same: Same[Provider]) -> None:
    report = same(lambda provider: (openai_plain(provider), claude_plain(provider)), hits=3)
    assert report.counts == {"model": 3}


def flaky(failures: Iterator[int]) -> Callable[[Request], Answer]:
    return lambda request: Answer("at last", status=next(failures, 200))


def test_the_sdks_own_retries_run_again(same: Same[Provider]) -> None:
    def program(provider: Provider) -> Any:
        provider.script = flaky(iter([500, 429]))
        with openai_of(provider, max_retries=2) as client:
            raw = client.chat.completions.with_raw_response.create(**ASKED)
            return raw.retries_taken, raw.parse().model_dump()

    recorded, report = same.record(program)
    assert recorded[0] == 2 and report.counts == {"model": 3}
    before = same.counts()
    replayed, proof = same.replay(program)
    assert proof.identical, proof.difference
    assert replayed == recorded
    assert same.counts() == before


def failing(provider: Provider) -> Any:
    provider.script = lambda request: Answer("no", status=400 if "hello" in request.prompt else 200, cut=2)
    with openai_of(provider, max_retries=0) as client, claude_of(provider, max_retries=0) as claude:
        refused = openai.OpenAI(base_url="http://127.0.0.1:1", api_key="k", max_retries=0)
        slow = client.with_options(timeout=0.2)
        messages: Any = [{"role": "user", "content": "break off"}]

        def broken() -> None:
            for _ in client.chat.completions.create(model="m", messages=messages, stream=True):
                pass

        def broken_claude() -> None:
            for _ in claude.messages.create(model="m", messages=messages, stream=True, max_tokens=9):
                pass

        return [
            raised(lambda: client.chat.completions.create(**ASKED)),
            raised(lambda: claude.messages.create(**CLAUDE)),
            raised(lambda: refused.chat.completions.create(**ASKED)),
            raised(lambda: slow.chat.completions.create(**ASKED, extra_query={"delay": "2"})),
            raised(broken),
            raised(broken_claude),
        ]


def test_errors_keep_their_types_texts_and_causes(same: Same[Provider]) -> None:
    same(failing)


def test_errors_of_tasks_keep_their_types_texts_and_causes(same: Same[Provider]) -> None:
    async def body(provider: Provider) -> Any:
        seen: list[Any] = []
        async with aopenai_of(provider, max_retries=1) as client:
            for url, wrong in ((provider.url, "400"), ("http://127.0.0.1:1", "0")):
                try:
                    other = client.with_options(base_url=url)
                    await other.chat.completions.create(**ASKED, extra_query={"status": wrong})
                except openai.OpenAIError as error:
                    seen.append(chain(error))
            try:
                async with asyncio.timeout(0.2):
                    await client.chat.completions.create(**ASKED, extra_query={"delay": "2"})
            except TimeoutError as error:
                seen.append(chain(error))
        return seen

    same(of_tasks(body))


def test_tool_calls_decide_what_is_asked_next(same: Same[Provider]) -> None:
    """A whole loop of an agent: the second request is made from the first answer."""

    def script(request: Request) -> Answer:
        if "42" in request.body.decode():
            return Answer("it is 42")
        return Answer(calls=(ToolCall("lookup", {"id": 7}, id="call_1"),))

    def program(provider: Provider) -> Any:
        provider.script = script
        messages: list[Any] = [{"role": "user", "content": "what is it?"}]
        with openai_of(provider) as client:
            first = client.chat.completions.create(model="m", messages=messages).choices[0].message
            messages += [first.model_dump(), {"role": "tool", "tool_call_id": "call_1", "content": "42"}]
            return messages, client.chat.completions.create(model="m", messages=messages).choices[0].message.content

    report = same(program)
    assert report.counts == {"model": 2}


def test_a_changed_prompt_is_named_and_asked_once(same: Same[Provider]) -> None:
    """A divergence is no failure of the call: the SDK's retries must not repeat it."""
    prompt = ["approve refunds under 50"]

    def program(provider: Provider) -> Any:
        messages: Any = [{"role": "system", "content": prompt[0]}]
        with openai_of(provider, max_retries=3) as client:
            return client.chat.completions.create(model="m", messages=messages).model_dump()

    same.record(program)
    prompt[0] = "approve refunds under 500"
    before = same.counts()
    replayed, proof = same.replay(program)
    assert proof.difference is not None
    assert (proof.difference.code, proof.difference.path) == ("LS101", "body.messages[0].content")
    assert type(replayed).__name__ == "Divergence"
    assert same.counts() == before
