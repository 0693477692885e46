"""What the sockets of a realm tell, and what is said to those that are served.

`Runtime.bindingCalled` with the name BINDING brings `told(params)`; the event's `executionContextId`, with its session,
is the realm. A realm's sockets are numbered from 1 as it makes them.

    open      one was made: `url`, `protocols`
    closed    recording: it has closed, with `code`, `reason`, `clean` (frames: see the Network domain)
    sent      serving: the page sent `text` or `base64`
    closing   serving: the page closes it, with `code` (None: none was said) and `reason`

Served sockets only do what they are told, by `say(number, …)`: the parameters of a `Runtime.evaluate` in that realm.
"""

from __future__ import annotations

import json
from typing import Any, Literal

import msgspec

BINDING = "__lockstep"


class Told(msgspec.Struct, frozen=True):
    """One event of a socket. What does not belong to the event is as it is by default."""

    socket: int
    event: Literal["open", "sent", "closing", "closed"]
    url: str = ""
    protocols: tuple[str, ...] = ()
    text: str | None = None
    base64: str | None = None
    code: int | None = None
    reason: str = ""
    clean: bool = False


def told(params: dict[str, Any]) -> Told | None:
    """What a `Runtime.bindingCalled` says; None if it is somebody else's."""
    if params.get("name") != BINDING:
        return None
    try:
        return msgspec.json.decode(params["payload"], type=Told)
    except msgspec.DecodeError:
        return None  # a page that found the binding and plays with it


def opened(protocol: str = "") -> dict[str, Any]:
    """The connection is there."""
    return {"opened": protocol}


def frame(data: dict[str, Any]) -> dict[str, Any]:
    """The server sends: {"text"} or {"base64"}."""
    return {name: data[name] for name in ("text", "base64") if name in data}


def failed() -> dict[str, Any]:
    """The connection fails; `closed` follows."""
    return {"error": True}


def closed(code: int, reason: str = "", clean: bool = True) -> dict[str, Any]:
    """It is closed."""
    return {"closed": {"code": code, "reason": reason, "clean": clean}}


def live() -> dict[str, Any]:
    """It is opened for real after all, and goes on by itself."""
    return {"live": True}


def say(socket: int, what: dict[str, Any], context: int) -> dict[str, Any]:
    """The parameters of `Runtime.evaluate` that say `what` to a socket of the realm `context`."""
    expression = f"globalThis[Symbol.for('lockstep')]?.socket?.({socket}, {json.dumps(what)})"
    return {"expression": expression, "contextId": context}
