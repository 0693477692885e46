"""What is attached to one browser context: a connection to its browser, and a watch on what the agent does with it.

    attached = Attached(context, endpoint, fault)
    name, about = await attached.reach(mark)              # all of it in Playwright's loop
    await attached.link(name, answerer, shim)
    await attached.watch(told)
    …
    await attached.unlink()

With an endpoint the connection is our own and lives in a loop apart, so that it goes on while the agent does something
else; without one it is Playwright's, in Playwright's loop.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from typing import Any

from lockstep_playwright import connecting
from lockstep_playwright.actions import Told, Watch
from lockstep_playwright.actions.driven import settle
from lockstep_playwright.apart import Apart
from lockstep_playwright.cdp import sessions, socket
from lockstep_playwright.cdp.transport import Transport
from lockstep_playwright.connecting import Linked
from lockstep_playwright.network.answerer import Answerer
from lockstep_playwright.shim.shim import Shim

type Fault = Callable[[str, BaseException], Any]


class Attached:
    """See above. `context`: of either API; `transport`: None until it is reached."""

    def __init__(self, context: Any, endpoint: str, fault: Fault, apart: Apart | None = None) -> None:
        """`context`: of either API. `fault` is told what goes wrong later, in any thread. `apart`: a loop that is there
        already, and stays; else one is made where it is needed."""
        self.transport: Transport | None = None
        self.context = context
        self._endpoint = endpoint
        self._fault = fault
        self._apart = apart or (Apart() if endpoint else None)
        self._keeps = apart is not None
        self._linked: Linked | None = None
        self._watch: Watch | None = None

    @property
    def full(self) -> bool:
        """Whether workers are reached too."""
        return self._apart is not None

    async def there[T](self, work: Coroutine[Any, Any, T]) -> T:
        """What it returns or raises, run in the loop of the connection."""
        return await (work if self._apart is None else self._apart.arun(work))

    async def reach(self, mark: Mapping[str, str]) -> tuple[str, dict[str, Any]]:
        """Connects. The browser's own name of the context, which has the cookie `mark`, and what it says of itself.
        Raises OSError, CdpError, AdapterError."""
        return await self.there(self._reach(mark))

    async def _reach(self, mark: Mapping[str, str]) -> tuple[str, dict[str, Any]]:
        made: Transport
        if self._apart is not None:
            made = await socket.connect(self._endpoint, self._fault)
        else:
            made = await sessions.connect(self.context, self._fault)
        self.transport = made
        return await connecting.marked(made, mark), await made.send("Browser.getVersion")

    async def link(self, name: str, answerer: Answerer, shim: Shim | None, *, workers: bool = True) -> Linked:
        """Has an answerer decide on what the context asks. `shim`, `workers`: see `connecting.link`. Raises
        CdpError."""
        assert self.transport is not None
        linked = await self.there(connecting.link(self.transport, name, answerer, shim, self._fault, workers=workers))
        self._linked = linked
        return linked

    async def watch(self, told: Told, *, attachments: bool = True) -> None:
        """Has the agent's actions told. Raises AdapterError LS410."""
        self._watch = Watch(self.context, told, attachments=attachments, abreast=self._abreast)
        await self._watch.attach()

    def _abreast(self, then: Callable[[], None]) -> None:
        """Calls it, in Playwright's loop, once the connection has told of all answers that were over by now. A page may
        have had the last of one before we hear so, and what it did with that would be over before it came."""
        linked, loop = self._linked, self.context._impl_obj._loop
        if linked is None or not linked.intercept.unended():
            then()
        elif self._apart is None:
            settle(loop, linked.abreast(), lambda _: then())
        else:

            def heard(_: object) -> None:
                with suppress(RuntimeError):  # the program is at its end
                    loop.call_soon_threadsafe(then)

            self._apart.start(linked.abreast()).add_done_callback(heard)

    async def unlink(self) -> None:
        """Lets go of the browser, while it is there: what is held goes on, or fails."""
        linked, self._linked = self._linked, None
        if linked is not None:
            await self.there(linked.close())

    async def drain(self) -> None:
        """Returns once all actions that have ended are told."""
        if self._watch is not None:
            await self._watch.drain()

    def tell_rest(self) -> None:
        """See `Watch.tell_rest`."""
        if self._watch is not None:
            self._watch.tell_rest()

    def close(self) -> None:
        """Ends what is still there, without waiting for a browser that may be gone. Of any thread."""
        watch, self._watch = self._watch, None
        if watch is not None:
            watch.detach()
        linked, self._linked = self._linked, None
        if self._apart is not None:
            if linked is not None:
                self._apart.finish(linked.close(), self._fault)
            if not self._keeps:
                self._apart.close()
        elif linked is not None:
            self._let_go(linked, watch)

    def _let_go(self, linked: Linked, watch: Watch | None) -> None:
        """Of Playwright's own connection, whose loop is still on where other contexts are."""
        loop = self.context._impl_obj._loop
        if loop.is_running():
            task = loop.create_task(linked.close())
            task.add_done_callback(self._gone)
            if watch is not None:
                watch.closes(task)

    def _gone(self, task: Any) -> None:
        if not task.cancelled() and task.exception() is not None:
            self._fault("the end of a connection", task.exception())
