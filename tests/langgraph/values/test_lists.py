"""Which items of a list are as they were is told without asking more of them than is needed."""

from typing import Any

import numpy
import pytest
from langchain_core.messages import AIMessage, HumanMessage

from lockstep_langgraph.cells import Listed, cell_of
from lockstep_langgraph.values import Codec


class Counting(Codec):
    """Counts how often an object is taken apart or compared with what was stored."""

    dumped = compared = 0

    def dump(self, obj: Any, path: str = "", lost: Any = None) -> Any:
        self.dumped += 1
        return super().dump(obj, path, lost)

    def is_as_stored(self, obj: Any, value: Any, path: str = "") -> bool:
        self.compared += 1
        return super().is_as_stored(obj, value, path)


def _talk(count: int) -> list[Any]:
    return [HumanMessage(f"say {n}", id=str(n)) if n % 2 else AIMessage(f"said {n}", id=str(n)) for n in range(count)]


def _stored(codec: Codec, talk: list[Any], before: Any = None) -> Listed:
    cell = cell_of(talk, before, codec, "messages")
    assert isinstance(cell, Listed)
    assert [item.value for item in cell.items] == [Codec().dump(message) for message in talk]
    return cell


def test_a_list_that_grew_costs_what_was_added() -> None:
    codec = Counting()
    talk = _talk(300)
    cell = _stored(codec, talk)
    codec.dumped = codec.compared = 0
    grown = _stored(codec, [*talk, HumanMessage("more")], cell)

    assert (codec.dumped, grown.strand) == (1, cell.strand)
    assert codec.compared <= 32


def test_a_list_that_was_read_again_is_compared_once_and_then_known() -> None:
    codec = Counting()
    cell = _stored(codec, _talk(300))
    again = codec.clone(_talk(300))
    codec.dumped = codec.compared = 0
    _stored(codec, again, cell)
    assert (codec.dumped, codec.compared) == (0, 300)
    codec.compared = 0
    _stored(codec, [*again, HumanMessage("more")], cell)

    assert codec.dumped == 1 and codec.compared <= 32


@pytest.mark.parametrize("at", [0, 1, 150, 298, 299])
def test_a_message_that_was_replaced_is_stored_wherever_it_stands(at: int) -> None:
    codec = Counting()
    talk = _talk(300)
    cell = _stored(codec, talk)
    replaced = list(talk)
    replaced[at] = HumanMessage("other", id=str(at))
    _stored(codec, replaced, cell)


def test_a_message_with_what_has_no_truth_value_is_compared_all_the_same() -> None:
    codec = Counting()
    talk = [HumanMessage(f"{n}", additional_kwargs={"a": numpy.arange(3)}) for n in range(40)]
    cell = cell_of(talk, None, codec, "messages")
    replaced = [*talk[:20], HumanMessage("20", additional_kwargs={"a": numpy.arange(3) + 1}), *talk[21:]]
    found = cell_of(replaced, cell, codec, "messages")

    assert found.make(codec)[20].additional_kwargs["a"].tolist() == [1, 2, 3]
