"""What both connections to a browser are to all above: commands to a session, events of a session.

    socket.Socket       our own WebSocket to a browser that has a DevTools port: every target, every domain
    sessions.Sessions   sessions of Playwright's own connection: the browser and its pages, no worker

A session is a string: "" is the browser's own, the others are announced by `Target.attachedToTarget`, over both
connections. Events come in the browser's order, one call of each handler an event, in the loop of the connection.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

type Params = Mapping[str, Any]
type Handler = Callable[[str, dict[str, Any], str], None]  # method, params, session
type Fault = Callable[[str, BaseException], Any]
type Hears[T] = Mapping[str, Callable[[T, dict[str, Any], str], None]]  # by method: what of an object is told of it

# What a command is told whose session, request or target is gone by now: all of them end by themselves.
_GONE = (
    "Session with given id not found",
    "Invalid InterceptionId",
    "No target with given id found",
    "Target closed",
    "has been closed",
    "Not attached to an active page",
    "Inspected target navigated or closed",
    "Connection closed",
)


class CdpError(Exception):
    """The browser refused a command, or the connection to it is gone. `method`: the command."""

    def __init__(self, method: str, message: str) -> None:
        super().__init__(f"{method}: {message}")
        self.method = method
        self.message = message

    @property
    def gone(self) -> bool:
        """Whether what the command was about had ended by itself: a page closed, a request cancelled."""
        return any(text in self.message for text in _GONE)


def handler[T](owner: T, hears: Hears[T], fault: Fault) -> Handler:
    """Has an object told of the events that its table names. `fault` is told what goes wrong there."""

    def heard(method: str, params: dict[str, Any], session: str) -> None:
        told = hears.get(method)
        if told is not None:
            try:
                told(owner, params, session)
            except Exception as error:
                fault(method, error)

    return heard


class Transport(Protocol):
    """A connection to one browser. Used in its own loop only.

    full    whether every target can be reached, workers too, and is held before its first line of code runs
    closed  whether nothing more can be sent: the browser is gone, or `close` was called
    """

    full: bool
    closed: bool

    async def send(self, method: str, params: Params | None = None, session: str = "") -> dict[str, Any]:
        """Sends a command and returns its result. Raises CdpError."""
        ...

    def post(self, method: str, params: Params | None = None, session: str = "") -> None:
        """Sends a command whose result nobody needs, in order with all others. What goes wrong is told to `failed`,
        unless its session or request was gone."""
        ...

    def listen(self, handler: Handler) -> None:
        """Has every event told to this handler too. A handler must not raise and cannot wait."""
        ...

    async def attach(self) -> None:
        """Announces every target there is, and each that comes, by `Target.attachedToTarget`. Raises CdpError."""
        ...

    def attach_to(self, session: str) -> None:
        """The same for what a target makes: its frames of other sites, its workers. Where `full`."""
        ...

    async def close(self) -> None:
        """Lets go of the browser, which goes on."""
        ...
