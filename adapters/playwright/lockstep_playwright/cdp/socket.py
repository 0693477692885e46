"""Our own WebSocket to a browser with a DevTools port: all of its targets over one connection.

It stands beside Playwright's own connection or that of any other client, and disturbs neither.
"""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

from lockstep_playwright.cdp.line import Line, dial
from lockstep_playwright.cdp.transport import CdpError, Handler, Params

_CLOSED = "Connection closed"
# The browser's own pages, of which a headless one has some too, and what only wraps a page.
_NOT_PAGES = ("browser", "browser_ui", "tab", "webview")
_ATTACH = {
    "autoAttach": True,
    "waitForDebuggerOnStart": True,
    "flatten": True,
    "filter": [*({"type": kind, "exclude": True} for kind in _NOT_PAGES), {}],
}

type Failed = Callable[[str, BaseException], None]


class Socket:
    """See `Transport`. `url`: where it is connected to."""

    full = True

    def __init__(self, line: Line, url: str, failed: Failed) -> None:
        """For `connect`."""
        self.url = url
        self.closed = False
        self._line = line
        self._failed = failed
        self._numbers = itertools.count(1)
        self._waiting: dict[int, tuple[str, asyncio.Future[dict[str, Any]] | None]] = {}
        self._handlers: list[Handler] = []
        line.serve(self._told, self._over)

    async def send(self, method: str, params: Params | None = None, session: str = "") -> dict[str, Any]:
        """See `Transport.send`."""
        answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._put(method, params, session, answer)
        return await answer

    def post(self, method: str, params: Params | None = None, session: str = "") -> None:
        """See `Transport.post`."""
        with suppress(CdpError):  # the browser is gone, and with it what this was about
            self._put(method, params, session, None)

    def listen(self, handler: Handler) -> None:
        """See `Transport.listen`."""
        self._handlers.append(handler)

    async def attach(self) -> None:
        """See `Transport.attach`."""
        await self.send("Target.setAutoAttach", _ATTACH)

    def attach_to(self, session: str) -> None:
        """See `Transport.attach_to`."""
        self.post("Target.setAutoAttach", _ATTACH, session)

    async def close(self) -> None:
        """See `Transport.close`. What was posted is sent before."""
        self.closed = True
        await self._line.close()

    def _put(self, method: str, params: Params | None, session: str, answer: Any) -> None:
        if self.closed:
            raise CdpError(method, _CLOSED)
        number = next(self._numbers)
        message: dict[str, Any] = {"id": number, "method": method, "params": params or {}}
        if session:
            message["sessionId"] = session
        self._waiting[number] = method, answer
        self._line.say(message)

    def _over(self) -> None:
        self.closed = True
        waiting, self._waiting = self._waiting, {}
        for method, answer in waiting.values():
            if answer is not None and not answer.done():
                answer.set_exception(CdpError(method, _CLOSED))
        for handler in self._handlers:
            handler("Transport.closed", {}, "")

    def _told(self, message: Mapping[str, Any]) -> None:
        if "id" not in message:
            for handler in self._handlers:
                handler(message["method"], message.get("params") or {}, message.get("sessionId") or "")
            return
        method, answer = self._waiting.pop(message["id"], ("", None))
        error = message.get("error")
        if error is not None:
            failure = CdpError(method, str(error.get("message") or error))
            if answer is None:
                if not failure.gone:
                    self._failed(method, failure)
            elif not answer.done():
                answer.set_exception(failure)
        elif answer is not None and not answer.done():
            answer.set_result(message.get("result") or {})


async def connect(endpoint: str, failed: Failed) -> Socket:
    """Connects to a browser: "http://127.0.0.1:9222", or the WebSocket URL that it prints. `failed` is told of posted
    commands that the browser refuses. Raises OSError, websockets.exceptions.WebSocketException."""
    url = endpoint if urlsplit(endpoint).scheme in ("ws", "wss") else await _found(endpoint)
    return Socket(await dial(url), url, failed)


async def _found(endpoint: str) -> str:
    """The WebSocket URL of the browser itself, from what its port tells."""
    parts = urlsplit(endpoint)
    host, port = parts.hostname or "127.0.0.1", parts.port or (443 if parts.scheme == "https" else 80)
    reader, writer = await asyncio.open_connection(host, port, ssl=parts.scheme == "https" or None)
    try:
        # Chromium answers to an address or localhost only, whatever name led here.
        writer.write(f"GET /json/version HTTP/1.1\r\nHost: localhost:{port}\r\nConnection: close\r\n\r\n".encode())
        head = await reader.readuntil(b"\r\n\r\n")
        length = next((int(line[15:]) for line in head.lower().splitlines() if line.startswith(b"content-length:")), 0)
        found = urlsplit(json.loads(await reader.readexactly(length))["webSocketDebuggerUrl"])
    except (EOFError, ValueError, KeyError, TypeError, asyncio.LimitOverrunError) as error:
        raise OSError(f"{endpoint} is no browser's DevTools port: its answer is another one") from error
    finally:
        writer.close()
    return f"{'wss' if parts.scheme == 'https' else 'ws'}://{host}:{port}{found.path}"
