"""The tap on a browser that another client drives: browser-use, Stagehand, Playwright MCP, or a test of your own.

    with CdpTap.attach("http://127.0.0.1:9222", run="shopping") as tap:
        …                                   # the agent acts
        tap.step("basket filled")           # marks a step

Its network is recorded, of all contexts together. What the agent does is the other client's own affair, so there are no
actions, and nothing here can be run again: the run is shown, diffed and exported, and not replayed.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from lockstep.errors import Code, TargetError
from lockstep.log.model import Status
from lockstep_playwright import blocks, connecting, contexts, layout, naming
from lockstep_playwright.apart import Apart
from lockstep_playwright.cdp import socket
from lockstep_playwright.connecting import Linked
from lockstep_playwright.network.recorder import Recorder as Exchanges
from lockstep_playwright.recording import Recorder
from lockstep_playwright.tapping import Store


class CdpTap:
    """See the module. `run`: its name."""

    def __init__(self, apart: Apart, recorder: Recorder, linked: Linked) -> None:
        """For `attach`."""
        self._apart = apart
        self._recorder = recorder
        self._linked = linked
        self._over = False

    @property
    def run(self) -> str:
        return self._recorder.journal.run

    @classmethod
    def attach(cls, endpoint: str, *, run: str = "", store: Store = None) -> Self:
        """Attaches to a browser: "http://127.0.0.1:9222", or the WebSocket URL that it prints. Pages that are open are
        recorded from their next navigation on. Raises TargetError LS402 where there is no browser, StoreError."""
        apart = Apart()
        early: list[tuple[str, BaseException]] = []
        recorder: Recorder | None = None

        def fault(where: str, error: BaseException) -> None:
            if recorder is None:
                early.append((where, error))
            else:
                recorder.fault(where, error)

        try:
            transport = apart.run(socket.connect(endpoint, fault))
            about: Mapping[str, Any] = apart.run(transport.send("Browser.getVersion"))
        except Exception as error:
            apart.close()
            raise TargetError(Code.BAD_TARGET, f"no browser answers at {endpoint}: {error}") from error
        browser = contexts.browser({}, about)
        meta = layout.meta("", browser, layout.OWN_SOCKET, {"mode": "off"}, naming.versions())
        recorder = Recorder(naming.journal(store, run, meta))
        for told in early:
            recorder.fault(*told)
        recorder.start(browser, layout.turn_request({}, {}, 0, layout.ANY))
        linked = apart.run(connecting.link(transport, "", Exchanges(recorder.journal), None, fault))
        return cls(apart, recorder, linked)

    def step(self, name: str) -> None:
        """Marks a step: what came before belongs to it. Raises StoreError."""
        if not self._over:
            self._recorder.mark(name)

    def close(self, error: BaseException | None = None) -> None:
        """Lets go of the browser, which goes on. `error`: what the agent ended with."""
        if self._over:
            return
        self._over = True
        self._apart.finish(self._linked.close(), self._recorder.fault)
        self._apart.close()
        self._recorder.finish(Status.ERROR if error is not None else Status.OK, error)
        self._recorder.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close(blocks.failed(error))
