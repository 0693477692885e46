"""A network that was never there: exchanges written by hand, served to a page of a real browser.

written(store, [page("<script>…</script>"), answer("/data", "text"), failure("/gone", "net::ERR_CONNECTION_RESET")])
async with browser.served(store) as browsing:
    await browsing.page.goto(ORIGIN)
    browsing.report()
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
from async_browser import browsing

from lockstep.log.model import Event, Kind
from lockstep.log.store import open_store
from lockstep.session.native import Journal
from lockstep.session.native.record import Record
from lockstep.session.native.server import Server
from lockstep.session.report import Report
from lockstep_playwright import connecting, layout
from lockstep_playwright.cdp import sessions
from lockstep_playwright.cdp import socket as own
from lockstep_playwright.hosting import free_port
from lockstep_playwright.network.exchange import Asked, Head
from lockstep_playwright.network.recorder import Recorder
from lockstep_playwright.serving.network import Network

ORIGIN = "http://site.example"
RUN = "playwright/by-hand"
FRAME = "main/page-1/frame"

# Writes one exchange: to a recorder of requests, in the order in which it all came.
type Write = Callable[[Recorder], Any]


def asked(path: str, method: str = "GET", body: bytes = b"", headers: Sequence[tuple[str, str]] = ()) -> Asked:
    """A request as the browser makes it. `path`: or a whole address."""
    url = path if "://" in path else ORIGIN + path
    return Asked(
        id=f"{method} {url}", network="", lane=FRAME, method=method, url=url, headers=tuple(headers), body=body,
        resource="Fetch", frame="",
    )  # fmt: skip


def answer(
    path: str, text: str = "", status: int = 200, *headers: tuple[str, str], method: str = "GET", body: bytes = b"",
    sent: Sequence[tuple[str, str]] = (), decoded: str = "",
) -> list[Write]:  # fmt: skip
    """A request and its whole answer, at once."""
    request = asked(path, method, body, sent)
    return [
        lambda recorder: recorder.asked(request),
        lambda recorder: recorder.answered(request, Head(status=status, headers=headers, decoded=decoded)),
        *([lambda recorder: recorder.part(request, text.encode())] if text else []),
        lambda recorder: recorder.over(request),
    ]


def page(script: str, path: str = "/") -> list[Write]:
    """A document with a script; it has no icon to ask for."""
    html = f'<!doctype html><link rel="icon" href="data:,"><script>{script}</script>'
    return answer(path, html, 200, ("content-type", "text/html"))


def failure(path: str, error: str) -> list[Write]:
    request = asked(path)
    return [lambda recorder: recorder.asked(request), lambda recorder: recorder.over(request, error)]


class Browsing(msgspec.Struct):
    """A page behind a wall. `notes`: what was named; `store`: the path."""

    page: Any
    network: Network
    server: Server
    serving: Any
    notes: list[tuple[str, str]]
    faults: list[str]

    def report(self) -> Report:
        self.serving.finish()
        return self.server.report()


def written(store: Path, exchanges: Sequence[Sequence[Write]], actions: Sequence[int] = ()) -> None:
    """A run of these, one after the other. `actions`: numbers of exchanges before which an action began."""
    asyncio.run(_write(store, exchanges, frozenset(actions)))


async def _write(store: Path, exchanges: Sequence[Sequence[Write]], actions: frozenset[int]) -> None:
    journal = Journal.open(str(store), RUN, layout.meta(RUN, {}, layout.OWN_SOCKET, {}, {}))
    turn = journal.begin_turn(layout.CONTEXT, {})
    recorder = Recorder(journal)
    for number, exchange in enumerate(exchanges):
        if number in actions:
            journal.emit(Kind.CAUSE, FRAME, journal.position(), layout.BEGAN, str(number))
        for write in exchange:
            done = write(recorder)
            if done is not None:
                await done
    turn.end("ok")
    journal.close()
    assert journal.faults == []


class Browser:
    """One browser for all, in a loop of its own."""

    def __init__(self, chromium: str) -> None:
        self._runner = asyncio.Runner()
        self._stack = AsyncExitStack()
        port = free_port()
        self.endpoint = f"http://127.0.0.1:{port}"
        launched = browsing(chromium, args=[f"--remote-debugging-port={port}"])
        self.browser: Any = self.run(self._stack.enter_async_context(launched))

    def run[T](self, work: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(work)

    def close(self) -> None:
        self.run(self._stack.aclose())
        self._runner.close()

    @asynccontextmanager
    async def served(self, store: Path, *, own_socket: bool = True) -> AsyncIterator[Browsing]:
        """What is in the store, served to a page that has nothing else."""
        faults: list[str] = []
        notes: list[tuple[str, str]] = []

        def fault(where: str, error: BaseException) -> None:
            faults.append(f"{where}: {error!r}")

        with open_store(str(store)) as opened:
            record = Record(opened.run(RUN))
            server = Server(record, str(store))
            serving = server.turn(record.turns[0])
            began = [event.pos for _, event in record.heads if _begins(event)]

            def note(source: str, detail: str) -> None:
                notes.append((source, detail))
                server.note(source, detail)

            network = Network(serving, began, [], note)
            await network.start()
            context = await self.browser.new_context(proxy=network.wall.proxy(), ignore_https_errors=True)
            mark = connecting.mark()
            await context.add_cookies([mark])
            transport: Any = await (
                own.connect(self.endpoint, fault) if own_socket else sessions.connect(context, fault)
            )
            name = await connecting.marked(transport, mark)
            linked = await connecting.link(transport, name, network.answerer, None, fault)
            network.know(linked)
            yield Browsing(await context.new_page(), network, server, serving, notes, faults)
            network.pace.close()
            await linked.close()
            await context.close()
            await network.stop()
        assert [*faults, *serving.faults] == [], faults


def _begins(event: Event) -> bool:
    return event.kind is Kind.CAUSE and event.what == layout.BEGAN
