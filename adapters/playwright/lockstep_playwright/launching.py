"""A browser with one tapped context, reached over a connection of our own, so that workers are recorded too.

    with lockstep_playwright.launch(run="checkout") as context:             # sync API
    async with lockstep_playwright.launch(run="checkout") as context:       # async API

The run ends with the block: as failed where that raised.
"""

from __future__ import annotations

from contextlib import AsyncExitStack, ExitStack
from types import TracebackType
from typing import Any

from lockstep_playwright import blocks, hosting, tapping
from lockstep_playwright.hosting import Wanted
from lockstep_playwright.shim.shim import Mode
from lockstep_playwright.tapping import Store


class launch:  # noqa: N801 - used as a function
    """See the module. `context_options` are those of Playwright's `new_context`.

    run, store, shim, attachments   as `tap` has them
    headless      False shows the browser
    executable    path of a Chromium, in place of the one that is found
    args          further arguments of its command line

    Raises TargetError LS412 where there is no browser, or none that starts, and as `tap`.
    """

    def __init__(
        self, *, run: str = "", store: Store = None, shim: Mode = "seed", attachments: bool = True,
        headless: bool = True, executable: str = "", args: tuple[str, ...] = (), **context_options: Any,
    ) -> None:  # fmt: skip
        self._wanted = Wanted(
            executable=executable, headless=headless, args=tuple(args), options=context_options
        )  # fmt: skip
        self._tap: dict[str, Any] = {"run": run, "store": store, "shim": shim, "attachments": attachments}
        self._stack = ExitStack()
        self._astack = AsyncExitStack()
        self._context: Any = None

    def __enter__(self) -> Any:
        with ExitStack() as stack:
            host = stack.enter_context(hosting.opened(self._wanted))
            self._context = tapping.tap(host.context, endpoint=host.endpoint, **self._tap)
            self._stack = stack.pop_all()
        return self._context

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._left(error)
        self._stack.close()

    async def __aenter__(self) -> Any:
        async with AsyncExitStack() as stack:
            host = await stack.enter_async_context(hosting.aopened(self._wanted))
            self._context = await tapping.tap(host.context, endpoint=host.endpoint, **self._tap)
            self._astack = stack.pop_all()
        return self._context

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._left(error)
        await self._astack.aclose()

    def _left(self, error: BaseException | None) -> None:
        """What the block raised is how its run ends."""
        tapped = tapping.tapped_of(self._context)
        if tapped is not None:
            tapped.failed = blocks.failed(error)
