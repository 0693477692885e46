"""What a model said, as plain JSON and back.

    {"type": "ai", "content": "…", "tool_calls": [{"name", "args", "id"}], "usage_metadata": {…}, …}

That is what `show` prints and what an edit gives, whole or in part: what is missing is what a message has without it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    ChatMessage,
    ChatMessageChunk,
    FunctionMessage,
    FunctionMessageChunk,
    HumanMessage,
    HumanMessageChunk,
    SystemMessage,
    SystemMessageChunk,
    ToolMessage,
    ToolMessageChunk,
)
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult

from lockstep.errors import Code, LockstepError
from lockstep.log.model import Value
from lockstep.session import snapshot
from lockstep_langgraph import calls

_WHOLE: dict[str, Any] = {
    "ai": AIMessage, "human": HumanMessage, "system": SystemMessage, "tool": ToolMessage, "chat": ChatMessage,
    "function": FunctionMessage,
}  # fmt: skip
_CHUNKS: dict[str, Any] = {
    "ai": AIMessageChunk, "human": HumanMessageChunk, "system": SystemMessageChunk, "tool": ToolMessageChunk,
    "chat": ChatMessageChunk, "function": FunctionMessageChunk,
}  # fmt: skip
_TYPES = {cls: name for table in (_WHOLE, _CHUNKS) for name, cls in table.items()}
_ROLES = {"assistant": "ai", "model": "ai", "user": "human", "developer": "system"}
# Fields of a message that a provider is not told of: what LangChain knows of an earlier answer, and its own ids.
_UNSENT = frozenset({"id", "response_metadata", "usage_metadata", "chunk_position", "artifact", "tool_call_chunks"})
_INFO, _OUTPUT, _CHOICES = "generation_info", "llm_output", "generations"
_CALLS = ("tool_calls", "invalid_tool_calls", "tool_call_chunks")
_KINDS = {"tool_calls": "tool_call", "invalid_tool_calls": "invalid_tool_call", "tool_call_chunks": "tool_call_chunk"}


def told(message: BaseMessage) -> dict[str, Value]:
    """A message as data; of a class of somebody's own, all that it is."""
    name = _TYPES.get(type(message))
    if name is None:
        return {"type": message.type, "object": snapshot.to_value(message)}
    found: dict[str, Value] = {"type": name, "content": _data(message.content)}
    fields = message.__dict__ if not message.__pydantic_extra__ else {**message.__dict__, **message.__pydantic_extra__}
    for field, value in fields.items():
        if field in ("type", "content") or value is None or value is False or value in ([], {}):
            continue
        found[field] = _called(value) if field in _CALLS else _data(value)
    if found.get("status") == "success":
        del found["status"]
    return found


def asked(messages: Sequence[Any]) -> list[Value]:
    """The messages that a model is asked with, as far as it is told of them."""
    found: list[Value] = []
    for message in messages:
        if not isinstance(message, BaseMessage):
            found.append(calls.inert(message))
            continue
        name = _TYPES.get(type(message), message.type)
        about: dict[str, Value] = {"type": name, "content": calls.inert(message.content)}
        for field, value in message.__dict__.items():
            if field in ("type", "content") or field in _UNSENT or not value or value == "success":
                continue
            about[field] = _called(value) if field in _CALLS else calls.inert(value)
        found.append(about)
    return found


def key(request: dict[str, Value]) -> Value:
    """A request with the ids of tool calls numbered by their first appearance: a model gives new ones each time."""
    ids: dict[str, Value] = {}
    messages = request.get("messages")
    for message in messages if isinstance(messages, list) else ():
        if isinstance(message, dict):
            for field in _CALLS:
                made = message.get(field)
                for call in made if isinstance(made, list) else ():
                    name = call.get("id") if isinstance(call, dict) else None
                    if isinstance(name, str) and name not in ids:
                        ids[name] = f"call {len(ids) + 1}"
    return {**request, "messages": _renamed(messages, ids)} if ids else request


def _renamed(value: Any, ids: Mapping[str, Value]) -> Value:
    if isinstance(value, str):
        return ids.get(value, value)
    if isinstance(value, list):
        return [_renamed(item, ids) for item in value]
    if isinstance(value, dict):
        return {name: _renamed(item, ids) for name, item in value.items()}
    plain: Value = value
    return plain


def _called(made: Any) -> Value:
    """Tool calls without the mark that says that they are."""
    if not isinstance(made, list):
        return _data(made)
    return [
        {name: _data(item) for name, item in call.items() if name != "type" and item is not None}
        if isinstance(call, dict)
        else _data(call)
        for call in made
    ]


def _data(value: Any) -> Value:
    return value if type(value) is str else snapshot.to_value(value)


