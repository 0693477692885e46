"""What a list channel became when it was stored last: a list that grew by one item costs one item."""

from __future__ import annotations

from operator import is_
from typing import Any

from lockstep.log.model import Value
from lockstep_langgraph.losses import Loss
from lockstep_langgraph.values import Codec

_LAST = 32
_OTHERS = 64


class ListMemo:
    """The items of one list channel, by identity, and what each was stored as.

    A node may change an item in place, which its identity does not tell: the last 32 items are looked at each time and
    64 of the others in turn, or all with `paranoid`. Not to be used by two threads at once.
    """

    def __init__(self, codec: Codec, *, paranoid: bool = False) -> None:
        self._codec = codec
        self._paranoid = paranoid
        self._items: list[Any] = []
        self._values: list[Value] = []
        self._turn = 0

    def encode(self, items: list[Any], path: str, lost: list[Loss] | None = None) -> tuple[int, list[Value]]:
        """(How many of the leading items are as last time, what all of them are stored as). The list is the memo's
        own and not to be changed. Raises StoreError LS207, and then remembers nothing new."""
        items = list(items)
        kept = self._changed_at(items, self._same(items), path)
        values = self._values[:kept]
        for number in range(kept, len(items)):
            values.append(self._codec.dump(items[number], f"{path}[{number}]", lost))
        self._items, self._values = items, values
        return kept, values

    def _same(self, items: list[Any]) -> int:
        """How many of the leading items are the same objects as last time."""
        most = min(len(items), len(self._items))
        if all(map(is_, items, self._items)):
            return most
        return next(number for number in range(most) if items[number] is not self._items[number])

    def _changed_at(self, items: list[Any], most: int, path: str) -> int:
        """The first of these items that was changed in place, as far as it is looked for."""
        first = 0 if self._paranoid else max(0, most - _LAST)
        checked = [*self._others(first), *range(first, most)]
        for number in checked:
            if self._codec.dump(items[number], f"{path}[{number}]") != self._values[number]:
                # What else changed with it is found by looking at all of them, this once.
                return self._first_changed(items, most, path)
        return most

    def _others(self, end: int) -> range:
        if not end:
            return range(0)
        start = self._turn % end
        self._turn = start + _OTHERS
        return range(start, min(start + _OTHERS, end))

    def _first_changed(self, items: list[Any], most: int, path: str) -> int:
        for number in range(most):
            if self._codec.dump(items[number], f"{path}[{number}]") != self._values[number]:
                return number
        return most
