"""Records a browser's network: each exchange is a call in the lane of who asked, for which nothing waits.

intercept = Intercept(transport, targets, Recorder(journal, fault), fault)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lockstep.log.model import Status
from lockstep.session.call import Call
from lockstep.session.native.calls import Calls
from lockstep_playwright.layout import HTTP
from lockstep_playwright.network import requests
from lockstep_playwright.network.exchange import Asked, Decision, Go, Head

type Fault = Callable[[str, BaseException], Any]


class Recorder:
    """Is an `Answerer`. `calls`: those of a journal, which all run for real. `asks`: how many requests are on now."""

    recording = True

    def __init__(self, calls: Calls, fault: Fault) -> None:
        self._calls = calls
        self._fault = fault
        self._open: dict[str, Call] = {}

    @property
    def asks(self) -> int:
        return len(self._open)

    async def asked(self, asked: Asked) -> Decision:
        """See `Answerer.asked`."""
        told = requests.told(asked)
        call = self._calls.call(asked.lane, HTTP)
        call.ask(told.name, told.request, told.key)
        self._open[asked.id] = call
        return Go()

    def answered(self, asked: Asked, head: Head) -> None:
        """See `Answerer.answered`."""
        call = self._open.get(asked.id)
        if call is not None:
            call.part(head.part())

    def part(self, asked: Asked, data: bytes, when: int = 0) -> None:
        """See `Answerer.part`."""
        call = self._open.get(asked.id)
        if call is not None:
            call.part(data)

    def over(self, asked: Asked, error: str = "", *, cancelled: bool = False) -> None:
        """See `Answerer.over`."""
        call = self._open.pop(asked.id, None)
        if call is None:
            return
        if cancelled:
            call.end(Status.CANCELLED)
        elif error:
            call.end(Status.ERROR, {"error": error})
        else:
            call.end(Status.OK)
