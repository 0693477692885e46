"""The types of what activities are given and return, in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from lockstep_temporal.typenames import name_of


@dataclass
class Message:
    text: str


class Box(dict[str, Any]):
    """No plain container: it is told by its own name alone."""


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (1, "int"),
        (None, "NoneType"),
        ([], "list"),
        ([1, "a", 2], "list[int | str]"),
        ({"messages": [Message("a"), {}]}, f"dict[str, list[{__name__}.Message | dict]]"),
        ((Message("a"),), f"tuple[{__name__}.Message]"),
        (Box(a=1), f"{__name__}.Box"),
        ([[[[1]]]], "list[list[list[list]]]"),
        ([*range(100), "late"], "list[int]"),
    ],
)
def test_a_type_is_named_with_those_in_it(value: Any, name: str) -> None:
    assert name_of(value) == name


def test_what_contains_itself_has_a_name() -> None:
    value: list[Any] = []
    value.append(value)
    assert name_of(value) == "list[list[list[list]]]"
