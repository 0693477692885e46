"""Our own WebSocket to a browser with a DevTools port: all of its targets over one connection.

It stands beside Playwright's own connection or that of any other client, and disturbs neither.

Tried with websockets 16 and 17.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

import msgspec

from lockstep_playwright.cdp.transport import CdpError, Handler, Params

# A body of 100 MB is 134 MB of base64 in one message, and nothing else bounds what a page loads.
_LARGEST = 1 << 30
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

    def __init__(self, connection: Any, url: str, failed: Failed) -> None:
        """For `connect`."""
        self.url = url
        self.closed = False
        self._connection = connection
        self._failed = failed
        self._numbers = itertools.count(1)
        self._waiting: dict[int, tuple[str, asyncio.Future[dict[str, Any]] | None]] = {}
        self._handlers: list[Handler] = []
        self._out: list[bytes] = []
        self._bell = asyncio.Event()
        self._tasks = [asyncio.ensure_future(self._read()), asyncio.ensure_future(self._write())]

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
        if not self.closed:
            self.closed = True
            self._bell.set()
            await asyncio.wait(self._tasks[1:])
        await self._connection.close()
        await asyncio.wait(self._tasks)

    def _put(self, method: str, params: Params | None, session: str, answer: Any) -> None:
        if self.closed:
            raise CdpError(method, _CLOSED)
        number = next(self._numbers)
        message: dict[str, Any] = {"id": number, "method": method, "params": params or {}}
        if session:
            message["sessionId"] = session
        self._waiting[number] = method, answer
        self._out.append(msgspec.json.encode(message))
        self._bell.set()

    async def _write(self) -> None:
        """One task writes, so that commands leave in their order however many want to send."""
        from websockets.exceptions import ConnectionClosed

        try:
            while True:
                await self._bell.wait()
                self._bell.clear()
                out, self._out = self._out, []
                for command in out:
                    await self._connection.send(command, text=True)
                if self.closed and not self._out:
                    return
        except ConnectionClosed:
            return  # the reader sees it too

    async def _read(self) -> None:
        from websockets.exceptions import ConnectionClosed

        try:
            while True:
                self._told(msgspec.json.decode(await self._connection.recv(decode=False)))
        except ConnectionClosed:
            pass
        finally:
            self.closed = True
            self._bell.set()
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
    from websockets.asyncio.client import connect as dial

    url = endpoint if urlsplit(endpoint).scheme in ("ws", "wss") else await _found(endpoint)
    # The default of a proxy from the environment is for servers elsewhere.
    connection = await dial(url, max_size=_LARGEST, max_queue=None, compression=None, ping_interval=None, open_timeout=30, proxy=None)
    return Socket(connection, url, failed)


async def _found(endpoint: str) -> str:
    """The WebSocket URL of the browser itself, from what its port tells."""
    parts = urlsplit(endpoint)
    host, port = parts.hostname or "127.0.0.1", parts.port or (443 if parts.scheme == "https" else 80)
    reader, writer = await asyncio.open_connection(host, port, ssl=parts.scheme == "https" or None)
    try:
        # Chromium answers to an address or localhost only, whatever name led here.
        writer.write(f"GET /json/version HTTP/1.1\r\nHost: localhost:{port}\r\nConnection: close\r\n\r\n".encode())
        head, _, body = (await reader.read(1 << 20)).partition(b"\r\n\r\n")
    finally:
        writer.close()
    if b" 200 " not in head.split(b"\r\n")[0]:
        raise OSError(f"{endpoint} is no browser's DevTools port: it answered {head.splitlines()[:1]!r}")
    found = urlsplit(msgspec.json.decode(body)["webSocketDebuggerUrl"])
    return f"{'wss' if parts.scheme == 'https' else 'ws'}://{host}:{port}{found.path}"
