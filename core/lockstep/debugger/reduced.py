"""Values made smaller: the parts in which two of them differ, and a text, list or object with parts left out. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from lockstep.debugger import structure
from lockstep.debugger.paths import Place
from lockstep.log.model import Value

_SPANS = re.compile(r"\S+\s*|\s+")
_MOST = 256  # spans of a text, beyond which several go together


class _Absent:
    """There is no such field."""


ABSENT: Final = _Absent()


def differing(new: Any, old: Any, place: Place = ()) -> list[Place]:
    """The smallest places in which two values differ: fields of objects, items of lists that are as long, all the way
    down, also in texts that are JSON."""
    if _same(new, old):
        return []
    both = _both(new, old)
    if both is None:
        return [place]
    one, other = both
    if isinstance(one, dict):
        names = [*other, *(name for name in one if name not in other)]
        inner = ((name, one.get(name, ABSENT), other.get(name, ABSENT)) for name in names)
        return [found for name, a, b in inner for found in differing(a, b, (*place, name))]
    return [found for n, (a, b) in enumerate(zip(one, other, strict=True)) for found in differing(a, b, (*place, n))]


def mixed(new: Any, old: Any, kept: Mapping[Place, Any], place: Place = ()) -> Any:
    """The old value with what is `kept` of the new one: by place as in `differing`, the value that it has there, or
    ABSENT."""
    if place in kept:
        return kept[place]
    if not any(each[: len(place)] == place for each in kept):
        return old
    both = _both(new, old)
    if both is None:
        return old
    one, other = both
    made: Any
    if isinstance(one, dict):
        names = [*other, *(name for name in one if name not in other)]
        every = {
            name: mixed(one.get(name, ABSENT), other.get(name, ABSENT), kept, (*place, name)) for name in names
        }  # fmt: skip
        made = {name: value for name, value in every.items() if value is not ABSENT}
    else:
        made = [mixed(a, b, kept, (*place, n)) for n, (a, b) in enumerate(zip(one, other, strict=True))]
    if isinstance(old, str | bytes):
        text = msgspec.json.encode(made)
        return text if isinstance(old, bytes) else text.decode()
    return made


def pieces(value: Any) -> list[Any]:
    """What can be left out of a value: names of an object, numbers of a list's items, spans of a text."""
    if isinstance(value, dict):
        return list(value)
    if isinstance(value, list):
        return list(range(len(value)))
    if isinstance(value, str):
        spans = _SPANS.findall(value)
        together = -(-len(spans) // _MOST) or 1
        return ["".join(spans[at : at + together]) for at in range(0, len(spans), together)]
    return []


def with_only(value: Any, every: Sequence[Any], chosen: Iterable[int]) -> Any:
    """The value with these of its `pieces`, by their numbers."""
    left = [every[number] for number in sorted(chosen)]
    if isinstance(value, dict):
        return {name: value[name] for name in left}
    if isinstance(value, list):
        return [value[number] for number in left]
    return "".join(left)


def told(new: Any, old: Any, kept: Mapping[Place, Any]) -> dict[Place, Value]:
    """What is kept, as edits of the old value: by place that is there, so that of what the old value has not, or has to
    lose, the whole object around it is told."""
    found: dict[Place, Value] = {}
    for place in kept:
        there = place
        while there and (kept[place] is ABSENT or not _has(old, there)):
            there = there[:-1]
            if _has(old, there):
                break
        found[there] = at(mixed(new, old, kept), there)
    return {each: value for each, value in found.items() if not any(each[:n] in found for n in range(len(each)))}


def _has(value: Any, place: Place) -> bool:
    return at(value, place) is not ABSENT


def at(value: Any, place: Place) -> Any:
    """What stands at a place, also in texts that are JSON; ABSENT where there is nothing."""
    for step in place:
        inner = structure.opened(value) if isinstance(value, str | bytes) else value
        if isinstance(inner, dict) and step in inner:
            value = inner[step]  # type: ignore[index]
        elif isinstance(inner, list) and isinstance(step, int) and step < len(inner):
            value = inner[step]
        else:
            return ABSENT
    return value


def _same(a: Any, b: Any) -> bool:
    return a is b or repr(a) == repr(b)  # True and 1 are equal, and not the same


def _both(new: Any, old: Any) -> tuple[Any, Any] | None:
    """Both opened, where they are objects, or lists that are as long; else None."""
    if new is ABSENT or old is ABSENT:
        return None
    one, other = structure.opened(new), structure.opened(old)
    if (one is new) != (other is old):
        return None
    if isinstance(one, dict) and isinstance(other, dict):
        return one, other
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        return one, other
    return None
