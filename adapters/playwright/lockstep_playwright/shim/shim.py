"""Gives every realm of a browser its clock and its random numbers.

    shim = Shim("seed", seed=fresh_seed(), start=…)    # a replay: what `shim.meta()` was
    Targets(transport, prepare=shim.prepare)           # each page, frame and worker before its first line of code
    Intercept(…, ahead=shim.document)                  # each request of a document, before it is let go or answered
    context.add_init_script(shim.script())             # where targets cannot be held, as over Playwright's sessions

The modes: `seed` has random numbers that only depend on the seed and on the place (which document of its address it
is), and a clock that begins at `start` and moves by what timers and frames were set to, and a little with each look at
it. `freeze` has the same random numbers and a clock that stands. `off` leaves both alone.

What a realm is told by is its address and which one it is of that address, so that two visits of one page do not make
the same ids: a shop would take the second order for the first one again. Each later document begins a second later.
"""

from __future__ import annotations

import asyncio
import json
import re
import secrets
from collections import Counter
from collections.abc import Awaitable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urldefrag

import msgspec

from lockstep.log.model import Value
from lockstep_playwright.cdp.transport import CdpError

if TYPE_CHECKING:
    from lockstep_playwright.cdp.transport import Params, Transport
    from lockstep_playwright.network.exchange import Asked
    from lockstep_playwright.targets import Target

type Mode = Literal["seed", "freeze", "off"]
MODES = ("seed", "freeze", "off")

_DOCUMENTS = frozenset({"page", "iframe"})
_STEP = 1000  # ms from the beginning of one document to that of the next
_MOST = 30  # documents that are on their way at once
# The id in the address of a blob is another one each time.
_BLOB = re.compile(r"^(blob:.*/)[0-9a-f-]{36}$")


class Realm(msgspec.Struct, frozen=True, kw_only=True):
    """What a realm's script is told.

    url      of a worker, which cannot look for itself while it is held
    ordinal  which one of that address; documents are told theirs when they are asked for
    start    of its clock, ms since the epoch
    """

    mode: Mode
    seed: str
    start: int
    worker: bool = False
    url: str = ""
    ordinal: int = 0


class Shim:
    """See above. One for each browser context and recording or replay of it."""

    def __init__(self, mode: Mode = "seed", *, seed: str, start: int) -> None:
        """`start`: ms since the epoch."""
        self.mode: Mode = mode
        self.seed = seed
        self.start = start
        self._counts: Counter[str] = Counter()
        self._documents = 0
        self._numbers: dict[str, tuple[int, int]] = {}  # of the newest document of each address
        self._renewing: set[asyncio.Task[None]] = set()
        self._told: dict[str, str] = {}  # the script by which a session was told the numbers

    def meta(self) -> dict[str, Value]:
        """What a run keeps of it."""
        return {"mode": self.mode, "seed": self.seed, "start": self.start}

    def script(self) -> str:
        """For documents, to be run before all else in them; "" where there is nothing to be done."""
        return self._script(Realm(mode=self.mode, seed=self.seed, start=self.start))

    def prepare(self, target: Target) -> Iterator[tuple[str, Params]]:
        """The commands for a target that has just been attached to."""
        if self.mode == "off":
            return
        if target.kind in _DOCUMENTS:
            # What has run already must not see its clock jump.
            now = {"runImmediately": True} if target.waiting else {}
            yield "Page.addScriptToEvaluateOnNewDocument", {"source": self.script(), **now}
            if self._numbers:
                yield "Page.addScriptToEvaluateOnNewDocument", {"source": self._numbered(), **now}
        elif target.waiting:
            yield "Runtime.evaluate", {"expression": self._worker(target.url)}

    async def document(self, transport: Transport, asked: Asked) -> None:
        """Numbers the document that this request is for; of any other request it does nothing. Raises CdpError."""
        if asked.resource != "Document" or self.mode == "off":
            return
        url = urldefrag(asked.url).url
        self._counts[url] += 1
        self._numbers.pop(url, None)
        self._numbers[url] = (self._counts[url], _STEP * self._documents)
        self._documents += 1
        if len(self._numbers) > _MOST:
            del self._numbers[next(iter(self._numbers))]
        if not asked.session:
            return
        # On its way before the document is. Not waited for: a page that changes its process answers when it has.
        adding = transport.send("Page.addScriptToEvaluateOnNewDocument", {"source": self._numbered()}, asked.session)
        renewing = self._renew(transport, asked.session, adding)
        task = asyncio.Task(renewing, loop=asyncio.get_running_loop(), eager_start=True)
        self._renewing.add(task)
        task.add_done_callback(self._renewing.discard)

    async def _renew(self, transport: Transport, session: str, adding: Awaitable[dict[str, Any]]) -> None:
        """Takes away the script before this one."""
        with suppress(CdpError):  # the page is gone; or it has changed its process, where nothing has the old name
            made = await adding
            before, self._told[session] = self._told.get(session), made["identifier"]
            if before is not None:
                params = {"identifier": before}
                await transport.send("Page.removeScriptToEvaluateOnNewDocument", params, session)

    def _numbered(self) -> str:
        return f"globalThis[Symbol.for('lockstep')]?.document?.({json.dumps(self._numbers)})"

    def _worker(self, address: str) -> str:
        url = _BLOB.sub(r"\1", address)
        self._counts[url] += 1
        realm = Realm(
            mode=self.mode, seed=self.seed, start=self.start, worker=True, url=url, ordinal=self._counts[url]
        )  # fmt: skip
        return self._script(realm)

    def _script(self, realm: Realm) -> str:
        if realm.mode == "off":
            return ""
        return f"({_source()})({msgspec.json.encode(realm).decode()});"


def fresh_seed() -> str:
    """A seed for a new recording: nobody can tell what its pages will roll."""
    # Not by `random`, whose sequence belongs to the program.
    return secrets.token_hex(16)


@cache
def _source() -> str:
    text = Path(__file__).with_name("realm.js").read_text("utf-8")
    # The comment above the function.
    return text[text.index("(options) =>") :].rstrip()
