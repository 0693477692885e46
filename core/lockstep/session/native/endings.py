"""How a turn ended that is made again, beside how it was recorded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from lockstep.errors import Code
from lockstep.log.model import Status, Value
from lockstep.session import difference, exceptions

if TYPE_CHECKING:
    from lockstep.session.native.ran import Ran, Recorded, RecordedStep
    from lockstep.session.native.serving import Serving


class Ending(msgspec.Struct, frozen=True):
    """How a turn ended: `status` as in the log, "" where it has not; with what it returned or raised."""

    status: str = ""
    value: Any = None


class Ended(msgspec.Struct, frozen=True):
    """What came of having a turn made again, for who had it made: what it returned, or what it raised by itself; or
    that it was `stopped`."""

    result: Any = None
    error: BaseException | None = None
    stopped: bool = False


class Terms(msgspec.Struct, frozen=True):
    """How an adapter speaks of what its turns have to come to.

    kind    what a step is of: "message", "task"
    absent  that one was not made again: "a recorded message was never said"
    rest    of a turn that was gone on with by its state (`Ran.restored`): `rest(value, recorded)` gives of what is
            returned now what the recorded one could, which had begun in the middle
    """

    kind: str
    absent: str
    rest: Callable[[Value, Value], Value] | None = None


def absent(serving: Serving, step: RecordedStep, terms: Terms) -> None:
    """Latches that a recorded step was not made again."""
    name = step.event.name
    serving.differs(
        Code.MISSING, terms.absent, lane=step.event.lane, kind=terms.kind, name=name, at=step.pos, expected=name,
        actual="(nothing)", source="",
    )  # fmt: skip


def compare(
    serving: Serving, recorded: Recorded, run: Ran, now: Ending, hide: Callable[[Value], Value], terms: Terms
) -> None:  # fmt: skip
    """Latches that a turn ended in another way than when it was recorded, where it did."""
    was, rest = recorded.result(run), terms.rest
    part = (lambda value: rest(value, was)) if rest is not None and run.restored else None
    found = differs(run.status, was, now, hide, part)
    if found is not None:
        path, before, after = found
        serving.differs(
            Code.END, "the turn ended in another way than when it was recorded", lane="", kind="turn",
            name=run.entry, path=path, expected=before, actual=after, source="",
        )  # fmt: skip


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
