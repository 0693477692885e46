"""Channel values that are made when they are asked for: listing a thread by its metadata decodes nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any


class LazyValues(dict[str, Any]):
    """The values of a listed checkpoint: a dict in all that Python code can ask of one.

    Until then each key has a placeholder, so that what looks past the methods of a dict, as encoders in C do, fails
    over it, and does not take the values for missing.
    """

    __slots__ = ("_make",)

    def __init__(self, names: Iterable[str], make: Callable[[str], Any]) -> None:
        super().__init__(dict.fromkeys(names, _NOT_MADE))
        self._make = make

    def _all(self) -> dict[str, Any]:
        for name in dict.keys(self):
            self[name]
        return self

    def __getitem__(self, name: str) -> Any:
        value = dict.__getitem__(self, name)
        if value is _NOT_MADE:
            value = self._make(name)
            dict.__setitem__(self, name, value)
        return value

    def get(self, name: str, default: Any = None) -> Any:
        return self[name] if dict.__contains__(self, name) else default

    def pop(self, name: str, *default: Any) -> Any:
        if name in self:
            self[name]
        return dict.pop(self, name, *default)

    def popitem(self) -> tuple[str, Any]:
        self._all()
        return dict.popitem(self)

    def setdefault(self, name: str, default: Any = None) -> Any:
        if name in self:
            return self[name]
        dict.__setitem__(self, name, default)
        return default

    def __iter__(self) -> Iterator[str]:
        return dict.__iter__(self)

    def keys(self) -> Any:
        return dict.keys(self)

    def values(self) -> Any:
        return dict.values(self._all())

    def items(self) -> Any:
        return dict.items(self._all())

    def copy(self) -> dict[str, Any]:
        return {name: self[name] for name in dict.keys(self)}

    def __eq__(self, other: object) -> bool:
        return dict.__eq__(self._all(), other if not isinstance(other, LazyValues) else other._all())

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = None

    def __or__(self, other: Any) -> Any:
        return self.copy() | other

    def __ror__(self, other: Any) -> Any:
        return other | self.copy()

    def __repr__(self) -> str:
        return dict.__repr__(self._all())

    def __copy__(self) -> dict[str, Any]:
        return self.copy()

    def __deepcopy__(self, memo: dict[int, Any]) -> dict[str, Any]:
        import copy

        return copy.deepcopy(self.copy(), memo)

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (self.copy(),)

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return self.__reduce__()


class _NotMade:
    __slots__ = ()

    def __repr__(self) -> str:
        return "<not made yet>"


_NOT_MADE = _NotMade()
