"""Holds every request of the tapped contexts until an answerer has decided on it, and tells what came of it.

    intercept = Intercept(transport, targets, answerer, fault)
    await intercept.start()           # before the first page loads
    …
    await intercept.stop()            # what is still held goes on, for real where it is recorded

Of the browser's Fetch domain, at both stages: a request is told before it leaves, an answer before the page sees it, so
that nothing of a body is lost to a navigation. Requests of other contexts go on untouched.

Tried with Chromium 156.
"""

from __future__ import annotations

import asyncio
from base64 import b64decode, b64encode
from collections.abc import Awaitable, Callable, Coroutine
from contextvars import copy_context
from functools import partial
from typing import Any

from lockstep.session.lanes import INSIDE
from lockstep_playwright.cdp.transport import CdpError, Fault, Hears, Transport, handler
from lockstep_playwright.network import errors, heads, jar
from lockstep_playwright.network.answerer import Answerer
from lockstep_playwright.network.exchange import Asked, Decision, Fail, Fulfil, Go, Hold
from lockstep_playwright.network.jar import Jar
from lockstep_playwright.network.streams import Streams
from lockstep_playwright.targets import Asker, Targets

_HELD_AGAIN = 0.5  # seconds
_BEHIND = 1.0  # seconds that a page's word may come behind that of the browser

type Ahead = Callable[[Transport, Asked], Awaitable[None]]


class Held:
    """One request, from its hold until it is over. A hop of a redirect is one of its own."""

    __slots__ = ("answerer", "asked", "events", "failed", "head", "jar", "left", "network", "over", "sent", "waiting")

    def __init__(self, answerer: Answerer, network: str) -> None:
        self.answerer = answerer
        self.network = network
        self.asked: Asked | None = None  # what the answerer has been told
        self.left = False  # the browser has been told what becomes of it
        self.sent = False  # it was let go, and its answer is told
        self.head = False  # its answer has begun
        self.events = False  # its answer ends when its page or its server wants
        self.failed = ""  # it failed for this reason; how exactly the browser says later
        self.jar: Jar | None = None  # the cookies before it, where no session tells which it sets
        self.over = False
        self.waiting: list[Callable[[], None]] | None = None  # what is told before its answer is known to have begun

    def end(self, error: str = "", *, cancelled: bool = False) -> None:
        """It is over, which the answerer is told once."""
        if not self.over:
            self.over = True
            if self.asked is not None:
                self.answerer.over(self.asked, error, cancelled=cancelled)


