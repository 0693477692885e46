"""Model calls: what is sent to the client, and what it says, with all that it sends on the stream meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ag2.events import ModelMessage

from lockstep.log.model import Status, Value
from lockstep.session.call import failed
from lockstep.session.lanes import ours
from lockstep_ag2 import calls, events, responses, strands
from lockstep_ag2.calls import Running

KIND = "model"


def ending(client: Any) -> Callable[..., Any]:
    """The end of a chain that asks the client, or is answered."""

    async def asked(said: Sequence[Any], context: Any) -> Any:
        call = _asked(client, said, context)
        if call is None:
            return await client(said, context)
        if call.held:
            await call.aready()
        if not call.live:
            return await _served(call, context)
        try:
            with Running(call, context.stream.id):
                response = await client(said, context)
        except BaseException as error:
            failed(call, error)
            raise
        call.end(Status.OK, calls.kept(call, "a model's answer", lambda: responses.told(response)))
        return response

    return asked


async def _served(call: Any, context: Any) -> Any:
    silent = True
    async for piece in calls.taken(call):
        if piece.status is None:
            silent = False
            await calls.again(call, piece, context)
            continue
        if piece.status is Status.ERROR:
            raise calls.revived(call, piece)
        response = calls.given(call, piece.value, responses.made)
        if silent and response.message is not None:
            # An edited answer: clients send it on the stream before they return it.
            await context.send(ours(ModelMessage)(response.message.content))
        return response
    raise AssertionError("a call's pieces end with its end")


def _asked(client: Any, said: Sequence[Any], context: Any) -> Any:
    call = calls.opened(KIND)
    if call is None:
        return None
    try:
        name = _name(client, context)
        request = _request(client, said, context)
        key = _key(request)
    except Exception as error:
        if not call.live:
            raise
        calls.fault("a model call", error)
        return None
    call.ask(name, request, key)
    return call


def _name(client: Any, context: Any) -> str:
    """The model's name as the client has it, or its config, or else what the client is."""
    plain = client.func if isinstance(client, partial) else client
    options = getattr(plain, "_create_options", None)
    name = options.get("model") if isinstance(options, dict) else None
    if not isinstance(name, str):
        from ag2.utils import MODEL_CONFIG_CONTEXT_DEPENDENCY_KEY

        config = context.dependencies.get(MODEL_CONFIG_CONTEXT_DEPENDENCY_KEY)
        try:
            name = config.model
        except (AttributeError, NotImplementedError):
            name = None
    return name if isinstance(name, str) and name else type(plain).__name__


def _request(client: Any, said: Sequence[Any], context: Any) -> dict[str, Value]:
    strand = strands.running()
    names = strand.turn.names if strand is not None else None
    if names is not None:
        for event in said:
            names.learn(event)
    system: list[Value] = [{"type": "system", "content": str(text)} for text in context.prompt]
    messages = events.messages(said)
    request: dict[str, Value] = {"messages": [*system, *(names.rename(messages) if names else messages)]}  # type: ignore[misc]
    given = client.keywords if isinstance(client, partial) else {}
    tools = [events.schema(tool) for tool in given.get("tools") or ()]
    if tools:
        request["tools"] = tools
    response = given.get("response_schema")
    if response is not None:
        request["response_format"] = {
            "name": str(getattr(response, "name", "")), "schema": events.schema(getattr(response, "json_schema", None)),
            "system_prompt": str(getattr(response, "system_prompt", "") or ""),
        }  # fmt: skip
    return request


def _key(request: dict[str, Value]) -> Value:
    """A request with the ids of tool calls numbered by their first appearance: a model gives new ones each time."""
    ids: dict[str, Value] = {}
    messages: Any = request["messages"]
    for message in messages:
        for call in message.get("tool_calls") or ():
            name = call.get("id")
            if isinstance(name, str) and name not in ids:
                ids[name] = f"call {len(ids) + 1}"
    if not ids:
        return request
    return {**request, "messages": [_renamed(message, ids) for message in messages]}


def _renamed(message: dict[str, Value], ids: dict[str, Value]) -> Value:
    told = dict(message)
    if (of := told.get("tool_call_id")) in ids:
        told["tool_call_id"] = ids[str(of)]
    made = told.get("tool_calls")
    if isinstance(made, list):
        told["tool_calls"] = [{**call, "id": ids.get(str(call["id"]), call["id"])} for call in made]  # type: ignore[dict-item, index, call-overload]
    return told