def of_result(result: ChatResult) -> Value:
    """A model's whole answer: its message, or all that it gives to choose from."""
    choices: list[dict[str, Value]] = []
    for generation in result.generations:
        said = told(generation.message)
        if generation.generation_info:
            said[_INFO] = snapshot.to_value(generation.generation_info)
        choices.append(said)
    found: dict[str, Value] = choices[0] if len(choices) == 1 else {_CHOICES: [*choices]}
    if result.llm_output is not None:
        found[_OUTPUT] = snapshot.to_value(result.llm_output)
    return found


def result(value: Value) -> ChatResult:
    """The reverse. Raises LockstepError LS110 where it is no message."""
    said = _fields(value)
    output = said.pop(_OUTPUT, None)
    choices = said.get(_CHOICES)
    each = choices if isinstance(choices, list) else [said]
    return ChatResult(
        generations=[_generation(choice) for choice in each],
        llm_output=snapshot.from_value(output) if output is not None else None,
    )


def _generation(value: Value) -> ChatGeneration:
    said = _fields(value)
    info = said.pop(_INFO, None)
    return ChatGeneration(
        message=message(said), generation_info=snapshot.from_value(info) if info is not None else None
    )  # fmt: skip


def of_chunk(chunk: ChatGenerationChunk) -> dict[str, Value]:
    """One piece of an answer."""
    said = told(chunk.message)
    if chunk.generation_info:
        said[_INFO] = snapshot.to_value(chunk.generation_info)
    return said


def chunk(value: Value) -> ChatGenerationChunk:
    """The reverse."""
    said = _fields(value)
    info = said.pop(_INFO, None)
    piece: Any = message(said, _CHUNKS)
    return ChatGenerationChunk(message=piece, generation_info=snapshot.from_value(info) if info is not None else None)


def whole_chunk(value: Value) -> ChatGenerationChunk:
    """A whole answer as the only piece of a streamed one."""
    said = _fields(value)
    said.pop(_OUTPUT, None)
    choices = said.get(_CHOICES)
    if isinstance(choices, list):
        said = _fields(choices[0])
    made = said.pop("tool_calls", None)
    if isinstance(made, list) and made and "tool_call_chunks" not in said:
        said["tool_call_chunks"] = [
            {"name": call.get("name"), "args": _json(call), "id": call.get("id") or f"call_{n}", "index": n}
            for n, call in enumerate(map(_fields, made))
        ]
    if _kind(said) == "ai":
        said.setdefault("chunk_position", "last")
    return chunk(said)


def _json(call: dict[str, Value]) -> str:
    args = call.get("args", call.get("arguments"))
    return args if isinstance(args, str) else json.dumps(snapshot.from_value(args) if args is not None else {})


def message(value: Value, classes: Mapping[str, Any] = _WHOLE) -> BaseMessage:
    """The message of this data. Raises LockstepError LS110."""
    said = _fields(value)
    if "object" in said:
        made: BaseMessage = snapshot.from_value(said["object"])
        return made
    name = _kind(said)
    cls = classes.get(name)
    if cls is None:
        raise _wrong(f"of type {name!r}")
    fields = {field: snapshot.from_value(item) for field, item in said.items() if field not in ("type", "role")}
    fields.setdefault("content", "")
    if name == "chat":
        fields["role"] = said.get("role", "assistant")
    for field in _CALLS:
        if isinstance(fields.get(field), list):
            fields[field] = [_call(call, field, number) for number, call in enumerate(fields[field])]
    try:
        found: BaseMessage = cls(**fields)
    except ValueError as problem:  # pydantic's
        raise _wrong(str(problem)) from None
    return found


def _kind(said: Mapping[str, Value]) -> str:
    name = str(said.get("type") or said.get("role") or "ai")
    return _ROLES.get(name, name.removesuffix("MessageChunk").lower() or "ai")


def _call(call: Any, field: str, number: int) -> dict[str, Any]:
    if not isinstance(call, dict):
        raise _wrong(f"{field}[{number}] is {call!r}")
    fields = {name: item for name, item in call.items() if name != "arguments"}
    if "args" not in fields:
        fields["args"] = call.get("arguments", {} if field == "tool_calls" else None)
    if field == "tool_calls":
        if isinstance(fields["args"], str):
            try:
                fields["args"] = json.loads(fields["args"])
            except ValueError:
                raise _wrong(f"{field}[{number}].args is no JSON: {fields['args']!r}") from None
        fields.setdefault("id", f"call_{number}")
    return {"name": None, "id": None, **fields, "type": _KINDS[field]}


def _fields(value: Value) -> dict[str, Value]:
    if not isinstance(value, dict):
        raise _wrong(f"but {type(value).__name__}")
    return dict(value)


def _wrong(what: str) -> LockstepError:
    return LockstepError(Code.UNSERVABLE, f"a model's answer is a message, not {what}")