class Intercept:
    """See above. `answerer` may be set to another one while it runs: requests that were asked before are decided and
    told by the old one until they are over."""

    def __init__(
        self, transport: Transport, targets: Targets, answerer: Answerer, fault: Fault, ahead: Ahead | None = None
    ) -> None:  # fmt: skip
        """`fault` is told what goes wrong here: a request that it befalls goes on. `ahead` is waited for before each
        request is decided on: `Shim.document`."""
        self.answerer = answerer
        self._ahead = ahead
        self._transport = transport
        self._targets = targets
        self._fault = fault
        self._held: dict[str, Held] = {}  # by the name of the hold
        self._by_network: dict[str, Held] = {}  # the last hop of each
        self._cookies = heads.Cookies()
        self._streams = Streams(transport, fault)
        self._tasks: set[asyncio.Task[None]] = set()
        self._inside = copy_context()
        self._inside.run(INSIDE.set, True)
        self._stopping = False

    async def start(self) -> None:
        """Holds all requests from now on. Pages that are open already are held from their next navigation on. Raises
        CdpError."""
        self._transport.listen(handler(self, _TOLD, self._fault))
        self._targets.when_gone(self._target_gone)
        await self._transport.send("Fetch.enable", {"patterns": [{"urlPattern": "*", "requestStage": "Request"}]})

    async def stop(self) -> None:
        """Lets go of all that is held, and holds nothing more."""
        self._stopping = True
        for name, held in list(self._held.items()):
            if not held.answerer.recording and not held.left:
                self._transport.post("Fetch.failRequest", {"requestId": name, "errorReason": "Aborted"})
            elif held.answerer.recording:
                held.end(cancelled=True)  # the context is about to end, as nobody would tell any more
        self._held.clear()
        try:
            await self._transport.send("Fetch.disable")
        except CdpError as error:
            if not error.gone:
                self._fault("letting go of requests", error)
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    def unended(self) -> set[str]:
        """The sessions that are to tell of the end of some answer which has begun, or failed. Of any thread."""
        begun = [held for held in tuple(self._held.values()) if held.sent and (held.head or held.failed)]
        return {held.asked.session for held in begun if held.asked is not None and held.asked.session}

    # What the browser tells.

    def _paused(self, params: dict[str, Any], _: str) -> None:
        if self._stopping:
            return  # `Fetch.disable` is under way, which lets it go
        name = params["requestId"]
        answered = "responseStatusCode" in params or "responseErrorReason" in params
        held = self._held.get(name)
        if not answered and held is None:
            self._held[name] = held = Held(self.answerer, params.get("networkId") or "")
            if held.network:
                self._by_network[held.network] = held
            self._spawn(self._ask(name, held, params))
        elif answered and held is not None and held.sent:
            self._answered(name, held, params)
        else:
            self._go_on(name)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        # What need not wait is done at once. A context of its own: work may begin within other work.
        task = asyncio.Task(work, loop=asyncio.get_running_loop(), context=self._inside.copy(), eager_start=True)
        if not task.done():
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    # A request.

    async def _ask(self, name: str, held: Held, params: dict[str, Any]) -> None:
        decision: Decision = Go() if held.answerer.recording else Fail()
        try:
            frame = params["frameId"]
            asker = self._targets.known(frame, held.network) or await self._targets.asker(frame, held.network)
            if asker is None:
                self._forget(name, held)
                self._go_on(name)
                return
            if held.over:  # given up meanwhile: nobody has been told of it
                return
            held.asked = _asked(name, params, asker)
            if self._ahead is not None:
                await self._ahead(self._transport, held.asked)
            if held.answerer.recording and not asker.session and held.asked.resource == "Document":
                held.jar = await jar.kept(self._transport, self._targets.context)
            if held.answerer.recording:
                self._decided(name, held, decision)  # before it is written down: the browser goes on meanwhile
                await held.answerer.asked(held.asked)
            else:
                decision = await held.answerer.asked(held.asked)
        except Exception as error:
            self._fault("a request of a page", error)
        if not held.over and not held.left:
            self._decided(name, held, decision)

    def _decided(self, name: str, held: Held, decision: Decision) -> None:
        post = self._transport.post
        held.left = not isinstance(decision, Hold)
        match decision:
            case Go(url=""):
                held.sent = held.asked is not None
                post("Fetch.continueRequest", {"requestId": name, "interceptResponse": held.sent})
            case Go(url=url):
                post("Fetch.continueRequest", {"requestId": name, "url": url})
            case Fulfil(head=head, body=body):
                headers = [{"name": key, "value": value} for key, value in head.served()]
                post(
                    "Fetch.fulfillRequest",
                    {
                        "requestId": name, "responseCode": head.status, "responseHeaders": headers,
                        "body": b64encode(body).decode(), **({"responsePhrase": head.reason} if head.reason else {}),
                    },
                )  # fmt: skip
            case Fail(reason=reason):
                post("Fetch.failRequest", {"requestId": name, "errorReason": reason})
            case Hold():
                pass

    # An answer.

    def _answered(self, name: str, held: Held, params: dict[str, Any]) -> None:
        reason = params.get("responseErrorReason")
        if reason:
            # The page learns of it when it goes on, and what the error is called is told after that.
            held.failed = reason
            self._go_on(name)
            if held.asked is not None and held.asked.session:
                asyncio.get_running_loop().call_later(_BEHIND, self._is_untold, held)
            else:
                self._end(held, errors.called(reason))
            return
        self._spawn(self._read(name, held, params))

    def _is_untold(self, held: Held) -> None:
        """What fails at once is held with its error before its page has so much as said that it asks."""
        if not self._targets.is_announced(held.network):
            self._end(held, errors.called(held.failed))

    async def _read(self, name: str, held: Held, params: dict[str, Any]) -> None:
        """Tells an answer that has come as far as its head, and lets it go to the page."""
        try:
            assert held.asked is not None
            cookies = await self._cookies.of(held.network, params["responseStatusCode"])
            if held.jar is not None and not cookies:
                cookies = jar.lines(held.jar, await jar.kept(self._transport, self._targets.context))
            head = heads.head(params, cookies)
            if not heads.has_body(held.asked.method, head):
                self._tell(held, (head, b""))
                return
            # Of a document that is held, the browser does not answer until it goes on.
            streams = heads.is_open_ended(head) and held.asked.resource != "Document"
            if streams and held.asked.session:
                held.waiting, held.events = [], heads.is_endless(head)
                streamed = await self._streams.begin(held.network, held.asked.session)
                waiting, held.waiting = held.waiting, None
                if streamed is not None:
                    held.head = True
                    held.answerer.answered(held.asked, head)
                    for data, when in streamed:
                        held.answerer.part(held.asked, data, when)
                for told in waiting:
                    told()
                if streamed is not None:
                    return
            if heads.is_endless(head):
                held.head = True
                held.answerer.answered(held.asked, head)
                self._fault("a stream that nobody tells of", CdpError("Network.streamResourceContent", held.asked.url))
                return
            found = await self._transport.send("Fetch.getResponseBody", {"requestId": name})
            data = b64decode(found["body"]) if found.get("base64Encoded") else found["body"].encode()
            self._tell(held, (head, data), errors.CUT_SHORT if heads.is_cut_short(head, data) else "")
        except CdpError as error:
            if not error.gone:
                self._fault("the body of an answer", error)
        except Exception as error:
            self._fault("the answer to a page", error)
        finally:
            self._go_on(name)

    def _tell(self, held: Held, answer: tuple[Any, bytes], error: str = "") -> None:
        head, data = answer
        if held.over or held.asked is None:
            return
        held.head = True
        held.answerer.answered(held.asked, head)
        if data:
            held.answerer.part(held.asked, data)
        self._end(held, error)

    def _go_on(self, name: str) -> None:
        if not self._stopping:  # `Fetch.disable` lets all go
            self._transport.post("Fetch.continueRequest", {"requestId": name})

    # The end of a request.

    def _end(self, held: Held, error: str = "", *, cancelled: bool = False) -> None:
        held.end(error, cancelled=cancelled)
        if held.asked is not None:
            self._held.pop(held.asked.id, None)
        if self._by_network.get(held.network) is held:
            del self._by_network[held.network]
        self._cookies.forget(held.network)

    def _forget(self, name: str, held: Held) -> None:
        self._held.pop(name, None)
        if self._by_network.get(held.network) is held:
            del self._by_network[held.network]

    def _target_gone(self, session: str) -> None:
        for held in [each for each in self._held.values() if each.asked is not None and each.asked.session == session]:
            self._end(held, cancelled=True)

    def _leaves(self, params: dict[str, Any], session: str) -> None:
        if params["requestId"] in self._by_network:
            self._cookies.asked(params["requestId"], session)

    def _extra(self, params: dict[str, Any], session: str) -> None:
        if params["requestId"] in self._by_network:
            self._cookies.told(params, session)

    def _data(self, params: dict[str, Any], session: str) -> None:
        held = self._told_of(params, session)
        if held is None or held.asked is None:
            return
        if held.waiting is not None:
            held.waiting.append(partial(self._data, params, session))
            return
        for data, when in self._streams.data(params):
            held.answerer.part(held.asked, data, when)

    def _finished(self, params: dict[str, Any], session: str) -> None:
        held = self._told_of(params, session)
        if held is None:
            return
        if held.waiting is not None:
            held.waiting.append(partial(self._finished, params, session))
        elif held.head:
            self._end(held)

    def _failed(self, params: dict[str, Any], session: str) -> None:
        held = self._told_of(params, session)
        if held is None:
            return
        if held.waiting is not None:
            held.waiting.append(partial(self._failed, params, session))
        elif held.asked is None:
            held.over = True  # given up before it was known whose it is
        elif params.get("canceled"):
            self._given_up(held)
        elif held.sent:
            self._end(held, str(params.get("errorText") or errors.called(held.failed)))

    def _given_up(self, held: Held) -> None:
        # A body that a page has read to its end may be called that too. One that was still on is held once more, with
        # an error: before this is told, or soon after.
        if held.head and not held.failed and not held.events:
            asyncio.get_running_loop().call_later(_HELD_AGAIN, self._is_held_again, held)
        else:
            self._end(held, cancelled=True)

    def _is_held_again(self, held: Held) -> None:
        self._end(held, cancelled=bool(held.failed))

    def _told_of(self, params: dict[str, Any], session: str) -> Held | None:
        """The request that an event is about, unless it is over, or another session than that of its page speaks."""
        held = self._by_network.get(params["requestId"])
        if held is None or held.over or (held.asked is not None and session != held.asked.session):
            return None
        return held


def _asked(name: str, params: dict[str, Any], asker: Asker) -> Asked:
    request = params["request"]
    return Asked(
        id=name, network=params.get("networkId") or "", lane=asker.lane, method=request["method"],
        url=request["url"], headers=tuple(request["headers"].items()), body=heads.body(params),
        resource=heads.resource(params), frame=params["frameId"], session=asker.session,
        hop=bool(params.get("redirectedRequestId")),
    )  # fmt: skip


_TOLD: Hears[Intercept] = {
    "Fetch.requestPaused": Intercept._paused,
    "Network.requestWillBeSentExtraInfo": Intercept._leaves,
    "Network.responseReceivedExtraInfo": Intercept._extra,
    "Network.dataReceived": Intercept._data,
    "Network.loadingFinished": Intercept._finished,
    "Network.loadingFailed": Intercept._failed,
}
EVENTS = frozenset(_TOLD)  # what a connection must pass on, for those that have to be told
