"""The provider speaks OpenAI's formats as the real SDK reads them."""

import asyncio
import json

import openai
import pytest
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.responses import Response

from lockstep.testing import Answer, Provider, ToolCall

HELLO = [{"role": "user", "content": "hello there"}]
TOOLS = [{"type": "function", "function": {"name": "get_order", "parameters": {"type": "object", "properties": {}}}}]
TWO_CALLS = Answer(
    "Let me look.", calls=(ToolCall("get_order", {"order": 452}), ToolCall("get_policy", {"topic": "refunds"}))
)


def sync_client(provider, **options):
    return openai.OpenAI(base_url=f"{provider.url}/v1", api_key="any", **{"max_retries": 0} | options)


def async_client(provider, **options):
    return openai.AsyncOpenAI(base_url=f"{provider.url}/v1", api_key="any", **{"max_retries": 0} | options)


def joined_calls(chunks):
    """Name and arguments of the streamed tool calls, by index."""
    calls = {}
    for chunk in chunks:
        for choice in chunk.choices:
            for part in choice.delta.tool_calls or ():
                name, arguments = calls.get(part.index, ("", ""))
                calls[part.index] = (name + (part.function.name or ""), arguments + (part.function.arguments or ""))
    return [(name, json.loads(arguments)) for _, (name, arguments) in sorted(calls.items())]


def test_chat_answer_and_usage():
    with Provider(["The order is on its way."]) as provider, sync_client(provider) as client:
        raw = client.chat.completions.with_raw_response.create(model="gpt-4o", messages=HELLO)
    answer = ChatCompletion.model_validate_json(raw.content, strict=True)
    assert answer.model == "gpt-4o"
    assert answer.choices[0].message.content == "The order is on its way."
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens
    assert answer.usage.completion_tokens == 6
    assert raw.parse()._request_id.startswith("req_")


def test_chat_tool_calls_come_back_as_the_model_asked_for_them():
    with Provider([TWO_CALLS, "Done."]) as provider, sync_client(provider) as client:
        first = client.chat.completions.create(model="m", messages=HELLO, tools=TOOLS).choices[0]
        results = [{"role": "tool", "tool_call_id": call.id, "content": "ok"} for call in first.message.tool_calls]
        conversation = [*HELLO, first.message, *results]
        second = client.chat.completions.create(model="m", messages=conversation, tools=TOOLS).choices[0]
    assert first.finish_reason == "tool_calls"
    asked = [(call.function.name, json.loads(call.function.arguments)) for call in first.message.tool_calls]
    assert asked == [("get_order", {"order": 452}), ("get_policy", {"topic": "refunds"})]
    assert len({call.id for call in first.message.tool_calls}) == 2
    assert (second.message.content, second.finish_reason) == ("Done.", "stop")
    assert provider.seen[1].json["messages"][2]["tool_call_id"] == first.message.tool_calls[0].id


def test_chat_stream_has_text_tool_calls_and_one_usage_when_it_is_asked_for():
    options = {"model": "m", "messages": HELLO, "stream": True}
    with Provider([TWO_CALLS, TWO_CALLS]) as provider, sync_client(provider) as client:
        chunks = list(client.chat.completions.create(**options, stream_options={"include_usage": True}))
        without = list(client.chat.completions.create(**options))
    for chunk in chunks + without:
        ChatCompletionChunk.model_validate(chunk.model_dump(), strict=True)
    text = "".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices)
    assert text == "Let me look."
    assert joined_calls(chunks) == [("get_order", {"order": 452}), ("get_policy", {"topic": "refunds"})]
    assert [chunk.usage is not None for chunk in chunks] == [False] * (len(chunks) - 1) + [True]
    assert chunks[-1].choices == []
    assert chunks[-2].choices[0].finish_reason == "tool_calls"
    assert all(chunk.usage is None and chunk.choices for chunk in without)


