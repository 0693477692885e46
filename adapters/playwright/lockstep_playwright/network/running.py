"""What comes of requests that are made for real goes into their calls, when it is recorded and past the cut of a fork.

Has the methods of an `Answerer` that tell of answers.
"""

from __future__ import annotations

from lockstep.log.model import Status
from lockstep.session.call import Call
from lockstep_playwright.network.exchange import Asked, Head


class Running:
    """The calls of the exchanges that are on. Of one that it does not have, nothing is kept."""

    def __init__(self) -> None:
        self._calls: dict[str, Call] = {}

    def begin(self, asked: Asked, call: Call) -> None:
        """This call is the request's, from now on."""
        self._calls[asked.id] = call

    def answered(self, asked: Asked, head: Head) -> None:
        """See `Answerer.answered`."""
        call = self._calls.get(asked.id)
        if call is not None:
            call.part(head.part())

    def part(self, asked: Asked, data: bytes) -> None:
        """See `Answerer.part`."""
        call = self._calls.get(asked.id)
        if call is not None:
            call.part(data)

    def over(self, asked: Asked, error: str = "", *, cancelled: bool = False) -> None:
        """See `Answerer.over`."""
        call = self._calls.pop(asked.id, None)
        if call is None:
            return
        if cancelled:
            call.end(Status.CANCELLED)
        elif error:
            call.end(Status.ERROR, {"error": error})
        else:
            call.end(Status.OK)
