"""Names that modules took before the taps: `from time import time` binds the original for good.

A launched program has none, since the taps come first. In an in-process session the modules that hold an original are
found by one look through their globals (10 ms for 3,000 modules) and, outside the standard library, given ours for the
session. What cannot be found: closures, default arguments and class attributes such as a pydantic field's
`default_factory=datetime.now`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from types import BuiltinFunctionType
from typing import Any

from lockstep.taps.patches import Patches

# The standard library waits on real clocks and names its files as it likes; what of it must be tapped
# is tapped by name. Ours hold originals on purpose.
_LEFT_ALONE = frozenset(sys.stdlib_module_names) | {"lockstep"}


class Originals:
    """Functions that were replaced, each with what stands for it now."""

    def __init__(self, replaced: Mapping[Any, Any]) -> None:
        self._functions = dict(replaced)
        # Whatever else a module holds is not looked up: it may hash and compare as it likes.
        self._kinds = {type(original) for original in replaced}
        # `datetime.now` is a new object at each look-up: known by its class and name.
        self._bound: dict[tuple[Any, str], None] = {}

    def add(self, others: Originals) -> None:
        """Also counts these."""
        self._functions |= others._functions
        self._kinds |= others._kinds
        self._bound |= others._bound

    def add_bound(self, owner: type, name: str) -> None:
        """Also counts captured `owner.name` class methods, which look-ups on `owner` now answer."""
        self._bound[(owner, name)] = None
        self._kinds.add(BuiltinFunctionType)

    def found(self) -> Iterator[tuple[Any, str, Any]]:
        """(module, name, what to put there) of each global that holds an original."""
        # No `id()`: it is an audit event, which costs a call of each hook (300 ns) for every name of every module.
        functions, kinds, bound = self._functions, self._kinds, self._bound
        for module_name, module in tuple(sys.modules.items()):
            if module_name.partition(".")[0] in _LEFT_ALONE:
                continue
            names = getattr(module, "__dict__", None)
            if type(names) is not dict or kinds.isdisjoint(map(type, tuple(names.values()))):
                continue
            for name, value in tuple(names.items()):
                if type(value) not in kinds:
                    continue
                if value in functions:
                    yield module, name, functions[value]
                elif type(value) is BuiltinFunctionType and bound:
                    owner, attribute = value.__self__, value.__name__
                    if isinstance(owner, type) and (owner, attribute) in bound:
                        yield module, name, getattr(owner, attribute)

    def names(self) -> list[str]:
        """`module.name` of each, sorted."""
        return sorted(f"{module.__name__}.{name}" for module, name, _ in self.found())


_rewritten = Patches()


def rewrite(every: Iterable[Originals]) -> None:
    """Gives each global that holds one of these what stands for it now, for the length of a session."""
    for module, name, ours in _together(every).found():
        _rewritten.set(module, name, ours)


def undo() -> None:
    """Names that were taken before the session are what they were."""
    _rewritten.undo()


def _together(every: Iterable[Originals]) -> Originals:
    all_of_them = Originals({})
    for one in every:
        all_of_them.add(one)
    return all_of_them