def test_the_sdk_helper_for_streams_puts_the_same_message_together():
    with Provider([TWO_CALLS]) as provider, sync_client(provider) as client:
        with client.chat.completions.stream(model="m", messages=HELLO) as stream:
            stream.until_done()
            message = stream.get_final_completion().choices[0].message
    assert message.content == "Let me look."
    assert [call.function.name for call in message.tool_calls] == ["get_order", "get_policy"]


def test_responses_answer_and_stream_agree():
    with Provider([TWO_CALLS, TWO_CALLS]) as provider, sync_client(provider) as client:
        raw = client.responses.with_raw_response.create(model="m", input="hello there", instructions="Be kind.")
        with client.responses.stream(model="m", input="hello there") as stream:
            events = list(stream)
            streamed = stream.get_final_response()
    plain = Response.model_validate_json(raw.content, strict=True)
    assert plain.instructions == "Be kind."
    for response in (plain, streamed):
        assert response.status == "completed"
        assert response.output_text == "Let me look."
        calls = [(item.name, json.loads(item.arguments)) for item in response.output if item.type == "function_call"]
        assert calls == [("get_order", {"order": 452}), ("get_policy", {"topic": "refunds"})]
        assert response.usage.total_tokens == response.usage.input_tokens + response.usage.output_tokens
    assert [event.sequence_number for event in events] == list(range(len(events)))
    deltas = "".join(event.delta for event in events if event.type == "response.output_text.delta")
    assert deltas == "Let me look."
    assert (events[0].type, events[-1].type) == ("response.created", "response.completed")


def test_async_calls_side_by_side_get_answers_of_their_own():
    async def ask(provider):
        async with async_client(provider) as client:
            answers = await asyncio.gather(
                *(client.chat.completions.create(model="m", messages=HELLO) for _ in range(6))
            )
            stream = await client.chat.completions.create(model="m", messages=HELLO, stream=True)
            chunks = [chunk async for chunk in stream]
            response = await client.responses.create(model="m", input="hello")
        return answers, chunks, response

    with Provider(jitter=(0.0, 0.01)) as provider:
        answers, chunks, response = asyncio.run(ask(provider))
    texts = {answer.choices[0].message.content for answer in answers}
    assert {text.split(":")[0] for text in texts} == {f"answer {n}" for n in range(1, 7)}
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks).startswith("answer 7:")
    assert response.output_text.startswith("answer 8:")
    assert provider.requests == 8


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, openai.BadRequestError),
        (401, openai.AuthenticationError),
        (404, openai.NotFoundError),
        (429, openai.RateLimitError),
        (500, openai.InternalServerError),
    ],
)
def test_errors_have_the_shape_that_the_sdk_understands(status, error):
    with Provider([Answer("scripted trouble", status=status)]) as provider, sync_client(provider) as client:
        with pytest.raises(error) as raised:
            client.chat.completions.create(model="m", messages=HELLO)
    assert raised.value.body["message"] == "scripted trouble"
    assert raised.value.status_code == status


def test_the_sdk_retries_after_a_429():
    script = [Answer(status=429, headers=(("retry-after-ms", "1"),)), "second try"]
    with Provider(script) as provider, sync_client(provider, max_retries=1) as client:
        answer = client.chat.completions.create(model="m", messages=HELLO)
    assert answer.choices[0].message.content == "second try"
    assert [request.header("x-stainless-retry-count") for request in provider.seen] == ["0", "1"]


def test_a_stream_can_break_off():
    with Provider([Answer("one two three four", cut=3)]) as provider, sync_client(provider) as client:
        got = []
        # openai 2 lets the client's own error through, openai 3 wraps it: both are no OpenAI answer.
        with pytest.raises(Exception, match=r"peer closed connection|Connection error"):
            for chunk in client.chat.completions.create(model="m", messages=HELLO, stream=True):
                got.append(chunk.choices[0].delta.content)
    assert got == ["", "one", " two"]
