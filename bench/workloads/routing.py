"""What one writes by hand to record and replay pages by Playwright's events and `context.route`."""

from __future__ import annotations

import asyncio
import sys
from collections import defaultdict, deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from playwright.async_api import Error, Request, Response, Route, WebSocket, WebSocketRoute, async_playwright

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "playwright"))

from observing import aobserve

HELD = 2.0  # seconds after which a body is taken for one that has no end

type Key = tuple[str, str, bytes]


class Log:
    """Answers by request, in their order, and frames by the URL of the socket."""

    def __init__(self) -> None:
        self.answers: dict[Key, deque[tuple[int, dict[str, str], bytes] | None]] = defaultdict(deque)
        self.sockets: dict[str, deque[list[tuple[str, str | bytes]]]] = defaultdict(deque)


def key(request: Request) -> Key:
    # What a form with a file sends is only told of a request that is held.
    multipart = request.headers.get("content-type", "").startswith("multipart/")
    return request.method, request.url, b"" if multipart else request.post_data_buffer or b""


async def recorded(chromium: str, url: str, patience: int) -> tuple[dict[str, Any], Log]:
    log = Log()
    reading: list[asyncio.Task[None]] = []

    async def read(response: Response) -> None:
        kept: list[Any] = [response.status, await response.all_headers(), b""]
        place: Any = log.answers[key(response.request)]
        place.append(kept)
        with suppress(Error, TimeoutError):
            async with asyncio.timeout(HELD):
                kept[2] = await response.body()

    def failed(request: Request) -> None:
        log.answers[key(request)].append(None)

    def opened(socket: WebSocket) -> None:
        frames: list[tuple[str, str | bytes]] = []
        log.sockets[socket.url].append(frames)
        socket.on("framesent", lambda data: frames.append(("page", data)))
        socket.on("framereceived", lambda data: frames.append(("server", data)))

    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=chromium)
        context = await browser.new_context()
        context.on("response", lambda response: reading.append(asyncio.ensure_future(read(response))))
        context.on("requestfailed", failed)
        context.on("page", lambda page: page.on("websocket", opened))
        seen = await aobserve(context, url, patience)
        await asyncio.gather(*reading)
        await browser.close()
    return seen, log


async def replayed(chromium: str, url: str, patience: int, log: Log) -> dict[str, Any]:
    async def serve(route: Route) -> None:
        answers = log.answers[key(route.request)]
        answer = answers.popleft() if answers else None
        if answer is None:
            await route.abort()
            return
        status, headers, body = answer
        dropped = {"transfer-encoding", "content-length"}
        kept = {name: value for name, value in headers.items() if name not in dropped}
        await route.fulfill(status=status, headers=kept, body=body)

    async def talk(socket: WebSocketRoute) -> None:
        conversations = log.sockets[socket.url]
        frames = deque(conversations.popleft() if conversations else [])

        def go_on(_: str | bytes = "") -> None:
            while frames and frames[0][0] == "server":
                socket.send(frames.popleft()[1])
            if frames:
                frames.popleft()
            else:
                asyncio.ensure_future(socket.close())  # noqa: RUF006

        socket.on_message(go_on)

    again: dict[str, Any] = {}
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=chromium)
        context = await browser.new_context()
        await context.route("**/*", serve)
        await context.route_web_socket("**/*", talk)
        with suppress(Error):
            await aobserve(context, url, patience, again)
        await browser.close()
    return again


def until_it_fails(look: Callable[[], object]) -> None:
    """What a page cannot be told ends the look, not the program."""
    from playwright.sync_api import Error as SyncError

    with suppress(SyncError):
        look()
