"""Bodies that come piece by piece, as the Network domain passes them on while the page reads them.

The browser is asked for them while the answer is still held, so that no piece is missed. Where it does not do that (it
comes too late over some connections), the caller has the whole body to fall back upon.
"""

from __future__ import annotations

from base64 import b64decode
from typing import Any

from lockstep.log import untapped
from lockstep_playwright.cdp.transport import CdpError, Fault, Transport

type Pieces = list[tuple[bytes, int]]  # with the time of each: ns of the system's monotonic clock


class Streams:
    """The bodies of one browser that are streamed."""

    def __init__(self, transport: Transport, fault: Fault) -> None:
        self._transport = transport
        self._fault = fault

    async def begin(self, request: str, session: str) -> Pieces | None:
        """Has a body streamed; what has come of it already. None where the browser does not do it."""
        try:
            found = await self._transport.send("Network.streamResourceContent", {"requestId": request}, session)
        except CdpError:
            return None
        data = b64decode(found.get("bufferedData") or "")
        return [(data, untapped.monotonic_ns())] if data else []

    def data(self, params: dict[str, Any]) -> Pieces:
        """The piece that an event tells of."""
        told = params.get("data")
        return [(b64decode(told), untapped.monotonic_ns())] if told else []
