"""A context whose network is recorded, over either connection, and what of it was recorded.

with opened(chromium) as browsed:                       # one browser, for many tests
    async def browse() -> None:
        async with browsed.recorded(SOCKET) as taken:
            page = await taken.context.new_page()
            …
    browsed.run(browse())
taken.exchanges                 # what was asked and answered, in the order in which it was asked
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import msgspec
from async_browser import browsing
from playwright.async_api import Browser, BrowserContext

from lockstep.log.model import Kind
from lockstep.session.native import Memory
from lockstep_playwright import connecting
from lockstep_playwright.cdp import sessions
from lockstep_playwright.cdp import socket as own
from lockstep_playwright.cdp.transport import Transport
from lockstep_playwright.hosting import free_port
from lockstep_playwright.network.recorder import Recorder

SOCKET, SESSIONS = "socket", "sessions"
BACKENDS = (SOCKET, SESSIONS)


class Exchange(msgspec.Struct, frozen=True):
    """One call: `head`, `pieces` and `end` as they are stored, `body` all bytes together. `status`: how it ended, ""
    for one that is still on."""

    lane: str
    kind: str
    name: str
    request: dict[str, Any]
    head: dict[str, Any]
    pieces: list[Any]
    status: str
    end: Any

    @property
    def path(self) -> str:
        return "/" + self.request["url"].split("/", 3)[3]

    @property
    def body(self) -> bytes:
        return b"".join(self.pieces)

    @property
    def cookies(self) -> list[str]:
        return [value for name, value in self.head["headers"] if name.lower() == "set-cookie"]


class Taken:
    """What is recorded. `faults`: what went wrong, in words; none in a good test."""

    def __init__(self, browser: Browser, context: BrowserContext) -> None:
        self.browser = browser
        self.context = context
        self.journal = Memory()
        self.faults: list[str] = []
        self.transport: Transport

    def fault(self, where: str, error: BaseException) -> None:
        self.faults.append(f"{where}: {error!r}")

    @property
    def exchanges(self) -> list[Exchange]:
        events = self.journal.events
        found = []
        for begin in events:
            if begin.kind is Kind.BEGIN:
                of = [event for event in events if event.of == begin.pos]
                parts: list[Any] = [event.body for event in of if event.kind is Kind.PART]
                head = parts.pop(0) if parts and isinstance(parts[0], dict) and "status" in parts[0] else {}
                end = next((event for event in of if event.kind is Kind.END), None)
                request: Any = begin.body["request"]  # type: ignore[index,call-overload]
                status, value = ("", None) if end is None else (str(end.what), end.body)
                found.append(Exchange(begin.lane, begin.what, begin.name, request, head, parts, status, value))
        return [each for each in found if each.path != "/favicon.ico"]

    def of(self, path: str) -> list[Exchange]:
        """Those of one path, its query included."""
        return [each for each in self.exchanges if each.path == path]

    def one(self, path: str) -> Exchange:
        found = self.of(path)
        assert len(found) == 1, [each.name for each in found]
        return found[0]


class Browsed:
    """One browser with a DevTools port, in a loop of its own."""

    def __init__(self, runner: asyncio.Runner, browser: Browser, endpoint: str) -> None:
        self.run = runner.run
        self._browser = browser
        self.endpoint = endpoint

    @asynccontextmanager
    async def recorded(self, backend: str) -> AsyncIterator[Taken]:
        """A context that is recorded, and ends with it."""
        context = await self._browser.new_context()
        taken = Taken(self._browser, context)
        if backend == SOCKET:
            taken.transport = await own.connect(self.endpoint, taken.fault)
        else:
            taken.transport = await sessions.connect(context, taken.fault)
        mark = connecting.mark()
        await context.add_cookies([mark])  # type: ignore[list-item]
        name = await connecting.marked(taken.transport, mark)
        linked = await connecting.link(taken.transport, name, Recorder(taken.journal), None, taken.fault)
        try:
            yield taken
        finally:
            await context.close()
            await linked.close()
        assert not taken.faults
        assert not taken.journal.faults


@contextmanager
def opened(chromium: str) -> Iterator[Browsed]:
    with asyncio.Runner() as runner:
        port = free_port()
        browsing_ = browsing(chromium, args=[f"--remote-debugging-port={port}"])
        browser = runner.run(browsing_.__aenter__())
        try:
            yield Browsed(runner, browser, f"http://127.0.0.1:{port}")
        finally:
            runner.run(browsing_.__aexit__(None, None, None))
