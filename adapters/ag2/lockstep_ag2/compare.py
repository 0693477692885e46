"""Whether a replayed turn is the recorded one: its states, and how it ended. Pure."""

from __future__ import annotations

import re
from typing import Any

from lockstep.log.model import Status, Value
from lockstep.session import difference, exceptions
from lockstep_ag2 import events
from lockstep_ag2.states import EVENTS, MESSAGES

type Found = tuple[str, str, str]  # the place, what was recorded there, what is there now

_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{6,}\b")
_TOLD = ("module", "name", "args")  # of an encoded exception: the rest is where it was raised and what it held


def states(recorded: dict[str, Value], now: dict[str, Value]) -> Found | None:
    """The first place where two states differ: what was said first, then all else."""
    names = sorted({*recorded, *now}, key=lambda name: (name != MESSAGES, name == EVENTS, name))
    for name in names:
        found = difference.first(events.compared(recorded.get(name)), events.compared(now.get(name)), name)
        if found is not None:
            return found
    return None


def endings(status: str, recorded: Value, now: str, given: Value) -> Found | None:
    """The same of how two turns ended. `given`: what it came to, or the exception, encoded, with its secrets hidden."""
    if status != now:
        return "", _said(status, recorded), _said(now, given)
    if status == Status.ERROR:
        return difference.first(_raised(recorded), _raised(given), "error")
    if status == Status.OK:
        return difference.first(recorded, given, "answer")
    return None


def _said(status: str, value: Value) -> str:
    if status == Status.ERROR:
        told = _raised(value)
        return f"error {told['module']!s}.{told['name']!s}: {difference.shown(told['args'])}"
    return f"{status} {difference.shown(value)}"


def _raised(error: Any) -> dict[str, Value]:
    found = {name: error.get(name) for name in _TOLD} if isinstance(error, dict) else dict.fromkeys(_TOLD)
    return {name: _plain(value) for name, value in found.items()}


def _plain(value: Any) -> Value:
    if isinstance(value, str):
        return _ADDRESS.sub("0x…", value)
    if isinstance(value, list):
        return [_plain(item) for item in value]
    plain: Value = value
    return plain


def ending(result: Value, error: BaseException | None) -> Value:
    """How a turn ended, as it is stored."""
    return exceptions.encode(error) if error is not None else result
