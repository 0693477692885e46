"""WebSockets of a browser, as they are told: what was opened by whom, each frame, and how it ended.

    sockets = Sockets(transport, targets, recorder, fault)
    sockets.start()                   # before targets are attached to, whose `prepare` asks this one's


Frames are the Network domain's, which does not say how a socket ended. A script of ours (`closing.js`) does, where it
was there before the page's first one; else the end has no code.

Tried with Chromium 156.
"""

from __future__ import annotations

import asyncio
import json
from base64 import b64decode
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import msgspec

from lockstep.log.model import Value
from lockstep_playwright.cdp.transport import Fault, Hears, Params, Transport, handler
from lockstep_playwright.network.exchange import Headers
from lockstep_playwright.targets import Target, Targets

BINDING = "__lockstep_socket"
_TEXT = 1  # the opcode
_BEHIND = 1.0  # seconds that a page may be busy before it hears that a socket has closed
_WITH_DOCUMENT = frozenset({"page", "iframe"})


class Told(Protocol):
    """Who is told. The methods must not raise. `name` is the socket's, unique in the browser."""

    def opened(self, name: str, lane: str, url: str, protocols: tuple[str, ...]) -> None:
        """The handshake is on its way."""
        ...

    def accepted(self, name: str, status: int, headers: Headers) -> None:
        """The server has answered it: with 101, or it refused."""
        ...

    def frame(self, name: str, frame: dict[str, Value]) -> None:
        """{"from": "page" or "server", "text" or "base64": …}"""
        ...

    def ended(self, name: str, how: dict[str, Value], *, cancelled: bool = False) -> None:
        """{"code", "reason", "clean", "by"} as the page was told, as far as that is known; `cancelled`: the page is
        gone, and was told nothing."""
        ...


class _Socket(msgspec.Struct):
    name: str
    session: str
    url: str
    lane: str
    told: bool = False  # that it is opened
    closed: bool = False  # as the browser says
    how: dict[str, Value] | None = None  # as the page was told


class Sockets:
    """See above."""

    def __init__(self, transport: Transport, targets: Targets, told: Told, fault: Fault) -> None:
        self._transport = transport
        self._targets = targets
        self._told = told
        self._fault = fault
        self._open: dict[str, _Socket] = {}

    def start(self) -> None:
        """From now on they are told of."""
        self._transport.listen(handler(self, _TOLD, self._fault))
        self._targets.when_gone(self._target_gone)

    def prepare(self, target: Target) -> Iterable[tuple[str, Params]]:
        """See `lockstep_playwright.targets.Prepare`."""
        if target.kind in _WITH_DOCUMENT:
            yield "Runtime.enable", {}  # without it, only the document that is there gets the binding
        yield "Runtime.addBinding", {"name": BINDING}
        if target.kind in _WITH_DOCUMENT:
            yield "Page.addScriptToEvaluateOnNewDocument", {"source": script(), "runImmediately": True}
        elif target.waiting:
            yield "Runtime.evaluate", {"expression": script()}

    def _created(self, params: dict[str, Any], session: str) -> None:
        target = self._targets.targets.get(session)
        if target is not None:
            name = params["requestId"]
            # A service worker is told of in each of its sessions.
            self._open.setdefault(name, _Socket(name, session, params["url"], target.lane))

    def _asked(self, params: dict[str, Any], session: str) -> None:
        socket = self._of(params, session)
        if socket is None or socket.told:
            return
        headers = {name.lower(): value for name, value in params["request"]["headers"].items()}
        offered = headers.get("sec-websocket-protocol", "").split(",")
        self._is_told(socket, tuple(filter(None, map(str.strip, offered))))

    def _is_told(self, socket: _Socket, protocols: tuple[str, ...] = ()) -> None:
        if not socket.told:
            socket.told = True
            self._told.opened(socket.name, socket.lane, socket.url, protocols)

    def _accepted(self, params: dict[str, Any], session: str) -> None:
        socket = self._of(params, session)
        if socket is not None:
            self._is_told(socket)
            answer = params["response"]
            self._told.accepted(socket.name, int(answer["status"]), tuple(answer["headers"].items()))

    def _sent(self, params: dict[str, Any], session: str) -> None:
        self._frame(params, session, "page")

    def _received(self, params: dict[str, Any], session: str) -> None:
        self._frame(params, session, "server")

    def _frame(self, params: dict[str, Any], session: str, sender: str) -> None:
        socket = self._of(params, session)
        if socket is None:
            return
        frame = params["response"]
        content = "text" if frame["opcode"] == _TEXT else "base64"
        self._told.frame(socket.name, {"from": sender, content: frame["payloadData"]})

    def _closed(self, params: dict[str, Any], session: str) -> None:
        socket = self._of(params, session)
        if socket is not None:
            socket.closed = True
            self._end(socket)

    def _page_told(self, params: dict[str, Any], session: str) -> None:
        if params.get("name") != BINDING:
            return
        how = json.loads(params["payload"])
        url = how.pop("url")
        # Of several to one address, those that the browser has closed come first: it closes, and then the page hears.
        waiting = [
            socket for socket in self._open.values()
            if socket.session == session and socket.url == url and socket.how is None
        ]  # fmt: skip
        socket = next((each for each in waiting if each.closed), next(iter(waiting), None))
        if socket is not None:
            socket.how = how
            self._end(socket)

    def _end(self, socket: _Socket) -> None:
        """Once both have said that it is over. The page's word is waited for a while: it may have begun before our
        script was there."""
        if not socket.closed:
            return
        if socket.how is None and self._tells(socket.session):
            asyncio.get_running_loop().call_later(_BEHIND, self._over, socket)
        else:
            self._over(socket)

    def _over(self, socket: _Socket) -> None:
        if self._open.pop(socket.name, None) is not None:
            self._is_told(socket)
            self._told.ended(socket.name, socket.how or {})

    def _tells(self, session: str) -> bool:
        target = self._targets.targets.get(session)
        return target is not None and (target.kind in _WITH_DOCUMENT or target.waiting)

    def _target_gone(self, session: str) -> None:
        for socket in [each for each in self._open.values() if each.session == session]:
            del self._open[socket.name]
            self._is_told(socket)
            self._told.ended(socket.name, {}, cancelled=True)

    def _of(self, params: dict[str, Any], session: str) -> _Socket | None:
        socket = self._open.get(params["requestId"])
        return socket if socket is not None and socket.session == session else None


@cache
def script() -> str:
    """What tells how sockets end, for a realm that has the binding."""
    return Path(__file__).with_name("closing.js").read_text(encoding="utf-8")


def data(frame: dict[str, Any]) -> bytes:
    """What a frame carries."""
    return b64decode(frame["base64"]) if "base64" in frame else str(frame["text"]).encode("utf-8", "surrogatepass")


_TOLD: Hears[Sockets] = {
    "Network.webSocketCreated": Sockets._created,
    "Network.webSocketWillSendHandshakeRequest": Sockets._asked,
    "Network.webSocketHandshakeResponseReceived": Sockets._accepted,
    "Network.webSocketFrameSent": Sockets._sent,
    "Network.webSocketFrameReceived": Sockets._received,
    "Network.webSocketClosed": Sockets._closed,
    "Runtime.bindingCalled": Sockets._page_told,
}
