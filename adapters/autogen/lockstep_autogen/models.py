"""Models: each call of a `ChatCompletionClient` that an agent, a selector or an orchestrator has is an effect.

What is recorded is what the agent asks its client, and what that answers: `CreateResult` as data, of a stream also each
of its chunks. What the client asks its provider is recorded beside it where a session is on.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any

from autogen_core.models import CreateResult, RequestUsage

from lockstep.log.model import Status, Value
from lockstep.session.call import failed
from lockstep.session.native import answers
from lockstep.session.native.answers import Question, Running
from lockstep_autogen.calls import made
from lockstep_autogen.canonical import inert
from lockstep_autogen.layout import MODEL
from lockstep_autogen.proxies import Proxy, plain

# What a request has unless its caller says otherwise.
_USUAL: Mapping[str, Any] = {"tools": [], "tool_choice": "auto", "json_output": None, "extra_create_args": {}}
_NO_PART = frozenset({"cancellation_token"})


class Model(Proxy):
    """Stands for a client in one agent."""

    __slots__ = ()

    async def create(self, *args: Any, **options: Any) -> Any:
        """See `ChatCompletionClient.create`."""
        client, place = self._lockstep_inner, self._lockstep_place
        call = place.asked(MODEL, lambda: question(client, args, options))
        if call is None:
            return await client.create(*args, **options)
        if call.held:
            await call.aready()
        if not call.live:
            return made(call, result_of, await answers.answer(call))
        try:
            with Running(call):
                result = await client.create(*args, **options)
        except BaseException as error:
            place.broke(error)
            failed(call, error)
            raise
        call.end(Status.OK, _value(place, result))
        return result

    async def create_stream(self, *args: Any, **options: Any) -> AsyncGenerator[Any, None]:
        """See `ChatCompletionClient.create_stream`."""
        client, place = self._lockstep_inner, self._lockstep_place
        call = place.asked(MODEL, lambda: question(client, args, options))
        if call is not None and call.held:
            await call.aready()
        if call is not None and not call.live:
            try:
                async for piece in answers.taken(call):
                    if piece.status is None:
                        yield piece.value
                    elif piece.value is not None:
                        yield made(call, result_of, piece.value)
            finally:
                call.end(Status.CLOSED)
            return
        stream = client.create_stream(*args, **options)
        if call is None:
            async for item in stream:
                yield item
            return
        try:
            while True:
                try:
                    with Running(call):
                        item = await anext(stream)
                except StopAsyncIteration:
                    break
                except BaseException as error:
                    place.broke(error)
                    failed(call, error)
                    raise
                if isinstance(item, str):
                    call.part(str(item))
                else:
                    call.end(Status.OK, _value(place, item))
                yield item
            call.end(Status.OK)
        finally:
            call.end(Status.CLOSED)
            with Running(call):
                await answers.close(stream)


def question(client: Any, args: Sequence[Any], options: Mapping[str, Any]) -> Question:
    """What a client is asked, as data."""
    given = {**dict(zip(("messages",), args, strict=False)), **options}
    request: dict[str, Value] = {"messages": [inert(plain(each)) for each in given.pop("messages", ())]}
    for name, value in given.items():
        if name not in _NO_PART and not (name in _USUAL and _is_usual(value, _USUAL[name])):
            request[name] = _option(name, value)
    return Question(name_of(client), request, request)


def _is_usual(value: Any, usual: Any) -> bool:
    return value is None or value == usual or (isinstance(usual, list) and not value)


def _option(name: str, value: Any) -> Value:
    if name == "tools":
        return [inert(_schema(tool)) for tool in value]
    if name == "tool_choice":
        return inert(value if isinstance(value, str) else {"tool": getattr(value, "name", value)})
    return inert(value)


def _schema(tool: Any) -> Any:
    return tool if isinstance(tool, Mapping) else tool.schema


def name_of(client: Any) -> str:
    """The model's name, as far as the client knows it; else the client's class."""
    client = plain(client)
    for holder in ("_create_args", "_raw_config"):
        found = vars(client).get(holder) if hasattr(client, "__dict__") else None
        if isinstance(found, Mapping) and isinstance(found.get("model"), str):
            return str(found["model"])
    for attribute in ("_model_name", "model_name", "_model", "model"):
        found = vars(client).get(attribute) if hasattr(client, "__dict__") else None
        if isinstance(found, str) and found:
            return str(found)
    return type(client).__name__


def result_of(value: Value) -> Any:
    """The answer that a recorded value is. What was edited may be a text, or leave out what is no matter."""
    if isinstance(value, str):
        value = {"content": value}
    if not isinstance(value, dict):
        raise TypeError("a model's answer is a text, or an object with its content")
    calls_tools = isinstance(value.get("content"), list)
    usual: dict[str, Any] = {
        "finish_reason": "function_calls" if calls_tools else "stop",
        "usage": RequestUsage(prompt_tokens=0, completion_tokens=0),
        "cached": False,
    }
    return CreateResult.model_validate({**usual, **value})


def _value(place: Any, result: Any) -> Value:
    try:
        found: Value = inert(result.model_dump(mode="json"))
    except Exception as error:
        place.fault("a model's answer", error)
        return answers.unstorable(error)
    return found
