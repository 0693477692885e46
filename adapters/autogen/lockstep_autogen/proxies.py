"""What stands in an agent for an object of its program: a model's client, a workbench, a code executor.

An object may be shared by several agents, and its own code may call it too, so nothing about it is changed: each agent
gets a stand-in, which is the object but for a few methods. `isinstance` says of it what it says of the object, and so
do its attributes, its component and its copies.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lockstep_autogen.places import Place

_INNER, _PLACE = "_lockstep_inner", "_lockstep_place"


class Proxy:
    """Is the object that it stands for, but for what a subclass does otherwise."""

    __slots__ = ("__weakref__", _INNER, _PLACE)

    _lockstep_inner: Any
    _lockstep_place: Place

    def __init__(self, inner: Any, place: Place) -> None:
        object.__setattr__(self, _INNER, inner)
        object.__setattr__(self, _PLACE, place)

    if not TYPE_CHECKING:

        @property
        def __class__(self) -> Any:
            return self._lockstep_inner.__class__

    def __getattr__(self, name: str) -> Any:
        return getattr(self._lockstep_inner, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._lockstep_inner, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._lockstep_inner, name)

    def __eq__(self, other: object) -> bool:
        return bool(self._lockstep_inner == plain(other))

    def __hash__(self) -> int:
        return hash(self._lockstep_inner)

    def __repr__(self) -> str:
        return repr(self._lockstep_inner)

    def __copy__(self) -> Any:
        return copy.copy(self._lockstep_inner)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return copy.deepcopy(self._lockstep_inner, memo)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self._lockstep_inner.__reduce_ex__(protocol)

    # Looked up in the class, so that `__getattr__` is not asked.

    async def __aenter__(self) -> Any:
        await self._lockstep_inner.__aenter__()
        return self

    async def __aexit__(self, *error: object) -> Any:
        return await self._lockstep_inner.__aexit__(*error)


def plain(value: Any) -> Any:
    """The object that a stand-in stands for; what is none, itself."""
    return value._lockstep_inner if issubclass(type(value), Proxy) else value


def stands_in(value: Any) -> bool:
    """Whether it is a stand-in."""
    return issubclass(type(value), Proxy)
