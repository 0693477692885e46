"""Versions of frameworks, as far as they have to be compared: numbers with dots, without what follows them."""

from __future__ import annotations

import re

from lockstep.adapter.contract import Versions

_NUMBERS = re.compile(r"\d+(\.\d+)*")

TESTED = "tested"
OLDER = "older than tested"
NEWER = "newer than tested"


def is_version(text: object) -> bool:
    """Whether a bound of a range can be read."""
    return isinstance(text, str) and _NUMBERS.fullmatch(text) is not None


def before(version: str, bound: str) -> bool:
    """Whether a version comes before a bound, as far as the bound goes: 1.2.3 is not before 1.2, and 1.1.9 is."""
    limit = _numbers(bound)
    return _cut(version, len(limit)) < limit


def verdict(version: str, tested: Versions) -> str:
    """TESTED, OLDER or NEWER."""
    if before(version, tested.oldest):
        return OLDER
    newest = _numbers(tested.newest)
    return NEWER if _cut(version, len(newest)) > newest else TESTED


def _cut(version: str, places: int) -> tuple[int, ...]:
    found = _numbers(version)[:places]
    return found + (0,) * (places - len(found))


def _numbers(version: str) -> tuple[int, ...]:
    found = _NUMBERS.match(version)
    return tuple(int(number) for number in found[0].split(".")) if found else ()
