"""Which pages, frames and workers a browser has, whose they are, and the lane of each.

    targets = Targets(transport, context="8F3A…", prepare=shim_of, fault=fault)
    await targets.start()
    asker = await targets.asker(frame)       # None: of another context
    asker.lane, asker.session                # "main/page-1/frame-2", the session that knows its requests

Pages are numbered in the order in which they are made in their context, popups too; frames and workers in their page,
service workers in their context. A frame of another site has a process and a target of its own, and keeps its lane.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from lockstep_playwright.cdp.transport import Params


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
