"""What a tool answered, edited: the program gets the edited answer."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

import lockstep
from lockstep.errors import EditError


@dataclasses.dataclass
class Order:
    id: int
    status: str


class Refused(Exception):
    def __init__(self, order: int, why: str) -> None:
        super().__init__(f"order {order}: {why}")
        self.order = order


@lockstep.tool
def get_order(id: int) -> Any:
    if id == 0:
        raise KeyError("no order 0")
    if id == 1:
        raise Refused(1, "too late")
    return {"id": id, "status": "sent", "items": [{"name": "cup", "price": 3.5}], "label": b"\x00\xff", "x y": None}


@lockstep.tool
def typed_order(id: int) -> Order:
    return Order(id, "sent")


@lockstep.tool
def lines(count: int) -> Iterator[str]:
    for number in range(count):
        yield f"line {number}"
    return None


@lockstep.tool
async def aget_order(id: int) -> Any:
    await asyncio.sleep(0)
    return {"id": id, "status": "sent"}


@lockstep.tool
async def alines(count: int) -> AsyncIterator[str]:
    for number in range(count):
        await asyncio.sleep(0)
        yield f"line {number}"


def test_a_place_in_an_answer_is_edited(editing: Any) -> None:
    recorded = editing.record(lambda: get_order(7))
    assert editing.served(lambda: get_order(7), ("status", "lost")) == {**recorded, "status": "lost"}
    assert editing.served(lambda: get_order(7), ('"x y"', [1])) == {**recorded, "x y": [1]}
    cheaper = editing.served(lambda: get_order(7), ("items[0].price", 1), ("items[0].name", "mug"))
    assert cheaper == {**recorded, "items": [{"name": "mug", "price": 1}]}


def test_an_answer_edited_to_itself_is_the_recorded_one(editing: Any) -> None:
    recorded = editing.record(lambda: get_order(7))
    assert editing.served(lambda: get_order(7), ("", editing.shown())) == recorded
    # And where it has to be made again:
    assert editing.served(lambda: get_order(7), ("id", 8), ("id", 7)) == recorded


def test_all_of_an_answer_is_edited(editing: Any) -> None:
    editing.record(lambda: get_order(7))
    assert editing.served(lambda: get_order(7), ("", "gone")) == "gone"
    assert editing.served(lambda: get_order(7), ("", None)) is None


def test_an_object_stays_one(editing: Any) -> None:
    editing.record(lambda: typed_order(7))
    assert editing.served(lambda: typed_order(7), ("status", "lost")) == Order(7, "lost")
    assert editing.served(lambda: typed_order(7), ("", {**editing.shown(), "id": 9})) == Order(9, "sent")


def test_an_answer_becomes_an_error(editing: Any) -> None:
    editing.record(lambda: get_order(7))
    with pytest.raises(ValueError, match="no such order"):
        editing.served(lambda: get_order(7), ("", {"$": "raise", "type": "ValueError", "message": "no such order"}))
    with pytest.raises(ConnectionRefusedError) as refused:
        editing.served(
            lambda: get_order(7), ("", {"$": "raise", "type": "ConnectionRefusedError", "args": [111, "no"]})
        )
    assert (refused.value.errno, refused.value.strerror) == (111, "no")
    with pytest.raises(Refused, match="late"):
        editing.served(lambda: get_order(7), ("", {"$": "raise", "type": f"{__name__}.Refused", "message": "late"}))


def test_an_error_becomes_an_answer_or_another_error(editing: Any) -> None:
    with pytest.raises(KeyError):
        editing.record(lambda: get_order(0))
    assert editing.shown() == {"$": "raise", "type": "KeyError", "message": "no order 0"}
    assert editing.served(lambda: get_order(0), ("", {"id": 0})) == {"id": 0}
    with pytest.raises(KeyError, match="gone"):
        editing.served(lambda: get_order(0), ("message", "gone"))
    with pytest.raises(IndexError):
        editing.served(lambda: get_order(0), ("type", "IndexError"))


def test_an_error_keeps_what_is_not_edited(editing: Any) -> None:
    with pytest.raises(Refused):
        editing.record(lambda: get_order(1))
    with pytest.raises(Refused, match=r"^order 1: too early$") as caught:
        editing.served(lambda: get_order(1), ("message", "order 1: too early"))
    assert caught.value.order == 1


def test_what_a_generator_handed_out_is_edited(editing: Any) -> None:
    assert editing.record(lambda: list(lines(2))) == ["line 0", "line 1"]
    assert editing.shown() == {"$": "generator", "items": ["line 0", "line 1"]}
    assert editing.served(lambda: list(lines(2)), ("items[1]", "end")) == ["line 0", "end"]
    assert editing.served(lambda: list(lines(2)), ("items", [])) == []
    more = {"$": "generator", "items": ["a", "b", "c"]}
    assert editing.served(lambda: list(lines(2)), ("", more)) == ["a", "b", "c"]
    broken = {"$": "generator", "items": ["a"], "error": {"$": "raise", "type": "OSError", "message": "cut"}}

    def read() -> list[str]:
        handed = lines(2)
        first = next(handed)
        with pytest.raises(OSError, match="cut"):
            next(handed)
        return [first]

    assert editing.served(read, ("", broken)) == ["a"]


def test_tools_of_tasks_are_edited(editing: Any) -> None:
    async def ask() -> Any:
        return await aget_order(7)

    async def collect() -> list[str]:
        return [line async for line in alines(2)]

    editing.record(lambda: asyncio.run(ask()))
    assert editing.served(lambda: asyncio.run(ask()), ("status", "lost")) == {"id": 7, "status": "lost"}
    editing.record(lambda: asyncio.run(collect()))
    assert editing.served(lambda: asyncio.run(collect()), ("items[0]", "first")) == ["first", "line 1"]


@pytest.mark.parametrize(
    ("path", "value", "says"),
    [
        ("total", 1, 'LS212 there is no total: the outcome has id, status, items, label, "x y"'),
        ("items[1].price", 1, "LS212 there is no items[1]: items is a list of 1, counted from 0"),
        ("status.code", 1, 'LS212 there is no status.code: status is "sent"'),
        ("items[0]price", 1, "LS211 not a path"),
        ("", {"$": "raise", "type": "Order"}, "LS213 Order is no error of Python's own: say its module too"),
        ("", {"$": "raise", "type": "KeyboardInterrupt"}, "LS213 KeyboardInterrupt ends the program"),
        ("", {"$": "raise", "type": "ValueError", "text": "x"}, "LS213 an error to raise has type, message and args"),
        ("", {"$": "raise", "message": "x"}, "LS213 an error needs a type"),
    ],
)
def test_an_edit_that_cannot_be_made_says_why(editing: Any, path: str, value: Any, says: str) -> None:
    editing.record(lambda: get_order(7))
    with pytest.raises(EditError) as refused:
        editing.pieces((path, value))
    assert says in str(refused.value)


def test_a_plain_value_is_no_answer_of_a_generator(editing: Any) -> None:
    editing.record(lambda: list(lines(2)))
    with pytest.raises(EditError, match="LS213 a generator handed out items here"):
        editing.pieces(("", ["a"]))
