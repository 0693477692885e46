"""Whether a message was changed in place since it was stored is told without storing it again."""

from typing import Any

import pytest
from langchain_core.messages import AIMessage

from lockstep_langgraph.values import Codec

CHANGES: dict[str, Any] = {
    "content": lambda m: setattr(m, "content", "y"),
    "content of blocks": lambda m: setattr(m, "content", ["x"]),
    "another id": lambda m: setattr(m, "id", "2"),
    "no id": lambda m: setattr(m, "id", None),
    "a name": lambda m: setattr(m, "name", "ann"),
    "an argument of a call": lambda m: m.tool_calls[0]["args"].update(q="other"),
    "an argument of the same value": lambda m: m.tool_calls[0]["args"].update(n=True),
    "an argument that is a tuple now": lambda m: m.tool_calls[0]["args"].update(pages=(1, 2)),
    "one call more": lambda m: m.tool_calls.append({"name": "b", "args": {}, "id": "c2", "type": "tool_call"}),
    "something in an empty map": lambda m: m.response_metadata.update(model="m"),
    "a default said": lambda m: setattr(m, "invalid_tool_calls", []),
    "an object in a map": lambda m: m.additional_kwargs.update(seen={1}),
    "an extra field": lambda m: setattr(m, "mood", "good"),
}


@pytest.mark.parametrize("change", [None, *CHANGES.values()], ids=["nothing", *CHANGES])
def test_a_message_is_as_stored_exactly_if_it_would_be_stored_so_again(change: Any) -> None:
    codec = Codec()
    calls = [{"name": "a", "args": {"q": "x", "n": 1, "pages": [1, 2]}, "id": "c1", "type": "tool_call"}]
    message = AIMessage("x", id="1", tool_calls=calls, additional_kwargs={"a": [None, 0.5]})
    stored = codec.dump(message)
    if change is not None:
        change(message)

    assert codec.is_as_stored(message, stored) is (change is None)
    assert codec.is_as_stored(message, codec.dump(message))


@pytest.mark.parametrize("change", [None, *CHANGES.values()], ids=["nothing", *CHANGES])
def test_a_message_that_is_watched_shows_every_change(change: Any) -> None:
    calls = [{"name": "a", "args": {"q": "x", "n": 1, "pages": [1, 2]}, "id": "c1", "type": "tool_call"}]
    message = AIMessage("x", id="1", tool_calls=calls, additional_kwargs={"a": [None, 0.5]})
    same = Codec().watch(message)
    assert same is not None
    if change is not None:
        change(message)

    assert same() is (change is None)
