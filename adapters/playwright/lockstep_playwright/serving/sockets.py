"""WebSockets of a replay: the browser has a real one, and the record talks to it.

    sockets = Sockets(calls, pace, lane_of, note)
    wall = Wall(sockets.converse)

What the page says is compared with what it said when it was recorded, frame by frame; what the server said comes when
its turn comes, after what the page had said before. A conversation that had no end goes on until the page ends it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from websockets.http11 import Request

from lockstep.errors import Stop
from lockstep.session.native.calls import Calls
from lockstep_playwright.network import requests
from lockstep_playwright.serving.client import Client
from lockstep_playwright.serving.conversation import Conversation
from lockstep_playwright.serving.line import Line
from lockstep_playwright.serving.matching import Note, match
from lockstep_playwright.serving.openers import UNSEEN
from lockstep_playwright.serving.pace import Pace
from lockstep_playwright.serving.passing import pass_on

type LaneOf = Callable[[str], Awaitable[str]]


class Sockets:
    """Those of one browser. Used in the loop of its wall."""

    def __init__(self, calls: Calls, pace: Pace | None, lane_of: LaneOf, note: Note) -> None:
        """`lane_of`: the lane that opened a socket, by the key of its handshake, "" where nobody knows."""
        self._calls = calls
        self._pace = pace
        self._lane_of = lane_of
        self._note = note

    async def converse(self, line: Line, origin: str) -> bool:
        """Takes a connection on which a WebSocket may be opened. Whether it was."""
        client = Client(line)
        request = await client.opened()
        if request is None:
            line.abort()
            return False
        lane = await self._lane_of(request.headers.get("Sec-WebSocket-Key", ""))
        if lane == UNSEEN:
            self._note("websocket", f"{_url(origin, request)} of a worker: Playwright's own connection tells of none")
            line.abort()
            return True
        said = request.headers.get("Sec-WebSocket-Protocol", "").split(",")
        offered = tuple(each.strip() for each in said if each.strip())
        try:
            found = await match(self._calls, lane, requests.socket(_url(origin, request), offered), self._note)
            if found.call.live:
                await pass_on(client, request, origin, found.call)
            elif found.recorded is None:
                line.abort()  # an answer past the cut of a fork: there is no conversation to go on with
            else:
                await Conversation(client, found, self._pace).play(request, offered)
        except Stop:
            line.abort()  # as a server that is not there
        return True


def _url(origin: str, request: Request) -> str:
    scheme, _, authority = origin.partition("://")
    default = ":80" if scheme == "ws" else ":443"
    return f"{scheme}://{authority.removesuffix(default)}{request.path}"
