"""A connection to the browser of one context: what is asked there is held, and an answerer decides on it.

    linked = await link(transport, context, answerer, shim, fault)     # before the context's first page loads
    …
    await linked.close()

A context of Playwright's does not say how the browser calls it. A cookie of a moment, of a site that cannot be, does.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any

from lockstep_playwright.cdp.transport import CdpError, Params, Transport
from lockstep_playwright.network.answerer import Answerer
from lockstep_playwright.network.intercept import Intercept
from lockstep_playwright.network.sockets import Sockets
from lockstep_playwright.shim.shim import Shim
from lockstep_playwright.targets import Target, Targets

type Fault = Callable[[str, BaseException], Any]

_MARK = {"domain": "lockstep.invalid", "path": "/", "value": "1"}
_DOCUMENTS = frozenset({"page", "iframe"})
_NOTHING = {"expression": "0", "silent": True}
_BUSY = 0.5  # seconds that a page may be busy with something else when it is asked
_numbers = itertools.count(1)


class Linked:
    """See above."""

    def __init__(self, transport: Transport, targets: Targets, intercept: Intercept) -> None:
        self.transport = transport
        self.targets = targets
        self.intercept = intercept

    async def abreast(self) -> None:
        """Returns once the ends of answers have been heard that their pages had by now. What is asked of a page is
        answered behind what it has told before."""
        asked = [self.transport.send("Runtime.evaluate", _NOTHING, session) for session in self.intercept.unended()]
        with suppress(TimeoutError):
            async with asyncio.timeout(_BUSY):
                await asyncio.gather(*asked, return_exceptions=True)

    async def close(self) -> None:
        """Lets go of what is held, and of the browser."""
        if not self.transport.closed:
            await self.intercept.stop()
        await self.transport.close()


async def link(
    transport: Transport, context: str, answerer: Answerer, shim: Shim | None, fault: Fault, *, workers: bool = True
) -> Linked:  # fmt: skip
    """Holds all requests of a browser context, from now on. Raises CdpError.

    shim     clock and chance of its pages, None for their own. Where pages are not held before their first line of
             code, it is theirs already, by a script of the context
    workers  whether they have it too, and lanes: a run that was recorded where they could not be reached is replayed
             without
    """

    def prepared(target: Target) -> Iterable[tuple[str, Params]]:
        if shim is not None and transport.full and (workers or target.kind in _DOCUMENTS):
            yield from shim.prepare(target)
        if sockets is not None:
            yield from sockets.prepare(target)

    targets = Targets(transport, context=context, prepare=prepared, fault=fault, workers=workers)
    intercept = Intercept(transport, targets, answerer, fault, shim.document if shim is not None else None)
    sockets = Sockets(transport, targets, answerer.sockets, fault) if answerer.sockets is not None else None
    await intercept.start()
    if sockets is not None:
        sockets.start()
    await targets.start()
    return Linked(transport, targets, intercept)


def mark() -> dict[str, str]:
    """A cookie by which a context is found."""
    return {**_MARK, "name": f"lockstep-{next(_numbers)}"}


async def marked(transport: Transport, mark: Mapping[str, str]) -> str:
    """The browser's name of the context that has this cookie, which is taken away; "" of one that has none, as the
    browser's own has in some versions. Raises CdpError, also where no context has it: then another browser listens at
    the port that ours was to have."""
    told = await transport.send("Target.getBrowserContexts")
    own = str(told.get("defaultBrowserContextId") or "")
    for name in ("", *told["browserContextIds"]):
        of = {"browserContextId": name} if name else {}
        found = await transport.send("Storage.getCookies", of)
        if any(each["name"] == mark["name"] and each["domain"] == mark["domain"] for each in found["cookies"]):
            await transport.send("Storage.setCookies", {**of, "cookies": [{**mark, "expires": 1}]})
            return name or own
    raise CdpError("Storage.getCookies", "this browser has not the context that was looked for: it is another one")
