"""A list that grew by one item costs one item, and a change in place is found."""

import random
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from lockstep.errors import StoreError
from lockstep_langgraph.memo import ListMemo
from lockstep_langgraph.values import Codec


class Counting(Codec):
    """Tells how often a value was stored."""

    count = 0

    def dump(self, obj: Any, path: str = "", lost: Any = None) -> Any:
        self.count += 1
        return super().dump(obj, path, lost)


def _talk(count: int) -> list[Any]:
    return [HumanMessage(f"say {n}", id=str(n)) if n % 2 else AIMessage(f"said {n}", id=str(n)) for n in range(count)]


def test_only_what_is_new_and_a_sample_of_the_rest_is_stored_again() -> None:
    codec = Counting()
    memo = ListMemo(codec)
    talk = _talk(1000)
    assert memo.encode(talk, "messages")[0] == 0
    codec.count = 0

    kept, values = memo.encode([*talk, HumanMessage("more")], "messages")

    assert kept == 1000 and len(values) == 1001
    assert codec.count <= 1 + 32 + 64


@pytest.mark.parametrize("at", [0, 3, 500, 967, 968, 999])
def test_an_item_changed_in_place_is_found_before_long(at: int) -> None:
    codec = Codec()
    memo = ListMemo(codec)
    talk = _talk(1000)
    memo.encode(talk, "messages")
    talk[at].content = "changed"

    kept = [memo.encode(talk, "messages")[0] for _ in range(1000 // 64 + 1)]

    assert at in kept
    assert memo.encode(talk, "messages") == (1000, [codec.dump(item) for item in talk])


def test_a_change_of_the_last_items_is_found_at_once_and_any_with_paranoid() -> None:
    talk = _talk(1000)
    memo, paranoid = ListMemo(Codec()), ListMemo(Codec(), paranoid=True)
    memo.encode(talk, "messages")
    paranoid.encode(talk, "messages")
    talk[990].additional_kwargs["seen"] = [1]
    assert memo.encode(talk, "messages")[0] == 990
    paranoid.encode(talk, "messages")

    talk[500].content += "!"

    assert paranoid.encode(talk, "messages")[0] == 500


def test_whatever_happens_to_the_list_what_is_stored_is_the_list() -> None:
    chance = random.Random(5)
    codec = Codec()
    memo = ListMemo(codec, paranoid=True)
    items: list[Any] = []
    before: list[Any] = []
    for number in range(300):
        match chance.randrange(6):
            case 0 | 1 | 2:
                items = [*items, HumanMessage(f"{number}")]
            case 3 if items:
                items = items[: chance.randrange(len(items))]
            case 4 if items:
                items = list(items)
                items[chance.randrange(len(items))] = AIMessage(f"other {number}")
            case 5 if items:
                items[chance.randrange(len(items))].content = f"in place {number}"
            case _:
                items = [[number], *items] if number % 50 == 0 else items
        items = [item for item in items if isinstance(item, HumanMessage | AIMessage)]
        kept, values = memo.encode(items, "messages")
        assert values == [codec.dump(item) for item in items]
        assert values[:kept] == before[:kept]
        before = list(values)


def test_what_could_not_be_stored_leaves_the_memo_as_it_was() -> None:
    memo = ListMemo(Codec())
    memo.encode([1, [2]], "x")
    with pytest.raises(StoreError, match=r"at x\[2\]$"):
        memo.encode([1, [2], object()], "x")

    assert memo.encode([1, [2], 3], "x") == (1, [1, [2], 3])


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
