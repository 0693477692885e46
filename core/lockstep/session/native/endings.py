"""How a turn ended that is made again, beside how it was recorded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from lockstep.log.model import Status, Value
from lockstep.session import difference, exceptions


class Ending(msgspec.Struct, frozen=True):
    """How a turn ended: `status` as in the log, "" where it has not; with what it returned or raised."""

    status: str = ""
    value: Any = None


def differs(
    status: str, recorded: Value, now: Ending, hide: Callable[[Value], Value],
    rest: Callable[[Value], Value] | None = None,
) -> tuple[str, str, str] | None:  # fmt: skip
    """Where a turn ended in another way: path, how it was recorded and how it is. None where it did not.

    status    as recorded; `recorded`: what it returned, or its encoded exception, with its secrets hidden
    rest      gives of what it returns now what the recorded one could, which had begun in its middle
    """
    value = exceptions.encode(now.value) if isinstance(now.value, BaseException) else now.value
    if status != now.status:
        return "end", _told(status, recorded), _told(now.status, hide(value))
    if status == Status.ERROR:
        was, is_ = _failure(recorded), _failure(hide(value))
        return None if was == is_ else ("error", was, is_)
    return difference.first(recorded, hide(rest(value) if rest is not None else value))


def _told(status: str, value: Value) -> str:
    return _failure(value) if status == Status.ERROR else difference.shown(value)


def _failure(encoded: Value) -> str:
    """An exception in a line. A framework makes a text of what failed in it, with a traceback and ids of its own."""
    form: Mapping[str, Any] = encoded if isinstance(encoded, Mapping) else {}
    args = form.get("args")
    said = str(args[0]).split("\n", 1)[0] if isinstance(args, list) and args else ""
    return f"{form.get('name')}: {said}"
