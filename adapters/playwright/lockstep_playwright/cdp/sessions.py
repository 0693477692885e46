"""Playwright's own connection to its browser: a session of the browser and one of each page, nothing else to launch.

What it does not reach: workers of any kind (their requests are held all the same, by the browser's session), and the
first moments of a popup, which Playwright tells of late. Pages cannot be kept from running before all is set up.

With both APIs it runs in Playwright's loop, on the objects beneath them. With the sync API that loop turns only while
the program is inside a call of Playwright's: until then pages wait for what they have asked. Commands go as messages of
our own: the client would look at the stack for each, and check it against its schema, while a page waits.

Tried with Playwright 1.60, 1.64 and 1.65.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextvars import copy_context
from typing import Any

from lockstep.errors import AdapterError, Code
from lockstep.session.lanes import INSIDE, ours
from lockstep_playwright.actions.pipe import Pipe, Then
from lockstep_playwright.cdp.transport import CdpError, Handler, Params

TRIED = "1.60 to 1.65"
_NEEDS = ("new_cdp_session", "pages", "on")  # of a context

type Failed = Callable[[str, BaseException], None]


class Sessions:
    """See `Transport`, and `connect`."""

    full = False

    def __init__(self, context: Any, browser: Any, pipe: Pipe, failed: Failed) -> None:
        """For `connect`: what is beneath the API's context, and a session of its browser."""
        self.closed = False
        self._pipe = pipe
        self._context = context
        self._failed = failed
        self._handlers: list[Handler] = []
        self._sessions: dict[str, Any] = {}
        self._begun = 0
        self._frames: dict[str, set[Any]] = {}  # by page: frames that have loaded something, and have not been tried
        self._swapped: set[str] = set()  # pages of which a frame has moved to a process of its own
        self._tasks: set[asyncio.Task[Any]] = set()
        self._waiting: set[asyncio.Future[dict[str, Any]]] = set()
        self._inside = copy_context()
        self._inside.run(INSIDE.set, True)
        self._listen_to("", browser)

    async def send(self, method: str, params: Params | None = None, session: str = "") -> dict[str, Any]:
        """See `Transport.send`."""
        answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()

        def told(result: dict[str, Any] | None, error: str) -> None:
            if answer.done():
                return
            if result is None:
                answer.set_exception(CdpError(method, error))
            else:
                answer.set_result(result.get("result") or {})

        self._waiting.add(answer)
        try:
            self._put(method, params, session, told)
            return await answer
        finally:
            self._waiting.discard(answer)

    def post(self, method: str, params: Params | None = None, session: str = "") -> None:
        """See `Transport.post`."""

        def told(result: dict[str, Any] | None, error: str) -> None:
            if result is None and not (failure := CdpError(method, error)).gone:
                self._failed(method, failure)

        if not self.closed:
            self._put(method, params, session, told)

    def listen(self, handler: Handler) -> None:
        """See `Transport.listen`."""
        self._handlers.append(handler)

    async def attach(self) -> None:
        """See `Transport.attach`: the pages of the context, and each that it gets."""
        pages = list(self._context.pages)
        self._context.on("page", self._page_made)
        for page in pages:
            await self._attach(page, f"page-{self._number()}")

    def attach_to(self, session: str) -> None:
        """See `Transport.attach_to`: nothing of that is reached."""

    async def close(self) -> None:
        """See `Transport.close`."""
        if self.closed:
            return
        self.closed = True
        self._context.remove_listener("page", self._page_made)
        if self._tasks:
            await asyncio.wait(self._tasks)
        for session in [*self._sessions.values()]:
            try:
                await session.detach()
            except Exception as error:
                if not CdpError("", str(error)).gone:
                    self._failed("letting go of a page", error)

    # Commands.

    def _begin[T](self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.get_running_loop().create_task(work, context=self._inside)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _put(self, method: str, params: Params | None, session: str, told: Then) -> None:
        target = self._sessions.get(session)
        if target is None:
            told(None, "Session with given id not found")
        else:
            ours(self._pipe.ask)(target._guid, "send", {"method": method, "params": dict(params or {})}, told)

    # Targets.

    def _number(self) -> int:
        self._begun += 1
        return self._begun

    def _page_made(self, page: Any) -> None:
        self._begin(self._attach(page, f"page-{self._number()}"))

    async def _attach(self, page: Any, name: str, parent: str = "") -> None:
        """Makes a session of a page, or of a frame that has a process of its own, and announces it."""
        try:
            session = await self._context.new_cdp_session(page)
        except Exception as error:
            if not parent and not CdpError("", str(error)).gone:
                self._failed("a page", error)
            return
        try:
            self._listen_to(name, session)
            session.on("close", lambda *_: self._ended(name))
            info = (await self.send("Target.getTargetInfo", {}, name))["targetInfo"]
        except Exception as error:
            if not CdpError("", str(error)).gone:
                self._failed("a page", error)
            return
        if not parent:
            page.on("framenavigated", lambda frame: self._frame_navigated(frame, name))
        told = {"sessionId": name, "targetInfo": info, "waitingForDebugger": False}
        self._tell("Target.attachedToTarget", told, parent)

    def _frame_navigated(self, frame: Any, page: str) -> None:
        if frame.parent_frame is not None:
            self._frames.setdefault(page, set()).add(frame)
            self._try_frames(page)

    def _try_frames(self, page: str) -> None:
        """Most frames are of their page's process, and have no session: they are tried only where one has moved. Which
        it is, only the browser's name says, that Playwright does not tell."""
        if page in self._swapped:
            for frame in self._frames.pop(page, ()):
                self._begin(self._attach(frame, f"{page}-frame-{self._number()}", page))

    def _listen_to(self, name: str, session: Any) -> None:
        self._sessions[name] = session
        session.on("event", lambda event: self._told(event, name))

    def _told(self, event: Any, name: str) -> None:
        method, params = event["method"], event.get("params") or {}
        if method == "Page.frameDetached" and params.get("reason") == "swap":
            self._swapped.add(name)
            self._try_frames(name)
        self._tell(method, params, name)

    def _tell(self, method: str, params: dict[str, Any], session: str) -> None:
        for handler in self._handlers:
            handler(method, params, session)

    def _ended(self, name: str) -> None:
        self._sessions.pop(name, None)
        if name:
            self._tell("Target.detachedFromTarget", {"sessionId": name}, "")
        else:
            self.closed = True
            for answer in tuple(self._waiting):
                if not answer.done():
                    answer.set_exception(CdpError("", "Connection closed"))


async def connect(context: Any, failed: Failed) -> Sessions:
    """Makes a connection for a context of either API, in Playwright's loop. `failed` is told of posted commands that
    the browser refuses. Raises AdapterError LS410 for a version that it does not fit, LS411 for another browser than
    Chromium."""
    beneath: Any = getattr(context, "_impl_obj", None)
    missing = [name for name in _NEEDS if not hasattr(beneath, name)]
    browser: Any = getattr(beneath, "browser", None)
    make = getattr(browser, "new_browser_cdp_session", None)
    if missing or (browser is not None and make is None):
        what = ", ".join(missing) or "new_browser_cdp_session"
        raise AdapterError(Code.UNFIT_FRAMEWORK, f"this version of Playwright has no {what} (tried: {TRIED})")
    if make is None:
        raise AdapterError(
            Code.UNSUPPORTED,
            "a persistent context has no session of its browser: launch it with --remote-debugging-port=PORT, and tap "
            'it with endpoint="http://127.0.0.1:PORT"',
        )
    try:
        session = await make()
    except Exception as error:
        raise AdapterError(
            Code.UNSUPPORTED,
            f"only Chromium speaks the DevTools protocol ({error}); for Firefox and WebKit there is the wire depth: "
            "record the whole program with `lockstep record -- CMD`",
        ) from error
    made = Sessions(beneath, session, Pipe.of(beneath), failed)
    session.on("close", lambda *_: made._ended(""))
    browser.on("disconnected", lambda *_: made._ended(""))
    beneath._connection.on("close", lambda *_: made._ended(""))
    return made
