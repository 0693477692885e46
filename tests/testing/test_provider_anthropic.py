"""The provider speaks Anthropic's format as the real SDK reads it."""

import asyncio

import anthropic
import pytest
from anthropic.types import Message

from lockstep.testing import Answer, Provider, ToolCall

ASK = {"model": "claude-test", "max_tokens": 100, "messages": [{"role": "user", "content": "hello there"}]}
LOOKING = Answer("Let me look.", calls=(ToolCall("get_order", {"order": 452, "parts": ["a", "b"]}),))


def sync_client(provider, **options):
    return anthropic.Anthropic(base_url=provider.url, api_key="any", **{"max_retries": 0} | options)


def test_message_with_tool_use():
    with Provider([LOOKING]) as provider, sync_client(provider) as client:
        raw = client.messages.with_raw_response.create(**ASK)
    message = Message.model_validate_json(raw.http_response.content, strict=True)
    assert message.model == ASK["model"]
    assert [block.type for block in message.content] == ["text", "tool_use"]
    assert message.content[0].text == "Let me look."
    assert message.content[1].input == {"order": 452, "parts": ["a", "b"]}
    assert message.stop_reason == "tool_use"
    assert message.usage.input_tokens > 0
    assert message.usage.output_tokens > 0


def test_stream_puts_together_the_same_message():
    with Provider([LOOKING]) as provider, sync_client(provider) as client, client.messages.stream(**ASK) as stream:
        text = "".join(stream.text_stream)
        message = stream.get_final_message()
    assert text == "Let me look."
    assert message.content[1].name == "get_order"
    assert message.content[1].input == {"order": 452, "parts": ["a", "b"]}
    assert message.stop_reason == "tool_use"
    assert message.usage.output_tokens > 1


def test_raw_events_come_in_the_order_of_the_protocol():
    with Provider(["one two"]) as provider, sync_client(provider) as client:
        events = [event.type for event in client.messages.create(**ASK, stream=True)]
    assert [kind for kind in events if kind != "ping"] == [
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]


def test_async_plain_and_streaming():
    async def ask(provider):
        async with anthropic.AsyncAnthropic(base_url=provider.url, api_key="any", max_retries=0) as client:
            answers = await asyncio.gather(*(client.messages.create(**ASK) for _ in range(4)))
            async with client.messages.stream(**ASK) as stream:
                text = "".join([piece async for piece in stream.text_stream])
        return answers, text

    with Provider() as provider:
        answers, text = asyncio.run(ask(provider))
    assert {answer.content[0].text.split(":")[0] for answer in answers} == {f"answer {n}" for n in range(1, 5)}
    assert text.startswith("answer 5:")


@pytest.mark.parametrize(
    ("status", "error", "kind"),
    [
        (400, anthropic.BadRequestError, "invalid_request_error"),
        (429, anthropic.RateLimitError, "rate_limit_error"),
        (500, anthropic.InternalServerError, "api_error"),
        (529, anthropic.APIStatusError, "overloaded_error"),
    ],
)
def test_errors_have_the_shape_that_the_sdk_understands(status, error, kind):
    with Provider([Answer("scripted trouble", status=status)]) as provider, sync_client(provider) as client:
        with pytest.raises(error) as raised:
            client.messages.create(**ASK)
    assert raised.value.body["error"] == {"type": kind, "message": "scripted trouble"}
    assert raised.value.status_code == status
