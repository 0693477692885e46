"""Records a browser's network: each exchange is a call in the lane of who asked, for which nothing waits.

intercept = Intercept(transport, targets, Recorder(journal, fault), fault)
"""

from __future__ import annotations

from lockstep.log.model import Status, Value
from lockstep.session.call import Call
from lockstep.session.native.calls import Calls
from lockstep_playwright.layout import HTTP, SOCKET
from lockstep_playwright.network import requests
from lockstep_playwright.network.exchange import Asked, Decision, Go, Head, Headers
from lockstep_playwright.network.running import Running
from lockstep_playwright.network.sockets import Told


class Recorder:
    """Is an `Answerer`, and `Told` of sockets. `calls`: those of a journal, which all run for real."""

    recording = True

    def __init__(self, calls: Calls) -> None:
        self.sockets: Told | None = self
        self._calls = calls
        self._running = Running()
        self._sockets: dict[str, Call] = {}

    async def asked(self, asked: Asked) -> Decision:
        """See `Answerer.asked`. What no page asks for, and may be there in one run and not in the next, is no part of
        any."""
        if requests.is_icon(asked):
            return Go()
        told = requests.told(asked)
        call = self._calls.call(asked.lane, HTTP)
        call.ask(told.name, told.request, told.key, declared=told.declared)
        self._running.begin(asked, call)
        return Go()

    def answered(self, asked: Asked, head: Head) -> None:
        """See `Answerer.answered`."""
        self._running.answered(asked, head)

    def part(self, asked: Asked, data: bytes, when: int = 0) -> None:
        """See `Answerer.part`."""
        self._running.part(asked, data)

    def over(self, asked: Asked, error: str = "", *, cancelled: bool = False) -> None:
        """See `Answerer.over`."""
        self._running.over(asked, error, cancelled=cancelled)

    # WebSockets.

    def opened(self, name: str, lane: str, url: str, protocols: tuple[str, ...]) -> None:
        """See `Told.opened`."""
        call = self._sockets[name] = self._calls.call(lane, SOCKET)
        told = requests.socket(url, protocols)
        call.ask(told.name, told.request, told.key)

    def accepted(self, name: str, status: int, headers: Headers) -> None:
        """See `Told.accepted`."""
        pairs: list[Value] = [[key, value] for key, value in headers]
        self._sockets[name].part({"status": status, "headers": pairs})

    def frame(self, name: str, frame: dict[str, Value]) -> None:
        """See `Told.frame`."""
        self._sockets[name].part(frame)

    def ended(self, name: str, how: dict[str, Value], *, cancelled: bool = False) -> None:
        """See `Told.ended`."""
        call = self._sockets.pop(name)
        if cancelled:
            call.end(Status.CANCELLED)
        else:
            call.end(Status.OK, how)
