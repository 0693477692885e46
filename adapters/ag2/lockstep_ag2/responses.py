"""A model's whole answer as `show` prints it and an edit gives it, and the answer that this makes.

    {"type": "ai", "content": "…", "tool_calls": [{"name", "args", "id"}],
     "usage_metadata": {"input_tokens", "output_tokens", …}, "response_metadata": {"model_name", "finish_reason", …}}

An answer that holds more than these fields say stands with all that it is, under `object`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ag2.events import ModelMessage, ModelResponse, ToolCallEvent, ToolCallsEvent, Usage

from lockstep.log.model import Value
from lockstep.session import snapshot
from lockstep_ag2 import events

_USAGE = {
    "input_tokens": "prompt_tokens", "output_tokens": "completion_tokens", "total_tokens": "total_tokens",
    "cache_read_tokens": "cache_read_input_tokens", "cache_creation_tokens": "cache_creation_input_tokens",
    "reasoning_tokens": "thinking_tokens",
}  # fmt: skip
_ABOUT = {"model_name": "model", "provider": "provider", "finish_reason": "finish_reason", "id": "response_id"}
OBJECT = "object"


def told(response: ModelResponse) -> Value:
    """The answer as data. Raises StoreError LS207 where it holds what is no data."""
    said = events.answer(response)
    used = {
        name: value for name, field in _USAGE.items() if (value := getattr(response.usage, field, None)) is not None
    }
    about = {name: value for name, field in _ABOUT.items() if (value := getattr(response, field, None)) is not None}
    if used:
        said["usage_metadata"] = used
    if about:
        said["response_metadata"] = about
    whole = events.dump(response)
    try:
        same = events.dump(made(said)) == whole
    except Exception:  # of a class, or with fields, that this does not know: all of it is stored then
        same = False
    if not same:
        said[OBJECT] = whole
        said["$said"] = _said(said)
    return said


def made(said: Value) -> ModelResponse:
    """The answer of this data, which may be an edited one. Raises LockstepError LS110 where it is none."""
    if isinstance(said, str):
        said = {"content": said}
    if not isinstance(said, dict):
        raise events.unservable(f"a model's answer is a message, not {type(said).__name__}")
    whole = said.get(OBJECT)
    if whole is not None and said.get("$said") == _said(said):
        found = events.load(whole)
        assert isinstance(found, ModelResponse)
        return found
    content, metadata = said.get("content"), said.get("metadata")
    calls = said.get("tool_calls")
    text = _text(content)
    message = ModelMessage(text) if text or (not calls and content is not None and content != "") else None
    if message is not None and metadata:
        message.metadata = snapshot.from_value(metadata)
    used, about = _map(said.get("usage_metadata")), _map(said.get("response_metadata"))
    return ModelResponse(
        message,
        tool_calls=ToolCallsEvent([_call(each, number) for number, each in enumerate(_list(calls))]),
        usage=Usage(**{field: used[name] for name, field in _USAGE.items() if name in used}),
        **{field: about[name] for name, field in _ABOUT.items() if name in about},
    )


def _said(said: Mapping[str, Value]) -> Value:
    """What of a message an edit would change: where it is as it was, the whole object is what comes back."""
    return [said.get("content"), said.get("tool_calls")]


def _call(value: Any, number: int) -> ToolCallEvent:
    form = value.get("function", value) if isinstance(value, dict) else value
    if not isinstance(form, dict) or not isinstance(form.get("name"), str):
        raise events.unservable(f'tool_calls[{number}] is {{"name", "args", "id"}}, not {value!r}')
    arguments = form.get("args", form.get("arguments", {}))
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    call = ToolCallEvent(form["name"], id=str(value.get("id") or f"call_{number}"), arguments=text)
    if vendor := form.get("vendor_metadata"):
        call.vendor_metadata = snapshot.from_value(vendor)
    return call


def _text(content: Any) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    if isinstance(content, list):
        return "\n".join(str(block.get("text", "")) for block in content if isinstance(block, dict))
    raise events.unservable(f"the content of a model's answer is a text, not {content!r}")


def _map(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
