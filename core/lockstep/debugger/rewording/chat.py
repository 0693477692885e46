"""OpenAI's chat completions and what is compatible, legacy completions too."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lockstep.debugger.dialects.parts import Message, ToolCall, at
from lockstep.debugger.rewording import said as saying
from lockstep.debugger.rewording.said import Asked
from lockstep.debugger.rewording.streams import Event

_WORDS = ("tool_calls", "stop")
_OLD = ("function_call", "stop")
_DONE = "[DONE]"


def whole(body: Any, said: Message, before: Message, asked: Asked) -> Any:
    """A plain answer with another message in its first choice."""
    if body is None:
        body = {**_frame(asked, "chat.completion"), "choices": [{"index": 0, "message": {"role": "assistant"}}]}
    choice = at(body, "choices", 0)
    if not isinstance(choice, dict):
        raise saying.unlike("openai chat")
    if not isinstance(choice.get("message"), dict):
        if said.tool_calls or "text" not in choice:
            raise saying.unlike("openai completions")
        made: Any = {**choice, "text": said.text}
    else:
        old = isinstance(choice["message"].get("function_call"), dict)
        word = saying.finish(
            choice.get("finish_reason"), bool(before.tool_calls), bool(said.tool_calls), _OLD if old else _WORDS
        )
        made = {**choice, "message": _message(choice["message"], said, before), "finish_reason": word}
    return {**body, "choices": [made, *body["choices"][1:]]}


def _message(recorded: dict[str, Any], said: Message, before: Message) -> dict[str, Any]:
    made = dict(recorded)
    if said.text != before.text or "content" not in made:
        made["content"] = said.text or None
        if isinstance(made.get("refusal"), str):
            made["refusal"] = None
    if isinstance(made.get("function_call"), dict):
        if len(said.tool_calls) > 1:
            raise saying.unlike("one function call at a time")
        del made["function_call"]
        for call in said.tool_calls:
            made["function_call"] = {"name": call.name, "arguments": call.arguments}
    elif said.tool_calls:
        given = made.get("tool_calls")
        calls = given if isinstance(given, list) else []
        named = saying.named(said.tool_calls, "call_")
        made["tool_calls"] = [_call(calls[n] if n < len(calls) else None, call) for n, call in enumerate(named)]
    else:
        made.pop("tool_calls", None)
    return made


def _call(recorded: Any, call: ToolCall) -> dict[str, Any]:
    base = recorded if isinstance(recorded, dict) else {}
    if isinstance(base.get("custom"), dict):
        return {**base, "id": call.id, "custom": {**base["custom"], "name": call.name, "input": call.arguments}}
    function = {**(at(base, "function") or {}), "name": call.name, "arguments": call.arguments}
    return {"type": "function", **base, "id": call.id, "function": function}


def stream(events: list[Event], said: Message, before: Message, asked: Asked) -> list[Event]:
    """A streamed answer with another message: one piece of text, and one for each call."""
    first = next((event for event in events if isinstance(event.data, dict) and "choices" in event.data), None)
    frame = _frame(asked, "chat.completion.chunk")
    if first is not None:
        frame = {name: value for name, value in first.data.items() if name not in ("choices", "usage")}
    legacy = asked.url.partition("?")[0].endswith("/completions") and not asked.url.partition("?")[0].endswith(
        "/chat/completions"
    )
    if legacy and said.tool_calls:
        raise saying.unlike("openai completions")
    made: list[Event] = []
    finished: dict[str, Any] | None = None
    done = [event for event in events if event.data == _DONE]
    for event in events:
        if not isinstance(event.data, dict) or not isinstance(event.data.get("choices"), list):
            if event not in done and not (isinstance(event.data, dict) and "error" in event.data):
                made.append(event)
            continue
        choices = event.data["choices"]
        left = [choice for choice in (_stripped(choice) for choice in choices) if choice is not None]
        if at(choices, 0, "index") in (0, None) and (word := at(choices, 0, "finish_reason")) and finished is None:
            finished = {"finish_reason": word, "at": len(made)}
        if left or not choices:
            made.append(Event(event.name, {**event.data, "choices": left}))
    had, has = bool(before.tool_calls), bool(said.tool_calls)
    word = saying.finish(finished and finished["finish_reason"], had, has, _WORDS)
    place = len(made) if finished is None else finished["at"]
    name = "" if first is None else first.name
    pieces = [Event(name, {**frame, "choices": [piece]}) for piece in _pieces(said, made, legacy=legacy)]
    if finished is None:
        ending = {"index": 0, "delta": {}, "finish_reason": word} if not legacy else _legacy("", word)
        pieces.append(Event(name, {**frame, "choices": [ending]}))
    elif word != finished["finish_reason"]:
        choices = [{**choice, "finish_reason": word} if choice.get("index", 0) == 0 else choice
                   for choice in made[place].data["choices"]]  # fmt: skip
        made[place] = Event(name, {**made[place].data, "choices": choices})
    return [*made[:place], *pieces, *made[place:], *(done or [Event("", _DONE)])]


def _stripped(choice: Any) -> Any:
    """A choice of a chunk without what it says; None where nothing is left. Other choices than the first stay."""
    if not isinstance(choice, dict) or choice.get("index", 0) != 0:
        return choice
    delta = choice.get("delta")
    left = dict(delta) if isinstance(delta, dict) else {}
    for name in ("tool_calls", "function_call", "refusal"):
        left.pop(name, None)
    if left.get("content"):
        left["content"] = ""
    more = any(value not in (None, "", []) for value in left.values())
    if not more and not choice.get("finish_reason"):
        return None
    if "text" in choice:
        return {**choice, "text": ""}
    return {**choice, "delta": left}


def _pieces(said: Message, made: list[Event], *, legacy: bool) -> Iterator[dict[str, Any]]:
    if legacy:
        yield _legacy(said.text, None)
        return
    begun = any(at(event.data, "choices", 0, "delta", "role") for event in made)
    role = {} if begun else {"role": "assistant"}
    if said.text or (role and not said.tool_calls):
        yield {"index": 0, "delta": {**role, "content": said.text}, "finish_reason": None}
        role = {}
    for n, call in enumerate(saying.named(said.tool_calls, "call_")):
        yield {"index": 0, "delta": {**role, "tool_calls": [{"index": n, **_call(None, call)}]}, "finish_reason": None}
        role = {}


def _legacy(text: str, word: Any) -> dict[str, Any]:
    return {"index": 0, "text": text, "logprobs": None, "finish_reason": word}


def _frame(asked: Asked, kind: str) -> dict[str, Any]:
    return {"id": "chatcmpl-edited", "object": kind, "created": 0, "model": asked.model}
