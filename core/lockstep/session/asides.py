"""Asides: what a call does besides answering, told while it runs and served again with it.

A part of a call's outcome, as the pieces of its answer are, and none of these: what a tool wrote to its framework's
stream meanwhile, or the HTTP response that an exception holds.
"""

from __future__ import annotations

from lockstep.log.model import Value

_TAG, _ASIDE = "$", "aside"


def aside(what: str, value: Value) -> Value:
    """The part that says it."""
    return {_TAG: _ASIDE, what: value}


def is_aside(part: Value) -> bool:
    return isinstance(part, dict) and part.get(_TAG) == _ASIDE


def told(part: Value, what: str) -> Value:
    """What a part says aside of this; None where it says nothing of it."""
    return part.get(what) if isinstance(part, dict) and part.get(_TAG) == _ASIDE else None
