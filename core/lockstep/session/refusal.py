"""What is said of a call that may not run past a fork point: which one, why, how it differs from what was recorded,
and both ways out."""

from __future__ import annotations

import shlex
from typing import Any

from lockstep.log.model import Value
from lockstep.session import difference, inference, mcp
from lockstep.session.policy import Declared, Tail
from lockstep.session.unused import UNANSWERABLE, Nearest

_CALL = 120  # characters of a call
_ARGUMENT = 40  # and of one of its arguments
_PLACES = 200  # of all places that differ; the first is whole


def text(
    kind: str, name: str, request: Value, declared: Declared, nearest: Nearest | None, *, tail: Tail = "", at: str = ""
) -> str:
    """Four short lines. `name` and `request` with their secrets hidden.

    tail  as the policy has it
    at    the address by which the call could be answered, without the run; "" where it has none
    """
    only = ", --tail record answers from the record only," if tail == "record" else ""
    lines = [
        f"{brief(kind, name, request)} would run for real",
        f"it is {declared.effect} ({declared.where}){only} and {_why(kind, nearest)}",
        f"let it run:    --live {shlex.quote(called(kind, name, request))}",
    ]
    if at:
        lines.append(f"or answer it:  --set {at}=JSON")
    return "\n".join(lines)


def called(kind: str, name: str, request: Value) -> str:
    """The name by which `--live` allows a call like this one."""
    asked: dict[str, Any] = request if isinstance(request, dict) else {}
    if "url" not in asked:
        return name
    return (inference.model(asked) if kind == "model" else mcp.tool(asked)) or name


def brief(kind: str, name: str, request: Value) -> str:
    """A call on a line: `tool issue_refund(order=452, cents=4500)`."""
    asked: dict[str, Any] = request if isinstance(request, dict) else {}
    arguments = asked.get("arguments")
    if isinstance(arguments, dict):
        given = ", ".join(
            f"{key}={difference.cut(difference.shown(value), _ARGUMENT)}" for key, value in arguments.items()
        )
        return difference.cut(f"{kind} {name}({given})", _CALL)
    if isinstance(arguments, list):
        listed = ", ".join(difference.cut(difference.shown(value), _ARGUMENT) for value in arguments)
        return difference.cut(f"{kind} {name}({listed})", _CALL)
    if "url" in asked:
        more = f" {difference.shown(asked['body'])}" if asked.get("body") else ""
        return difference.cut(f"{kind} {name}{more}", _CALL)
    command = asked.get("shell", asked.get("argv"))
    if command is not None:
        return difference.cut(
            f"{kind} {shlex.join(map(str, command)) if isinstance(command, list) else command}", _CALL
        )
    return difference.cut(f"{kind} {name}{f' {difference.shown(request)}' if request is not None else ''}", _CALL)


def _why(kind: str, nearest: Nearest | None) -> str:
    if nearest is None:
        return "the recorded run has no such call"
    if not nearest.differs:
        if kind in UNANSWERABLE:
            return f"a recorded {kind} does not answer for another"
        used = "has answered another one" if nearest.used else "was never answered"
        return f"the recorded call like it {used}"
    places = ""
    for path, was, now in nearest.differs:
        place = f"{path.removeprefix('arguments.') or 'it'} {was} → {now}"
        if places and len(places) + len(place) > _PLACES:
            break
        places += f", {place}" if places else place
    return f"differs from the recorded call ({places})"
