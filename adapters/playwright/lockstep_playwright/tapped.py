"""A context that is tapped, from the tap to its end."""

from __future__ import annotations

import asyncio
import os
import platform
import random
import time
from collections.abc import Mapping
from typing import Any

import msgspec

from lockstep.errors import LockstepError, Stop
from lockstep.log.model import Status, Value
from lockstep.session import current
from lockstep_playwright import connecting, contexts, layout, naming
from lockstep_playwright.actions import Watch
from lockstep_playwright.apart import Apart
from lockstep_playwright.connecting import Linked
from lockstep_playwright.recording import Recorder

type Store = str | os.PathLike[str] | None

_CLOSING = 5.0  # seconds that a connection of ours is given to end
_BLANK = "about:blank"


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What `tap` was told."""

    run: str = ""
    store: Store = None
    shim: str = "seed"
    attachments: bool = True
    endpoint: str = ""


class Tapped:
    """See above.

    run     its name, "" until that is known; `over`: nothing more is recorded
    pages   how many pages had loaded when the tap came
    """

    def __init__(self, context: Any, asked: Asked, api: str) -> None:
        self.run = ""
        self.over = False
        self.pages = sum(page.url != _BLANK for page in context.pages)
        self.recorder: Recorder | None = None
        self._context = context._impl_obj
        self._browser = context.browser
        self._options = contexts.given(context)
        self._asked = asked
        self._api = api
        self._apart = Apart() if asked.endpoint else None
        self._linked: Linked | None = None
        self._watch: Watch | None = None
        self._early: list[tuple[str, BaseException]] = []  # faults, before there is a run

    @property
    def faults(self) -> list[str]:
        return self.recorder.faults if self.recorder is not None else []

    async def begin(self, state: Any, mark: Mapping[str, Any]) -> None:
        """In Playwright's loop. `state`: the context's storage state; `mark`: the cookie that it is found by."""
        told = await self._there(self._first(mark))
        browser = contexts.browser(
            self._options, version=told["product"].partition("/")[2], headless="Headless" in told["userAgent"],
            user_agent=str(self._options.get("userAgent") or told["userAgent"]),
            language=str(self._options.get("locale") or ""), timezone=str(self._options.get("timezoneId") or zone()),
        )  # fmt: skip
        shim: dict[str, Value] = {"mode": self._asked.shim, "seed": random.getrandbits(53), "start": time.time() * 1000}
        backend = layout.OWN_SOCKET if self._apart is not None else layout.SESSIONS
        meta = layout.meta("", browser, backend, shim, versions())
        journal = naming.journal(self._asked.store, self._asked.run, meta)
        self.run = journal.run
        self.recorder = recorder = Recorder(journal)
        for where, error in self._early:
            recorder.fault(where, error)
        recorder.start(browser, layout.turn_request(self._options, state, self.pages, self._api))
