"""Watches one browser context: what its program does becomes actions, told with the state of the page behind them.

Of each action on a page:

    it begins      its page is looked at, by a message that leaves just before its own
    it is over     its step closes, before another action begins on the page; and the page is looked at again, once its
                   document has been parsed. The program goes on meanwhile; its next action on the same page leaves when
                   that is done. What waits by itself (expect, wait_for_…) and what only reads does not wait for us

So what the program sees is what it would see without us, in the same order, and each page's state is taken between the
same two actions in every run.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

from lockstep.log import untapped
from lockstep.session import sites
from lockstep_playwright.actions import alone, methods, pictures, values
from lockstep_playwright.actions.driven import Called, Pause, Until, drive, later, settle
from lockstep_playwright.actions.looking import SETTLING, Looker, State
from lockstep_playwright.actions.methods import ACTION, READ
from lockstep_playwright.actions.model import Action, Told
from lockstep_playwright.actions.pipe import Message, Pipe, Sent
from lockstep_playwright.actions.underway import Page, Underway

_AGENT = "subject_agent.py"  # of the conformance tests: a user like any other
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
PATIENCE = (
    2.0  # seconds that a replayed page has to become as it was recorded, and that a close waits for the last look
)
_AGAIN = 0.02

type Abreast = Callable[[Callable[[], None]], object]
_LOOKS = frozenset({"expect", "wait for"})  # what an action of these verbs finds, it did not make


class Watch:
    """See the package. One for each context."""

    def __init__(
        self, context: Any, told: Told, *, looks: bool = True, attachments: bool = True, abreast: Abreast | None = None
    ) -> None:
        """
        context      a `BrowserContext` of either API
        told         hears of its actions
        looks        whether pages are asked for their state before and behind each action. False: nothing is asked
        attachments  whether an accessibility snapshot and a picture are taken behind each action that changed the page
        abreast      calls what it is given once everything is told that came, on other ways, before an action was over
        """
        self._context = getattr(context, "_impl_obj", context)
        self._told = told
        self._looks = looks
        self._attachments = looks and attachments
        self._abreast = abreast
        self._pipe: Pipe | None = None
        self._pages: dict[str, Page] = {}
        self._open: dict[Any, Underway] = {}  # by the number of its message
        self._ended: deque[Underway] = deque()  # in the order in which they ended, until they are told
        self._closing: deque[Underway] = deque()  # likewise, until it is told that they are over
        self._telling = False
        self._count = 0
        self._failure: BaseException | None = None  # what the next call is to raise
        self._idle: list[Callable[[], None]] = []

    async def attach(self) -> None:
        """Begins to watch. Raises AdapterError where this version of Playwright lacks what is needed."""
        pipe = self._pipe = Pipe.of(self._context)
        pipe.fault = self._told.fault
        for page in list(getattr(self._context, "_pages", ())):
            self._page(page)
        pipe.watch(self._context._guid, self)

    async def drain(self) -> None:
        """Returns once all that has ended is told. It does not wait longer than a moment for a page."""
        if self._pipe is None or not self._busy():
            return
        done = self._pipe.loop.create_future()
        self.drained(lambda: done.done() or done.set_result(None))
        await done

    def detach(self) -> None:
        """Watches no longer. What is still on is not told."""
        if self._pipe is not None:
            self._pipe.unwatch(self._context._guid, self)

    def closes(self, task: Any) -> None:
        """See `Pipe.closes`."""
        if self._pipe is not None:
            self._pipe.closes(task)

    def tell_rest(self) -> None:
        """Tells what has ended, without the page behind it where that has not been seen: nobody will any more."""
        for underway in self._ended:
            underway.over = underway.complete = True
        self._close()
        self._tell()

    # What the pipe tells.

    def sending(self, sent: Sent) -> bool:
        kind, method = sent.object._type, sent.message["method"]
        found = methods.known(kind, method)
        if found is None or _is_ours(sent, kind):
            return self.passing(sent.object, sent.message)
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure
        page = self._page_of(sent.object)
        underway = Underway(sent, found, page, untapped.monotonic_ns())
        self._open[sent.id] = underway
        if page is None:
            return self._begin(underway)
        if page.held or page.holds(found):
            page.held.append(underway)
            return False
        return self._begin(underway)

    def passing(self, object: Any, message: Message) -> bool:
        if message["method"] == "close" and object is self._context and self._busy():
            assert self._pipe is not None
            self.drained(partial(self._pipe.forward, message))
            return False
        aborted = (message.get("params") or {}).get("id") if message["method"] == "__abort__" else None
        underway = self._open.get(aborted) if aborted is not None else None
        if underway is not None and underway.page is not None and not underway.left:
            underway.behind.append(message)
            return False
        return True

    def replied(self, id: Any, reply: Message) -> None:
        underway = self._open.get(id)
        if underway is None:
            return
        if underway.action is not None and underway.action.kind == READ:
            self._edit(underway.action, reply)
        self._label(underway, reply.get("result"))
        assert self._pipe is not None
        underway.came(reply, self._pipe.object)
        if underway.sent.zone is None:
            self._over(underway)

    def _edit(self, action: Action, reply: Message) -> None:
        try:
            given = self._told.given(action)
            if given is not None:
                values.give(reply, given)
        except Exception as error:
            self._told.fault("what a read gives", error)

    def _label(self, underway: Underway, result: Any) -> None:
        """Objects of the page that a call gave are known by that call from now on."""
        if not isinstance(result, dict) or underway.action is None:
            return
        of = values.label(underway.action.arguments)
        given = [result.get("element"), result.get("handle")]
        for channel in given:
            if isinstance(channel, dict) and self._pipe is not None:
                values.name_handle(self._pipe.object(channel.get("guid", "")), of)
        for number, channel in enumerate(result.get("elements") or ()):
            if isinstance(channel, dict) and self._pipe is not None:
                values.name_handle(self._pipe.object(channel.get("guid", "")), f"{of} [{number}]")

    def ended(self, zone: Any) -> None:
        for underway in list(self._open.values()):
            if underway.sent.zone is zone:
                self._over(underway)

    def happened(self, object: Any, method: str, params: Message) -> None:
        if method == "__create__" and params.get("type") == "Page":
            assert self._pipe is not None
            page = self._pipe.object(params["guid"])
            if page is not None:
                self._page(page)
            return
        if method == "__create__" and params.get("type") == "Dialog":
            # Which page it is of is not told with it.
            for each in self._pages.values():
                each.looker.stand_still()
            return
        if object._type != "Frame":
            return
        known = self._page_of(object)
        if known is None or not known.looker.is_main(object):
            return
        if method == "navigated" and params.get("newDocument"):
            known.looker.navigated()
        elif method == "loadstate" and params.get("add") == "domcontentloaded":
            known.looker.loaded()

    def drained(self, then: Callable[[], object]) -> None:
        """Calls `then` once nothing is left to tell, or after a moment."""
        assert self._pipe is not None
        once = [then]

        def go() -> None:
            if once:
                once.pop()()

        if not self._busy():
            go()
            return
        self._idle.append(go)
        later(self._pipe.loop, 2 * PATIENCE, go)  # a look that waits for a page takes its time first

    # Pages.

    def _page(self, implementation: Any) -> Page:
        assert self._pipe is not None
        guid = implementation._guid
        page = self._pages.get(guid)
        if page is None:
            looker = Looker(self._pipe, self._context._guid, implementation, self._told.hide)
            page = self._pages[guid] = Page(len(self._pages) + 1, implementation, looker)
            values.number_page(implementation, page.number)
            if self._looks:
                # Made ready now, so that the first action on it need not wait.
                drive(looker.open(), self._faulty("a session of a page"))
        return page

    def _page_of(self, object: Any) -> Page | None:
        at = object
        while at is not None:
            if at._type == "Page":
                return self._page(at)
            if at._type == "BrowserContext":
                return None
            at = at._parent
        return None

    # One action.

    def _begin(self, underway: Underway) -> bool:
        """Tells that it begins, and looks at its page first. Whether its message may leave now."""
        action = underway.action = self._describe(underway)
        waits = None
        try:
            waits = self._told.begin(action)
        except Exception as error:
            self._told.fault("an action", error)
        if waits is not None:
            assert self._pipe is not None
            settle(self._pipe.loop, waits, lambda error: self._may_go(underway, error))
            return False
        return not self._serves(underway) and self._look_before(underway)

    def _may_go(self, underway: Underway, error: BaseException | None) -> None:
        if isinstance(error, Exception):
            self._told.fault("an action", error)
            error = None
        if error is not None:
            self._refuse(underway, error)
        elif not self._serves(underway) and self._look_before(underway):
            self._leave(underway)

    def _serves(self, underway: Underway) -> bool:
        """Whether its caller is answered here, so that its message does not leave."""
        action = underway.action
        given = self._told.served(action) if action is not None and action.alone else None
        if given is None:
            return False
        assert self._pipe is not None
        underway.left = True
        for cookie in alone.cookies(given):
            self._pipe.ask(self._context._guid, "addCookies", {"cookies": [cookie]}, lambda result, error: None)
        self._pipe.answer(underway.sent.message, alone.reply(underway.sent.message["method"], given))
        return True

    def _look_before(self, underway: Underway) -> bool:
        page = underway.page
        if page is None or not self._is_looked_at(underway, page) or underway.method.verb in _LOOKS:
            underway.left = True
            return True
        ready = page.looker.ready
        underway.left = ready
        seen_at_once = True

        def seen(state: State | None, error: BaseException | None) -> None:
            underway.before = state
            if error is not None:
                self._told.fault("a look at a page", error)
            underway.left = True
            if not ready and not seen_at_once:
                self._leave(underway)

        drive(page.looker.glance(), seen)
        seen_at_once = False
        return underway.left

    def _leave(self, underway: Underway) -> None:
        assert self._pipe is not None
        underway.left = True
        self._pipe.forward(underway.sent.message)
        for message in underway.behind:
            self._pipe.forward(message)

    def _refuse(self, underway: Underway, error: BaseException) -> None:
        """It does not happen: its caller gets what stopped it."""
        assert self._pipe is not None
        self._open.pop(underway.sent.id, None)
        self._pipe.fail(underway.sent.id, error)

    def _describe(self, underway: Underway) -> Action:
        assert self._pipe is not None
        sent, found, page = underway.sent, underway.method, underway.page
        kind, method = sent.object._type, sent.message["method"]
        arguments = methods.arguments(sent.message.get("params") or {}, self._pipe.object)
        of = values.of_handle(sent.object)
        if methods.secret(kind, method, arguments, of):
            arguments = methods.without(arguments)
        given: Any = values.shaped(arguments)
        # Whether a field is for passwords the page says behind the action.
        shown: Any = self._told.hide(methods.without(given) if method in methods.TYPES else given)
        self._count += 1
        frame = sent.object if kind == "Frame" else None
        return Action(
            number=self._count,
            kind="read" if found.kind == READ else "action",
            api=sent.api,
            name=methods.name(found, kind, method, shown, of),
            arguments=given,
            page=page.number if page is not None else 0,
            frame="" if frame is None or page is None or page.looker.is_main(frame) else frame._name or frame._url,
            site=_site(sent.frames),
            alone=kind == "APIRequestContext" and method in methods.ALONE,
            url=getattr(frame or (page and page.main), "_url", "") or "",
            beside=tuple(
                other.action.number for other in self._open.values() if other.action and other is not underway
            ),
        )

    def _over(self, underway: Underway) -> None:
        if self._open.pop(underway.sent.id, None) is None or underway.action is None:
            return
        underway.ended = untapped.monotonic_ns()
        self._ended.append(underway)
        page = underway.page
        if underway.action.kind == ACTION:
            self._closing.append(underway)
            if page is not None:
                page.closing += 1
        if page is None or not self._is_looked_at(underway, page):
            underway.over = underway.complete = True
            self._close()
            self._tell()
            return
        page.looking += 1

        def seen(state: State | None, error: BaseException | None) -> None:
            underway.after = state
            underway.complete = True
            page.looking -= 1
            if error is not None:
                self._told.fault("a look at a page", error)
            assert underway.action is not None
            self._told.seen(underway.action)
            self._tell()
            self._go_on(page)

        drive(self._look_behind(underway, page), seen)

    def _is_looked_at(self, underway: Underway, page: Page) -> bool:
        return self._looks and underway.method.kind == ACTION and not page.closed

    async def _look_behind(self, underway: Underway, page: Page) -> State | None:
        assert self._pipe is not None and underway.action is not None
        if self._abreast is not None:
            await Called(self._abreast)
        await Called(partial(self._is_over, underway))
        if page.looker.session and not page.looker.parsed and not _is_early(underway):
            await Until(page.looker.parsing, self._pipe.loop, SETTLING)
        state = await page.looker.look()
        expected = self._told.expected(underway.action)
        until = untapped.monotonic_ns() + int(PATIENCE * 1e9)
        while expected is not None and state is not None and (state.dom, state.storage) != expected:
            if untapped.monotonic_ns() > until:
                break
            await Pause(self._pipe.loop, _AGAIN)
            state = await page.looker.look()
        return state

    def _is_over(self, underway: Underway, then: Callable[[], None]) -> None:
        """Calls it once those that ended before are told as over, and this one."""
        underway.over, underway.closed = True, then
        self._close()

    def _close(self) -> None:
        """Tells of those that are over, in the order in which they ended, before any other begins on their pages."""
        while self._closing and self._closing[0].over:
            underway = self._closing.popleft()
            assert underway.action is not None
            try:
                self._told.closing(underway.action)
            except Exception as error:
                self._told.fault("the end of an action", error)
            if underway.closed is not None:
                underway.closed()
            if underway.page is not None:
                underway.page.closing -= 1
                self._go_on(underway.page)

    def _go_on(self, page: Page) -> None:
        """What has waited for the page leaves, as far as it may."""
        while page.held and not page.holds(page.held[0].method):
            underway = page.held.popleft()
            failure, self._failure = self._failure, None
            if failure is not None:
                self._refuse(underway, failure)
                continue
            try:
                goes = self._begin(underway)
            except BaseException as error:
                self._refuse(underway, error)
                continue
            if goes:
                self._leave(underway)

    # Telling.

    def _tell(self) -> None:
        if self._telling:
            return
        self._telling = True
        try:
            while self._ended and self._ended[0].complete:
                self._tell_of(self._ended.popleft())
        finally:
            self._telling = False
        if not self._busy():
            waiting, self._idle[:] = list(self._idle), []
            for call in waiting:
                call()

    def _tell_of(self, underway: Underway) -> None:
        assert self._pipe is not None
        assert underway.action is not None
        action = underway.action
        try:
            action, done = underway.told(self._told, self._pipe.object)
            self._told.end(action, done)
        except Exception as error:
            self._told.fault("the end of an action", error)
        except BaseException as error:
            self._failure = self._failure or error
        page, state = underway.page, underway.after
        if self._attachments and page is not None and state is not None and state.dom != page.shown:
            page.shown = state.dom
            page.drawing += 1

            def drawn(_: None, error: BaseException | None) -> None:
                page.drawing -= 1
                if error is not None:
                    self._told.fault("a picture", error)
                self._tell()
                self._go_on(page)

            told = pictures.taken(
                self._pipe, page, state, lambda name, content: self._told.attach(action, name, content)
            )
            drive(told, drawn)

    def _busy(self) -> bool:
        return bool(self._ended) or any(page.looking or page.drawing or page.held for page in self._pages.values())

    def _faulty(self, where: str) -> Callable[[Any, BaseException | None], None]:
        def done(_: Any, error: BaseException | None) -> None:
            if error is not None:
                self._told.fault(where, error)

        return done


def _is_early(underway: Underway) -> bool:
    """Whether the program asked not to wait until the document is there."""
    return (underway.sent.message.get("params") or {}).get("waitUntil") == "commit"


def _is_ours(sent: Sent, kind: str) -> bool:
    """Whether it is a call of Lockstep's own. A CDP session that no line of the user's code sends to is ours too."""
    first = sent.frames[0]["file"] if sent.frames else ""
    return (kind == "CDPSession" and not first) or (first.startswith(_PACKAGE) and not first.endswith(_AGENT))


def _site(frames: list[dict[str, Any]]) -> str:
    for frame in frames:
        if sites.users(frame["file"]):
            return sites.place(frame["file"], frame["line"], frame.get("function") or "?")
    return ""
