"""A model's message as an edit gives it, and what it becomes among the blocks that an API makes of a message."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec

from lockstep.debugger import bodies
from lockstep.debugger.dialects.parts import Message, ToolCall, dumped, string
from lockstep.errors import Code, EditError
from lockstep.log.model import Value

_FIELDS = frozenset({"role", "content", "tool_calls"})
_CALL = frozenset({"name", "arguments", "id"})


class Asked(msgspec.Struct, frozen=True):
    """What a rewriter has to know of the request: its URL, its body, and the model that it names."""

    url: str
    body: Any
    model: str


class Form(msgspec.Struct, frozen=True):
    """One API's blocks. `text` and `call` are None of a block that is none; the others make one, of a recorded block
    (None: anew). `mark`: how a block of another kind stands in the text that is shown, "" where it does not."""

    text: Callable[[Any], str | None]
    call: Callable[[Any], ToolCall | None]
    with_text: Callable[[Any, str], Any]
    with_call: Callable[[Any, ToolCall], Any]
    mark: Callable[[Any], str]


def read(value: Value, before: Message) -> Message:
    """The message that an edit asks for. Of what is as it was, the recorded wording stays. Raises EditError LS213."""
    if isinstance(value, str):
        value = {"content": value}
    if not isinstance(value, dict) or not value.keys() <= _FIELDS or not value:
        raise _wrong(
            'a model\'s message is {"role", "content", "tool_calls": [{"name", "arguments", "id"}]}; the answer that '
            'it came in is {"status", "headers", "body"}'
        )
    role = value.get("role", before.role)
    if role not in ("assistant", "model", before.role):
        raise _wrong(f"a model's message is the assistant's, not of {role!r}")
    calls = value.get("tool_calls")
    if calls is not None and not isinstance(calls, list):
        raise _wrong("tool_calls is a list")
    recorded = before.tool_calls
    made = [_call(each, recorded[n] if n < len(recorded) else None) for n, each in enumerate(calls or ())]
    return Message(str(role), _content(value.get("content")), tuple(made))


def _content(content: Value) -> str:
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else []
    texts = [block["text"] for block in blocks if isinstance(block, dict) and isinstance(block.get("text"), str)]
    if not blocks or len(texts) != len(blocks):
        raise _wrong("the content of a model's message is a text")
    return "\n".join(map(str, texts))


def _call(value: Value, before: ToolCall | None) -> ToolCall:
    inner: Any = value.get("function") if isinstance(value, dict) else None
    form: Any = {**inner, "id": value.get("id")} if isinstance(inner, dict) and isinstance(value, dict) else value
    if not isinstance(form, dict) or not isinstance(form.get("name"), str) or not form.keys() <= _CALL:
        raise _wrong(f'a tool call is {{"name", "arguments", "id"}}, not {form!r}')
    arguments, id = form.get("arguments", {}), form.get("id")
    if id is not None and not isinstance(id, str):
        raise _wrong(f"the id of a tool call is a text, not {id!r}")
    text = dumped(arguments)
    if before is not None:
        id = before.id if id is None else id
        if _alike(arguments, before.arguments):
            text = before.arguments
    return ToolCall(form["name"], text, id or "")


def _alike(arguments: Any, before: str) -> bool:
    found = bodies.json(before)
    return bool(arguments == (before if found is None else found))


def reworded(blocks: Sequence[Any], form: Form, said: Message, before: Message) -> list[Any]:
    """The blocks of a message that says something else: what it has beside text and calls stays where it was."""
    marks = [
        mark for block in blocks if form.text(block) is None and form.call(block) is None and (mark := form.mark(block))
    ]
    text, same = _unmarked(said.text, marks), said.text == before.text
    # Without a word beside its calls there is no block of text: some APIs do not take an empty one back.
    due = [] if same or (not text and said.tool_calls) else [text]
    calls = list(said.tool_calls)
    as_it_was = list(before.tool_calls)
    made: list[Any] = []
    for block in blocks:
        if form.text(block) is not None:
            if same:
                made.append(block)
            elif due:
                made.append(form.with_text(block, due.pop()))
        elif form.call(block) is None:
            made.append(block)
        elif calls:
            call, was = calls.pop(0), as_it_was.pop(0) if as_it_was else None
            made.append(block if call == was else form.with_call(block, call))
    if due and text:
        first = next((n for n, block in enumerate(made) if form.call(block) is not None), len(made))
        made.insert(first, form.with_text(None, text))
    return [*made, *(form.with_call(None, call) for call in calls)]


def _unmarked(text: str, marks: Iterable[str]) -> str:
    """The text without what stood in it for blocks of other kinds."""
    for mark in marks:
        lines = text.split("\n")
        if mark in lines:
            lines.remove(mark)
            text = "\n".join(lines)
        else:
            text = text.replace(mark, "", 1)
    return text


def named(calls: Sequence[ToolCall], prefix: str) -> tuple[ToolCall, ...]:
    """The calls, each with an id of its own."""
    return tuple(
        call if call.id else ToolCall(call.name, call.arguments, f"{prefix}edited_{n}")
        for n, call in enumerate(calls, 1)
    )


def arguments(call: ToolCall) -> Any:
    """The arguments as a map, where an API has them as one. Raises EditError LS213."""
    found = bodies.json(call.arguments) if call.arguments else {}
    if not isinstance(found, dict):
        raise _wrong(f"the arguments of {call.name} are a map of names and values here, not {call.arguments!r}")
    return found


def finish(recorded: Any, had: bool, has: bool, words: tuple[str, str]) -> Any:
    """Why it stopped: as recorded, unless there are tool calls now and were none, or the reverse. `words`: what the API
    calls a stop with and without calls."""
    if recorded is None or had != has:
        return words[0] if has else words[1]
    return recorded


def compact(value: Any) -> str:
    """A value as JSON, as models write it."""
    return msgspec.json.encode(value).decode()


def is_text(value: Any, key: str) -> bool:
    return isinstance(value, dict) and isinstance(value.get(key), str)


def kind(value: Any) -> str:
    return string(value, "type")


def _wrong(message: str) -> EditError:
    return EditError(Code.UNEDITABLE, message)


def unlike(api: str) -> EditError:
    """The recorded answer is not one that this API gives with a message in it."""
    return _wrong(
        f"no message can be put into this answer ({api or 'of an API that is not known'}): edit the answer instead, "
        '{"status", "headers", "body"}, or a place in its body'
    )
