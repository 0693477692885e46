"""Which pages, frames and workers a browser has, whose they are, and the lane of each.

    targets = Targets(transport, context="8F3A…", prepare=shim_of, fault=fault)
    await targets.start()
    asker = targets.known(frame, request) or await targets.asker(frame, request)      # None: of another context
    asker.lane, asker.session                # "main/page-1/frame-2", the session that knows its requests

Pages are numbered in the order in which they are made in their context, popups too; frames and workers in their page,
anew with each document; service workers in their context. A frame of another site has a process and a target of its
own, and keeps its lane. The requests of a worker come under the name of the frame that made it: only the session in
which they are announced tells whose they are. Where workers have no session (`Transport.full`), they are the frame's.

Tried with Chromium 156.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from lockstep_playwright.cdp.transport import CdpError, Fault, Hears, Params, Transport, handler

_PAGE, _FRAME, _WORKER, _SERVICE = "page", "iframe", "worker", "service_worker"
_WITH_DOCUMENT = frozenset({_PAGE, _FRAME})
# Long enough for one event behind another one on the same connection, on a machine that does much else.
_ANNOUNCED = 2.0  # seconds
_MOST_FOREIGN = 10_000


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """One page, frame of another process, or worker, as it was attached to.

    id       as the browser names it; a page's and an own-process frame's is also that of its frame
    kind     page, iframe, worker, shared_worker, service_worker, …
    session  of it
    context  the browser context it is of
    lane     of what it asks itself: "main/page-1/frame", "main/page-1/worker-2", "main/service-worker-1/net"
    url      what it was made for, as far as that is known when it is attached to
    waiting  whether it has not run its first line of code yet
    """

    id: str
    kind: str
    session: str
    context: str
    lane: str
    url: str = ""
    waiting: bool = False


class Asker(msgspec.Struct, frozen=True):
    """Who makes a request: its lane, and the session that knows of it in the Network domain, "" for none."""

    lane: str
    session: str


# Commands for a new target before its first line of code runs: a shim, a binding.
type Prepare = Callable[[Target], Iterable[tuple[str, Params]]]


class _Page:
    """What is counted in a page: the frames and workers of its document."""

    __slots__ = ("frames", "lane", "workers")

    def __init__(self, lane: str) -> None:
        self.lane = lane
        self.frames = 1
        self.workers = 0

    def frame(self) -> str:
        self.frames += 1
        return f"{self.lane}/frame-{self.frames}"

    def worker(self) -> str:
        self.workers += 1
        return f"{self.lane}/worker-{self.workers}"

    def renew(self) -> None:
        self.frames, self.workers = 1, 0


class _Frame(msgspec.Struct):
    """A frame of ours: the page that it is in, its lane, and the session of its process. `moved`: it is in a process
    that is about to be attached to."""

    page: _Page
    lane: str
    session: str
    moved: asyncio.Future[None] | None = None


class Targets:
    """See above. `targets`: those of ours that are there, by session. `context`: to which all is bounded. `workers`:
    whether they have lanes of their own."""

    def __init__(
        self, transport: Transport, *, context: str = "", prepare: Prepare | None = None, fault: Fault,
        workers: bool = True,
    ) -> None:  # fmt: skip
        """`context`: the browser context to which all is bounded, "" for the whole browser. `workers`: not of a replay
        of what was recorded over a connection that does not reach them: their requests are those of their frame."""
        self.targets: dict[str, Target] = {}
        self.workers = workers and transport.full
        self._transport = transport
        self.context = context
        self._prepare = prepare
        self._fault = fault
        self._frames: dict[str, _Frame] = {}
        self._pages: dict[str, _Page] = {}  # by session: of frames' processes too
        self._counts: dict[str, int] = {}
        self._workers: dict[str, str] = {}  # lanes of workers whose script has been asked for, by target
        self._announced: dict[str, str] = {}  # the session that has announced a request
        self._awaited: dict[str, asyncio.Future[None]] = {}
        self._foreign: set[str] = set()  # frames and targets of other contexts
        self._gone: list[Callable[[str], None]] = []

    async def start(self) -> None:
        """Attaches to what there is and to what will be."""
        self._transport.listen(handler(self, _TOLD, self._fault))
        await self._transport.attach()

    def when_gone(self, told: Callable[[str], None]) -> None:
        """`told` gets the session of each target of ours that has ended."""
        self._gone.append(told)

    def known(self, frame: str, request: str) -> Asker | None:
        """Who asks, by frame and the request's name in the Network domain, where that can be said at once."""
        found = self._frames.get(frame)
        if (
            found is None
            or found.moved is not None
            or (found.page.workers and self.workers and request not in self._announced)
        ):
            return None
        return self._asker(found, request)

    async def asker(self, frame: str, request: str) -> Asker | None:
        """The same, where the browser has to be asked or its word be waited for; None for one of another context."""
        found = self._frames.get(frame) or await self._find(frame)
        if found is None:
            return None
        if found.moved is not None:
            await asyncio.wait([found.moved], timeout=_ANNOUNCED)
            found.moved = None
        if found.page.workers and self.workers and request and request not in self._announced:
            awaited = self._awaited.setdefault(request, asyncio.get_running_loop().create_future())
            await asyncio.wait([awaited], timeout=_ANNOUNCED)
            self._awaited.pop(request, None)
        return self._asker(found, request)

    def is_announced(self, request: str) -> bool:
        """Whether some session tells of a request in the Network domain, and so of its end."""
        return request in self._announced

    def _asker(self, frame: _Frame, request: str) -> Asker:
        session = self._announced.get(request, frame.session)
        target = self.targets.get(session)
        if target is not None and target.kind not in _WITH_DOCUMENT and (self.workers or target.kind != _WORKER):
            return Asker(target.lane, session)
        return Asker(frame.lane, session)

    async def _find(self, frame: str) -> _Frame | None:
        """A frame that no event told of yet, or of another context."""
        if frame in self._foreign:
            return None
        for session, target in list(self.targets.items()):
            if target.kind in _WITH_DOCUMENT:
                await self._read_frames(session)
        if frame not in self._frames:
            await self._read_targets()
        found = self._frames.get(frame)
        if found is None:
            if len(self._foreign) > _MOST_FOREIGN:
                self._foreign.clear()
            self._foreign.add(frame)
        return found

    async def _read_frames(self, session: str) -> None:
        try:
            tree = (await self._transport.send("Page.getFrameTree", {}, session))["frameTree"]
        except CdpError as error:
            if not error.gone:
                self._fault("frames of a page", error)
            return
        left = [tree]
        while left:
            node = left.pop(0)
            left += node.get("childFrames") or ()
            self._frame_attached(node["frame"]["id"], session)

    async def _read_targets(self) -> None:
        """Targets that nothing has attached to, or not yet: a popup whose first request comes before it is told."""
        try:
            found = (await self._transport.send("Target.getTargets"))["targetInfos"]
        except CdpError as error:
            self._fault("targets of a browser", error)
            return
        for info in found:
            if info["targetId"] not in self._frames and self._is_ours(info):
                self._know(info, "", "")

    def _is_ours(self, info: Any) -> bool:
        return not self.context or info.get("browserContextId") == self.context

    # What the browser tells.

    def _attached(self, params: dict[str, Any], parent: str) -> None:
        info, session = params["targetInfo"], params["sessionId"]
        waiting = bool(params.get("waitingForDebugger"))
        post = self._transport.post
        if self._is_ours(info):
            first = all(target.id != info["targetId"] for target in self.targets.values())
            target = self._know(info, session, parent, waiting)
            if self._transport.full:
                self._transport.attach_to(session)
            post("Network.enable", {}, session)
            if target.kind in _WITH_DOCUMENT:
                post("Page.enable", {}, session)
            # A service worker is attached to by the browser and by each of its pages.
            if first and self._prepare is not None:
                for method, more in self._prepare(target):
                    post(method, more, session)
        if self._transport.full:
            post("Runtime.runIfWaitingForDebugger", {}, session)

    def _know(self, info: Any, session: str, parent: str, waiting: bool = False) -> Target:
        kind, name = info["type"], info["targetId"]
        self._foreign.discard(name)
        page = self._pages.get(parent)
        frame = self._frames.get(name)
        if frame is None:
            if kind == _PAGE:
                page = _Page(f"main/page-{self._count(_PAGE)}")
                frame = _Frame(page, f"{page.lane}/frame", session)
            elif page is not None and kind == _FRAME:
                frame = _Frame(page, page.frame(), session)
            elif page is not None and kind == _WORKER:
                frame = _Frame(page, self._workers.pop(name, "") or page.worker(), session)
            else:
                lane = self._workers.pop(name, "")
                word = kind.replace("_", "-")
                lane = lane or f"main/{word}-{self._count(kind)}/net"
                frame = _Frame(_Page(lane), lane, session)
            self._frames[name] = frame
        if not frame.session or kind in _WITH_DOCUMENT:
            frame.session = session
        if frame.moved is not None and session:
            _done(frame.moved)
            frame.moved = None
        target = Target(
            id=name, kind=kind, session=session, context=str(info.get("browserContextId") or ""), lane=frame.lane,
            url=str(info.get("url") or ""), waiting=waiting,
        )  # fmt: skip
        if session:
            self.targets[session] = target
            self._pages[session] = frame.page
        return target

    def _count(self, kind: str) -> int:
        self._counts[kind] = self._counts.get(kind, 0) + 1
        return self._counts[kind]

    def _detached(self, params: dict[str, Any], _: str) -> None:
        session = params["sessionId"]
        target = self.targets.pop(session, None)
        self._pages.pop(session, None)
        if target is not None:
            # What it was is still asked for: its last requests are told after it.
            self._announced = {name: of for name, of in self._announced.items() if of != session}
            for told in self._gone:
                told(session)

    def _frame_told(self, params: dict[str, Any], session: str) -> None:
        self._frame_attached(params["frameId"], session)

    def _frame_attached(self, name: str, session: str) -> None:
        page = self._pages.get(session)
        if page is None:
            return
        self._foreign.discard(name)
        found = self._frames.get(name)
        if found is None:
            self._frames[name] = _Frame(page, page.frame(), session)

    def _navigated(self, params: dict[str, Any], session: str) -> None:
        frame = params["frame"]
        found = self._frames.get(frame["id"])
        if found is None:
            self._frame_attached(frame["id"], session)
            return
        found.session = session
        target = self.targets.get(session)
        if target is not None and target.kind == _PAGE and not frame.get("parentId"):
            found.page.renew()

    def _frame_gone(self, params: dict[str, Any], session: str) -> None:
        found = self._frames.get(params["frameId"])
        if found is None:
            return
        if params.get("reason") != "swap":
            del self._frames[params["frameId"]]
        elif found.session == session:
            found.session, found.moved = "", asyncio.get_running_loop().create_future()

    def _request(self, params: dict[str, Any], session: str) -> None:
        target = self.targets.get(session)
        if target is None:
            return
        request = params["requestId"]
        self._announced.setdefault(request, session)
        awaited = self._awaited.get(request)
        if awaited is not None:
            _done(awaited)
        # The script of a worker has the name of the target that it will be, and is asked for in the order in which
        # workers are made; they are attached to as their scripts come. A preflight is of no frame.
        is_script = params.get("type") == "Other" and params.get("frameId") and "." not in request
        if is_script and target.kind in _WITH_DOCUMENT and request not in {*self._frames, *self._workers}:
            self._workers[request] = self._pages[session].worker()

    def _request_over(self, params: dict[str, Any], _: str) -> None:
        self._announced.pop(params["requestId"], None)


def _done(awaited: asyncio.Future[None]) -> None:
    if not awaited.done():
        awaited.set_result(None)


_TOLD: Hears[Targets] = {
    "Target.attachedToTarget": Targets._attached,
    "Target.detachedFromTarget": Targets._detached,
    "Page.frameAttached": Targets._frame_told,
    "Page.frameNavigated": Targets._navigated,
    "Page.frameDetached": Targets._frame_gone,
    "Network.requestWillBeSent": Targets._request,
    "Network.loadingFinished": Targets._request_over,
    "Network.loadingFailed": Targets._request_over,
}
EVENTS = frozenset(_TOLD)  # what a connection must pass on, for those that have to be told
