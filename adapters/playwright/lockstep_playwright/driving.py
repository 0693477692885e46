"""Runs a function of a context against a fresh one, in a browser that reaches nothing but us: replays and forks.

    drive = Drive(recorded, own, options, network, told, fault)
    ended = drive.run(target)          # with the sync API
    ended = await drive.arun(target)   # with the async API

The browser is started with the options that the recorded context had, behind a proxy that lets nothing through. What
talks to it is a connection of our own in a loop apart, whatever the recording had.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from lockstep.adapter.native import no_loop
from lockstep.errors import Stop
from lockstep.session.native.endings import Ended
from lockstep_playwright import connecting, contexts, hosting, layout
from lockstep_playwright.actions import Told
from lockstep_playwright.apart import Apart
from lockstep_playwright.attached import Attached, Fault
from lockstep_playwright.hosting import Wanted
from lockstep_playwright.owned import Own
from lockstep_playwright.recorded import Recorded
from lockstep_playwright.serving.network import Network


class Drive:
    """See above.

    apart    the loop of the connection
    differs  what is another thing than when it was recorded, by what it is called
    """

    def __init__(
        self, recorded: Recorded, own: Own, asked: Mapping[str, Any], network: Network, told: Told, fault: Fault,
        apart: Apart, started: Callable[[Any], Any], *, attachments: bool = False,
    ) -> None:  # fmt: skip
        """`asked`: what the turn was begun with, with its secrets. `told` hears of the function's actions, with what
        people look at if `attachments`; `started` is given the context when it is there."""
        self._started = started
        self._attachments = attachments
        self.apart = apart
        self.differs: dict[str, str] = {}
        self._recorded = recorded
        self._own = own
        self._asked = asked
        self._network = network
        self._told = told
        self._fault = fault

    def run(self, target: Callable[[Any], Any]) -> Ended:
        """With the sync API."""
        try:
            self.apart.run(self._network.start())
            with hosting.opened(self._wanted()) as host:
                for _ in range(self._blank()):
                    host.context.new_page()
                mark = connecting.mark()
                host.context.add_cookies([mark])
                attached = Attached(host.context, host.endpoint, self._fault, self.apart)
                host.context._sync(self._begin(attached, mark))
                try:
                    ended = Ended(target(host.context))
                except BaseException as error:
                    ended = _ended(error)
                host.context._sync(self._end(attached))
            return ended
        finally:
            self.apart.run(self._network.stop())
            self.apart.close()

    async def arun(self, target: Callable[[Any], Any]) -> Ended:
        """With the async API."""
        try:
            await self.apart.arun(self._network.start())
            async with hosting.aopened(self._wanted()) as host:
                for _ in range(self._blank()):
                    await host.context.new_page()
                mark = connecting.mark()
                await host.context.add_cookies([mark])
                attached = Attached(host.context, host.endpoint, self._fault, self.apart)
                await self._begin(attached, mark)
                try:
                    ended = Ended(await target(host.context))
                except BaseException as error:
                    ended = _ended(error)
                await self._end(attached)
            return ended
        finally:
            await self.apart.arun(self._network.stop())
            self.apart.close()

    def _blank(self) -> int:
        """How many pages the recorded context had when it was tapped, as a persistent one has from the start."""
        found = self._asked.get("blank")
        return found if isinstance(found, int) else 0

    def _wanted(self) -> Wanted:
        own = self._own
        keywords = contexts.keywords(self._asked.get("options") or {}, layout.storage_state(self._asked))
        if own.endpoint:
            keywords |= {"proxy": self._network.wall.proxy(), "ignore_https_errors": True}
        headless = own.headless if own.headless is not None else self._recorded.browser.get("headless") is not False
        return Wanted(
            executable=own.executable, endpoint=own.endpoint, headless=headless, args=self._network.switches(),
            options=keywords,
        )  # fmt: skip

    async def _begin(self, attached: Attached, mark: Mapping[str, str]) -> None:
        """In Playwright's loop: from here on the context is served."""
        name, about = await attached.reach(mark)
        options = self._asked.get("options") or {}
        self.differs = contexts.differences(self._recorded.browser, contexts.browser(options, about))
        linked = await attached.link(
            name, self._network.answerer, self._recorded.shim(), workers=self._recorded.own_socket
        )
        self._network.know(linked)
        await attached.watch(self._told, attachments=self._attachments)
        self._started(attached.context)

    async def _end(self, attached: Attached) -> None:
        """In Playwright's loop: the function is through."""
        await attached.drain()
        self._network.pace.close()
        await attached.unlink()
        attached.close()


def _ended(error: BaseException) -> Ended:
    """Raises what is no business of the function's."""
    if isinstance(error, KeyboardInterrupt | SystemExit | asyncio.CancelledError):
        raise error
    return Ended(None, error, isinstance(error, Stop))


def is_async(target: Any) -> bool:
    """Whether a function of a context wants one of the async API."""
    called = getattr(target, "__call__", None)  # noqa: B004 - of an object, what it is called by
    return inspect.iscoroutinefunction(target) or inspect.iscoroutinefunction(called)


def refuse_loop(target: Any, instead: str) -> None:
    """Raises TargetError LS402 where an async function would need a loop of its own, and one is running."""
    if is_async(target):
        no_loop("the function of a context is async", instead)
