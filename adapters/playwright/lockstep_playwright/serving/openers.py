"""Who opened a WebSocket: the browser tells it by the key of the handshake, which comes to the server too."""

from __future__ import annotations

from typing import Any

from lockstep_playwright.cdp.transport import Transport
from lockstep_playwright.serving.bell import Bell
from lockstep_playwright.targets import Targets

_TOLD = "Network.webSocketWillSendHandshakeRequest"
_LATER = 1.0  # seconds that the browser's word may come behind the handshake itself
_KEY = "sec-websocket-key"
_WITH_DOCUMENT = frozenset({"page", "iframe"})
UNSEEN = "unseen"  # in the place of a lane: what this worker opens could not be recorded


class Openers:
    """Of one browser. Workers are told of where they have sessions."""

    def __init__(self, transport: Transport, targets: Targets) -> None:
        self._targets = targets
        self._lanes: dict[str, str] = {}
        self._bells: set[Bell] = set()
        transport.listen(self._heard)

    async def lane(self, key: str) -> str:
        """The lane that a handshake with this key comes from, "" where nobody told."""
        bell = Bell()
        self._bells.add(bell)
        try:
            while (lane := self._lanes.pop(key, None)) is None:
                if not await bell.heard(_LATER):
                    return ""
            return lane
        finally:
            self._bells.discard(bell)

    def _heard(self, method: str, params: dict[str, Any], session: str) -> None:
        if method != _TOLD:
            return
        target = self._targets.targets.get(session)
        headers = {str(name).lower(): value for name, value in params["request"]["headers"].items()}
        if target is not None and _KEY in headers:
            seen = self._targets.workers or target.kind in _WITH_DOCUMENT
            self._lanes[headers[_KEY]] = target.lane if seen else UNSEEN
            for bell in tuple(self._bells):
                bell.ring()


EVENTS = frozenset({_TOLD})  # what a connection must pass on, for those that have to be told
