"""Replays of a browser's run: the function that drove the context drives a fresh one, and no request leaves.

The browser is started for it, with the options that the recorded context had, behind a proxy that lets nothing through;
what it asks is answered from the record. Each action has to be the recorded one, and to leave the page as it was then.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from lockstep.adapter.native import Played, ReplayOptions
from lockstep.errors import Code, Stop, TargetError
from lockstep.log.store import RunReader
from lockstep.session import coverage
from lockstep.session.native.server import Server
from lockstep.session.report import Coverage
from lockstep_playwright import connecting, contexts, hosting, layout
from lockstep_playwright.apart import Apart
from lockstep_playwright.attached import Attached
from lockstep_playwright.hosting import Wanted
from lockstep_playwright.owned import Own, own_of
from lockstep_playwright.playing import Player
from lockstep_playwright.recorded import Recorded
from lockstep_playwright.serving.network import Network


def replay(reader: RunReader, target: Any, options: ReplayOptions) -> Played:
    """Replays a branch of a browser's run. Raises TargetError LS402 where it cannot begin."""
    session = Session(reader, target, options)
    if is_async(target):
        if asyncio._get_running_loop() is not None:
            raise TargetError(Code.BAD_TARGET, "an event loop is running here: await lockstep.areplay instead")
        return asyncio.run(session.arun())
    return hosting.in_thread_if_needed(session.run)


async def areplay(reader: RunReader, target: Any, options: ReplayOptions) -> Played:
    """The same under a running loop, in which an async function runs."""
    session = Session(reader, target, options)
    if is_async(target):
        return await session.arun()
    return await asyncio.get_running_loop().run_in_executor(None, session.run)


def is_async(target: Any) -> bool:
    """Whether a function of a context wants one of the async API."""
    return inspect.iscoroutinefunction(target) or inspect.iscoroutinefunction(getattr(target, "__call__", None))  # noqa: B004


class Session:
    """One replay: what it goes by, and what has come of it so far."""

    def __init__(self, reader: RunReader, target: Callable[[Any], Any], options: ReplayOptions) -> None:
        self.recorded = Recorded(reader)
        self.options = options
        self.own: Own = own_of(options.own)
        _refuse(self.recorded, options)
        self.target = target
        self.server = Server(self.recorded.record, options.store, deadline=options.deadline)
        self.serving = self.server.turn(self.recorded.turn)
        self.apart = Apart()
        self.network = Network(self.serving, self.recorded.began, self.server.note)
        self.player = Player(self.recorded, self.serving, self.network.pace, self.apart, strict=self.own.strict)
        self.asked = self.recorded.asked(self.server.reveal)
        self.differs: dict[str, str] = {}
        self.results: list[Any] = []
        self.error: BaseException | None = None

    # Running.

    def run(self) -> Played:
        """With the sync API."""
        try:
            self.apart.run(self.network.start())
            with hosting.opened(self._wanted()) as host:
                mark = connecting.mark()
                host.context.add_cookies([mark])
                attached = Attached(host.context, host.endpoint, self.fault, self.apart)
                host.context._sync(self._begin(attached, mark))
                try:
                    self._ended(self.target(host.context), None)
                except BaseException as error:
                    self._ended(None, error)
                host.context._sync(self._end(attached))
            return self._played()
        finally:
            self._close()

    async def arun(self) -> Played:
        """With the async API."""
        try:
            await self.apart.arun(self.network.start())
            async with hosting.aopened(self._wanted()) as host:
                mark = connecting.mark()
                await host.context.add_cookies([mark])
                attached = Attached(host.context, host.endpoint, self.fault, self.apart)
                await self._begin(attached, mark)
                try:
                    self._ended(await self.target(host.context), None)
                except BaseException as error:
                    self._ended(None, error)
                await self._end(attached)
            return self._played()
        finally:
            self._close()

    def _wanted(self) -> Wanted:
        keywords = contexts.keywords(self.asked.get("options") or {}, layout.storage_state(self.asked))
        if self.own.endpoint:
            keywords["proxy"] = self.network.wall.proxy()
        return Wanted(
            executable=self.own.executable, endpoint=self.own.endpoint, headless=self._headless(),
            args=tuple(self.network.switches()), options=keywords,
        )  # fmt: skip

    def _headless(self) -> bool:
        if self.own.headless is not None:
            return self.own.headless
        return self.recorded.browser.get("headless") is not False

    async def _begin(self, attached: Attached, mark: Mapping[str, str]) -> None:
        """In Playwright's loop: from here on the context is served."""
        name, about = await attached.reach(mark)
        options = self.asked.get("options") or {}
        self.differs = contexts.differences(self.recorded.browser, contexts.browser(options, about))
        linked = await attached.link(
            name, self.network.answerer, self.recorded.shim(), workers=self.recorded.own_socket
        )
        self.network.know(linked)
        await attached.watch(self.player, attachments=False)

    async def _end(self, attached: Attached) -> None:
        """In Playwright's loop: the function is through."""
        await attached.drain()
        self.player.over = True
        self.network.pace.close()
        await attached.unlink()
        attached.close()

    def _ended(self, result: Any, error: BaseException | None) -> None:
        if isinstance(error, KeyboardInterrupt | SystemExit | asyncio.CancelledError):
            raise error
        if error is None:
            self.results.append(result)
        elif not isinstance(error, Stop):
            self.error = error

    def fault(self, where: str, error: BaseException) -> None:
        self.server.faults.append(f"{where}: {type(error).__name__}: {error}")

    def _close(self) -> None:
        self.apart.run(self.network.stop())
        self.apart.close()

    # The end.

    def _played(self) -> Played:
        self.player.finish()
        server, latch = self.server, self.server.latch
        report = server.report(steps=len(self.player.compared))
        covered = (*report.coverage, *(Coverage(what, coverage.DIFFERS, 0, how) for what, how in self.differs.items()))
        # What the page asked after the last action is nobody's: the recorded context was open longer, or less long.
        identical = latch.difference is None and not server.notes and not report.faults
        report = msgspec.structs.replace(report, identical=identical, coverage=covered)
        return Played(report=report, results=self.results, error=self.error)


def _refuse(recorded: Recorded, options: ReplayOptions) -> None:
    """What a replay of a browser has not."""
    if options.depth != "call":
        raise TargetError(
            Code.BAD_TARGET,
            f"depth {options.depth!r} is nothing that a browser's run has: its function runs, in a real browser",
        )
    if options.turn not in (None, 1):
        raise TargetError(Code.BAD_TARGET, f"{recorded.address} has no turn {options.turn}: a browser's run has one")
    if options.until is not None and not 0 <= options.until < len(recorded.record.steps):
        raise TargetError(
            Code.BAD_TARGET,
            f"{recorded.address} has no step {options.until}: its last is {len(recorded.record.steps) - 1}",
        )
