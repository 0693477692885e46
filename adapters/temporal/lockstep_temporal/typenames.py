"""What an activity was given and returned, by its types: a payload does not say what it was made of.

    name_of([AIMessage(…), {}])      "list[langchain_core.messages.ai.AIMessage | dict]"

A class that nobody's type hint names comes out of its payload as a dict, and code that looks for the class passes it
by.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any

_ITEMS = 4  # of a container that are looked at
_DEPTH = 3


def name_of(value: Any, depth: int = _DEPTH) -> str:
    """The type of a value, with those in it: of the first items, a few levels deep."""
    cls = type(value)
    name = cls.__qualname__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__qualname__}"
    if depth and isinstance(value, dict) and cls is dict and value:
        return f"{name}[{_names(value.keys(), 0)}, {_names(value.values(), depth - 1)}]"
    if depth and cls in (list, tuple, set, frozenset) and value:
        return f"{name}[{_names(value, depth - 1)}]"
    return name


def _names(values: Iterable[Any], depth: int) -> str:
    return " | ".join(dict.fromkeys(name_of(value, depth) for value in islice(values, _ITEMS)))
