"""What state a page is in: digests of its document and its storages, taken from a world beside the page's scripts.

A digest is the same for equal pages: of the elements with their attributes, what stands in their fields, texts, frames
of the same process, open shadow roots; of cookies without their expiry, local and session storage, names and versions
of databases. Not of what moves by itself (`page.js` has the list). Secrets stand as their placeholders.

By CDP over Playwright's own connection (`newCDPSession`), with a hash first and the text only where that is a new one:
`DOMSnapshot` and `DOM.getDocument` take a hundred times as long on a page of 10,000 elements (500 ms against 5).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from importlib.resources import files
from typing import Any

import msgspec

from lockstep.log import canonical
from lockstep.session.lanes import ours
from lockstep_playwright.actions.driven import PATIENCE, Ask, Both, First, Until
from lockstep_playwright.actions.pipe import Message, Pipe

LONGEST = 256 << 10  # characters of a document that is read whole; of a longer one its own hash is the digest
SETTLING = 0.5  # seconds that a document is given to be parsed

_GONE = ("context", "navigat", "collected", "lockstep is not defined", "closed")


class State(msgspec.Struct, frozen=True):
    """What a page was.

    dom, storage  digests in hex
    url           its address
    parsed        whether its document had been parsed
    elements      how many it had
    secrets       what stood in its password fields
    text          of the document, secrets hidden; "" of one too long to be read
    """

    dom: str
    storage: str
    url: str
    parsed: bool
    elements: int
    secrets: tuple[str, ...] = ()
    text: str = ""


class Looker:
    """Looks at one page. `hide` hides secrets in a value."""

    def __init__(self, pipe: Pipe, context: str, page: Any, hide: Callable[[Any], Any]) -> None:
        self.storage = ""  # digest of the storages as they were seen last
        self.parsing: list[Callable[[], None]] = []  # who waits for the document to be parsed
        self._pipe = pipe
        self._context = context
        self._page = page
        self._hide = hide
        self._session = ""
        self._opening: list[Callable[[], None]] | None = None
        self._frame = ""
        self._world = 0
        self._seen = _Seen()  # the document as it was seen last
        self._stored = _Stored()  # the storages likewise
        self._usable = True
        self._stuck: list[Callable[[], None]] = []  # looks that are on

    @property
    def ready(self) -> bool:
        """Whether a look is one message, so that what is sent behind it comes behind it."""
        return bool(self._world and self.storage)

    @property
    def parsed(self) -> bool:
        """Whether the document has been parsed, as far as the client has heard."""
        states = getattr(getattr(self._page, "_main_frame", None), "_load_states", None)
        return states is None or "domcontentloaded" in states

    @property
    def session(self) -> str:
        return self._session

    def is_main(self, frame: Any) -> bool:
        return frame is getattr(self._page, "_main_frame", None)

    def navigated(self) -> None:
        """Another document is in the page."""
        self._world = 0

    def loaded(self) -> None:
        _call(self.parsing)

    def stand_still(self) -> None:
        """The page answers nothing until somebody has answered its dialog: who looks at it gives up."""
        _call(self._stuck)

    async def open(self) -> bool:
        """Has a session of the page. False: there is none to be had."""
        if self._session or not self._usable:
            return bool(self._session)
        if self._opening is not None:
            await Until(self._opening, self._pipe.loop, PATIENCE)
            return bool(self._session)
        self._opening = []
        asked = {"page": {"guid": self._page._guid}}
        result, _ = await Ask(self._pipe, self._context, "newCDPSession", asked)
        if result:
            session = result["session"]["guid"]
            tree, _ = await Ask(self._pipe, session, "send", {"method": "Page.getFrameTree", "params": {}})
            if tree:
                self._frame = tree["result"]["frameTree"]["frame"]["id"]
                self._session = session
        self._usable = bool(self._session)
        waiting, self._opening = self._opening, None
        for call in waiting:
            call()
        return self._usable

    async def look(self) -> State | None:
        """The page as it is now, storages included; None where it does not tell."""
        if not await self.open():
            return None
        for _ in range(3):
            seen, stored = self._seen, self._stored
            call = f"lockstep.whole({json.dumps(seen.hash)}, {LONGEST}, {json.dumps(stored.hash)})"
            asked = await self._evaluation(call)
            if not self._world:
                return None
            answers = await First(Both(asked, Ask(self._pipe, self._context, "cookies", {"urls": []})), self._stuck)
            if answers is None:
                return None
            (result, error), (cookies, _) = answers
            told = _value(result)
            if told is not None:
                return self._state(told, cookies, seen, stored)
            self._world = 0
            said = error or _thrown(result)
            if not any(word in said for word in _GONE):
                return None
            if not self.parsed:
                await Until(self.parsing, self._pipe.loop, SETTLING)
        return None

    async def glance(self) -> State | None:
        """The document as it is now, with the storages as they were seen last. Where `ready`, what is sent right behind
        this comes behind it, also a navigation: the page answers at once."""
        if not await self.open():
            return None
        if not self.storage:
            return await self.look()
        seen = self._seen
        call = f"lockstep.page({json.dumps(seen.hash)}, {LONGEST})"
        answer = await First(await self._evaluation(call), self._stuck)
        told = _value(answer[0]) if answer is not None else None
        if told is None:
            self._world = 0
        return self._state(told, None, seen, self._stored) if told is not None else None

    async def _evaluation(self, call: str) -> Ask:
        if not self._world:
            made = {"frameId": self._frame, "worldName": "lockstep", "grantUniveralAccess": True}  # spelt so by CDP
            result, _ = await self._cdp("Page.createIsolatedWorld", made)
            if result:
                self._world = result["result"]["executionContextId"]
            call = f"{_script()};{call}"
        asked = {"expression": call, "contextId": self._world, "returnByValue": True, "awaitPromise": True}
        return self._cdp("Runtime.evaluate", {**asked, "silent": True})

    def _cdp(self, method: str, params: Message) -> Ask:
        return Ask(self._pipe, self._session, "send", {"method": method, "params": params})

    def _state(self, told: dict[str, Any], cookies: Message | None, seen: _Seen, stored: _Stored) -> State:
        """`seen`, `stored`: what the page was told that it is known for, of which it sends nothing again; others may
        have looked meanwhile."""
        secrets = tuple(told["secrets"])
        if told["dom"] is not None:
            text = told["dom"]
            for secret in secrets:
                if len(secret) > 3:
                    text = text.replace(secret, "***")
            hidden = self._hide(text)
            seen = _Seen(told["h"], _digest(hidden), hidden)
        elif told["h"] != seen.hash:
            seen = _Seen(told["h"], _digest(told["h"]), "")
        self._seen = seen
        if told["storage"] is not None:
            stored = _Stored(told["s"], self._hide(json.loads(told["storage"])))
        if cookies is not None:
            self._stored = stored
            jar = sorted(map(_cookie, cookies["cookies"]), key=str)
            self.storage = canonical.digest([self._hide(jar), stored.kept]).hex()
        return State(seen.digest, self.storage, told["url"], not told["loading"], told["elements"], secrets, seen.text)


class _Seen(msgspec.Struct, frozen=True):
    """A document: the page's own hash of it, our digest, and its text."""

    hash: str = ""
    digest: str = ""
    text: str = ""


