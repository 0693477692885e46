"""A context that is recorded, from the tap to its end."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import Any

import msgspec

from lockstep.errors import LockstepError
from lockstep.log.model import Status
from lockstep.session.lanes import ours
from lockstep_playwright import contexts, layout, naming
from lockstep_playwright.attached import Attached
from lockstep_playwright.network.recorder import Recorder as Exchanges
from lockstep_playwright.recording import Recorder
from lockstep_playwright.shim.shim import Mode, Shim, fresh_seed

type Store = str | os.PathLike[str] | None

_BLANK = "about:blank"
_SHELL = "HeadlessChrome/"  # how Chromium's headless shell names itself; the whole one says Chrome


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What `tap` was told."""

    run: str = ""
    store: Store = None
    shim: Mode = "seed"
    attachments: bool = True
    endpoint: str = ""


class Tapped:
    """See above.

    run     its name, "" until that is known; `over`: nothing more is recorded
    pages   how many pages had loaded when the tap came
    is_shell  whether the browser is Chromium's headless shell
    failed  what the program that uses the context ended with, as far as somebody has said it
    """

    def __init__(self, context: Any, asked: Asked, api: str) -> None:
        self.run = ""
        self.over = False
        self.failed: BaseException | None = None
        self.pages = sum(page.url != _BLANK for page in context.pages)
        self.is_shell = False
        self.recorder: Recorder | None = None
        self._context = context
        self._options = contexts.given(context)
        self._asked = asked
        self._api = api
        self._attached = Attached(context, asked.endpoint, self.fault)
        self._shim = Shim(asked.shim, seed=fresh_seed(), start=time.time_ns() // 1_000_000)
        self._blank = len(context.pages)
        self._early: list[tuple[str, BaseException]] = []  # faults, before there is a run

    async def begin(self, state: Any, mark: Mapping[str, str]) -> None:
        """In Playwright's loop. `state`: the context's storage state; `mark`: the cookie that it is found by."""
        attached, name, about = self._attached, "", {"product": "", "userAgent": ""}
        try:
            name, about = await attached.reach(mark)
        except LockstepError:
            raise
        except Exception as error:
            self.fault("the connection to the browser", error)
        self.is_shell = str(about["product"]).startswith(_SHELL)
        # What our own store and packages are asked for is not the program's doing, where a session is on too.
        self.recorder = recorder = ours(self._recorder)(about)
        self.run = recorder.journal.run
        for early in self._early:
            recorder.fault(*early)
        request = layout.turn_request(self._options, state, self.pages, self._api, self._blank)
        ours(recorder.start)(contexts.browser(self._options, about), request)
        if attached.transport is not None:
            try:
                await attached.link(name, Exchanges(recorder.journal), self._shim)
            except Exception as error:
                self.fault("the network of the context", error)
        await attached.watch(recorder, attachments=self._asked.attachments)
        beneath = self._context._impl_obj
        beneath.on("close", lambda *_: self.left())
        beneath._connection.on("close", lambda *_: self.left())

    def _recorder(self, about: Mapping[str, Any]) -> Recorder:
        backend = layout.OWN_SOCKET if self._attached.full else layout.SESSIONS
        browser = contexts.browser(self._options, about)
        meta = layout.meta("", browser, backend, self._shim.meta(), naming.versions())
        return Recorder(naming.journal(self._asked.store, self._asked.run, meta))

    @property
    def script(self) -> str | None:
        """What its pages have to be given before all else, where they are not held for that."""
        return None if self._attached.full else self._shim.script() or None

    @property
    def faults(self) -> list[str]:
        return self.recorder.faults if self.recorder is not None else []

    def fault(self, where: str, error: BaseException) -> None:
        """An error of our own: the program goes on, and its run is called incomplete."""
        if self.recorder is not None:
            self.recorder.fault(where, error)
        else:
            self._early.append((where, error))

    def mark(self, name: str) -> None:
        """Marks a step by hand."""
        if self.recorder is not None and not self.over:
            self.recorder.mark(name)

    # The end.

    def is_of(self, owner: Any) -> bool:
        """Whether `owner` is its context, or its browser or connection: what is beneath those of the API."""
        beneath = self._context._impl_obj
        browser = self._context.browser
        return owner is not None and owner in (beneath, browser and browser._impl_obj, beneath._connection)

    def left(self, error: BaseException | None = None) -> None:
        """The context is closed, or its browser gone, or the program at its end. `error`: what that ended with."""
        if self.over:
            return
        error = error or self.failed
        self.over = True
        self._attached.tell_rest()
        self._attached.close()
        recorder = self.recorder
        if recorder is not None:
            recorder.finish(Status.ERROR if error is not None else Status.OK, error)
            recorder.close()
