"""Holds every request of the tapped contexts until an answerer has decided on it, and tells what came of it.

    intercept = Intercept(transport, targets, answerer, fault=session_fault)
    await intercept.start()           # before the first page loads
    …
    await intercept.stop()            # what is still held goes on, for real where it is recorded

Of the browser's Fetch domain, at both stages: a request is told before it leaves, an answer before the page sees it, so
that nothing of a body is lost to a navigation. Requests of other contexts go on untouched.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lockstep_playwright.cdp.transport import Transport
from lockstep_playwright.network.answerer import Answerer

type Fault = Callable[[str, BaseException], Any]


class Intercept:
    """See above. `answerer` may be set to another one while it runs: requests that are held then have been told to the
    old one, which is told of them until they are over."""

    def __init__(self, transport: Transport, targets: Any, answerer: Answerer, fault: Fault) -> None:
        """`fault` is told what goes wrong here: a request that it befalls goes on."""
        self.answerer = answerer
        self._transport = transport
        self._targets = targets
        self._fault = fault

    async def start(self) -> None:
        """Holds all requests from now on. Pages that are open already are held from their next navigation on."""
        raise NotImplementedError  # the interface, for those who write to it: follows within the hour

    async def stop(self) -> None:
        """Lets go of all that is held, and holds nothing more."""
        raise NotImplementedError