class _Stored(msgspec.Struct, frozen=True):
    """Storages: the page's own hash of them, and what is in them."""

    hash: str = ""
    kept: Any = None


def _call(waiting: list[Callable[[], None]]) -> None:
    due, waiting[:] = list(waiting), []
    for call in due:
        call()


def _cookie(found: dict[str, Any]) -> dict[str, Any]:
    """A cookie without what its server's clock makes of it, written so that its value is hidden as in a header."""
    kept = ("domain", "path", "httpOnly", "secure", "sameSite")
    return {
        "set-cookie": f"{found.get('name')}={found.get('value')}", "session": found.get("expires") == -1,
        **{name: found.get(name) for name in kept},
    }  # fmt: skip


def _value(result: Message | None) -> dict[str, Any] | None:
    value = (((result or {}).get("result") or {}).get("result") or {}).get("value")
    return value if isinstance(value, dict) else None


def _thrown(result: Message | None) -> str:
    details = ((result or {}).get("result") or {}).get("exceptionDetails") or {}
    return str((details.get("exception") or {}).get("description") or details.get("text") or "")


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


_loaded = ""


@ours
def _script() -> str:
    """The page's part. Under a session it is no file that the program reads."""
    global _loaded
    if not _loaded:
        _loaded = files(__package__).joinpath("page.js").read_text(encoding="utf-8")
    return _loaded
