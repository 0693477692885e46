"""The tap on a browser context: from here on what it asks of the network, and what the agent does with it, is recorded.

    context = lockstep_playwright.tap(browser.new_context())                 # sync API
    context = await lockstep_playwright.tap(await browser.new_context())     # async API

Over Playwright's own connection, unless `endpoint` names the DevTools port of its browser: over a connection of our own
workers are reached too. The run ends with the context.
"""

from __future__ import annotations

import atexit
import os
import sys
import warnings
import weakref
from typing import Any

from lockstep.errors import Code, TargetError
from lockstep_playwright import blocks, connecting, fitting
from lockstep_playwright.shim.shim import MODES, Mode
from lockstep_playwright.tapped import Asked, Tapped

type Store = str | os.PathLike[str] | None


def tap(
    context: Any, *, run: str = "", store: Store = None, shim: Mode = "seed", attachments: bool = True,
    endpoint: str = "",
) -> Any:  # fmt: skip
    """Taps a browser context, before its first page loads. Returns it; with the async API, an awaitable that gives it.

    run          the run will be `playwright/<run>` or, if that exists, `playwright/<run>-2`. The script's name if not
                 told
    store        path of the store; found as on the command line if not told
    shim         what pages see of clock and chance: "seed" (logical time, random numbers from a seed), "freeze" (time
                 stands still), "off" (the machine's own: a replay then has others)
    attachments  whether an accessibility snapshot and a picture are kept of each step
    endpoint     the DevTools address of the context's browser, as "http://127.0.0.1:9222"

    Raises TargetError LS402 for what is no context of Chromium, StoreError where the store cannot be used, AdapterError
    LS410 where this version of Playwright lacks what is needed. Anything else that goes wrong here or later is not the
    program's: it goes on, and its run is called incomplete.
    """
    if shim not in MODES:
        raise TargetError(Code.BAD_TARGET, f"shim= is one of {', '.join(MODES)}, not {shim!r}")
    fitting.check()
    asked = Asked(run=run, store=store, shim=shim, attachments=attachments, endpoint=endpoint)
    if api_of(context) == "async":
        return _atap(context, asked)
    known = _known(context)
    if known is not None:
        return context
    tapped = Tapped(context, asked, "sync")
    mark = connecting.mark()
    state = context.storage_state()
    context.add_cookies([mark])
    if (script := tapped.script) is not None:
        context.add_init_script(script)
    context._sync(tapped.begin(state, mark))
    _keep(context, tapped)
    return context


async def _atap(context: Any, asked: Asked) -> Any:
    if _known(context) is not None:
        return context
    tapped = Tapped(context, asked, "async")
    mark = connecting.mark()
    state = await context.storage_state()
    await context.add_cookies([mark])
    if (script := tapped.script) is not None:
        await context.add_init_script(script)
    await tapped.begin(state, mark)
    _keep(context, tapped)
    return context


def api_of(context: Any) -> str:
    """ "sync" or "async". Raises TargetError LS402 for what is no context of Chromium."""
    kind = type(context)
    if kind.__name__ != "BrowserContext" or not kind.__module__.startswith("playwright."):
        raise TargetError(
            Code.BAD_TARGET,
            f"what is tapped is a Playwright BrowserContext, as browser.new_context() gives, not a {kind.__name__}",
        )
    browser = context.browser
    name = browser.browser_type.name if browser is not None else "chromium"
    if name != "chromium":
        raise TargetError(
            Code.BAD_TARGET,
            f"{name} has no DevTools protocol, so its network cannot be tapped. Its runs are recorded at wire depth, "
            "under `lockstep record` or inside `with lockstep.record()`, and replay without any browser",
        )
    return "async" if kind.__module__.startswith("playwright.async_api") else "sync"


# Those that are on, by the implementation of their context: of an object of the API there may be several.
_tapped: weakref.WeakKeyDictionary[Any, Tapped] = weakref.WeakKeyDictionary()


def tapped_of(context: Any) -> Tapped | None:
    """The tap on a context, None where there is none that is on."""
    found = _tapped.get(getattr(context, "_impl_obj", context))
    return None if found is None or found.over else found


def _known(context: Any) -> Tapped | None:
    found = tapped_of(context)
    if found is not None:
        warnings.warn(f"this context is tapped already, as {found.run}: the second tap does nothing", stacklevel=3)
    return found


def _keep(context: Any, tapped: Tapped) -> None:
    _tapped[context._impl_obj] = tapped
    if tapped.pages:
        warnings.warn(
            f"{tapped.run} was tapped when {tapped.pages} of its pages had loaded: what they asked before is not "
            "recorded, so a replay has it not. Tap a context before its first page loads",
            stacklevel=3,
        )
    if tapped.is_shell:
        # Seen with 156: 3 of 14 such pages with Playwright alone, half of them where requests are held.
        warnings.warn(
            f"{tapped.run} is of Chromium's headless shell: in it frames of other sites may stop loading, more often "
            'while requests are held. Launch the whole browser: chromium.launch(channel="chromium")',
            stacklevel=3,
        )
    if tapped.faults:
        warnings.warn(f"{tapped.run} is incomplete: {tapped.faults[0]}", stacklevel=3)


def _raised(owner: Any, error: BaseException) -> None:
    """An exception left the block of a context, its browser or all of Playwright: that is how the run ends."""
    for tapped in list(_tapped.values()):
        if tapped.is_of(owner):
            tapped.failed = error


blocks.hear(_raised)


def _leave() -> None:
    """The interpreter ends: so do the contexts that nobody closed."""
    error = blocks.failed(getattr(sys, "last_exc", None))
    for tapped in list(_tapped.values()):
        tapped.left(error)


atexit.register(_leave)


def step(name: str, context: Any = None) -> None:
    """Marks a step by hand, as where actions are another client's (`CdpTap`). `context`: which, where several are
    tapped. Raises TargetError LS402 where none is."""
    found = [tapped_of(context)] if context is not None else [each for each in _tapped.values() if not each.over]
    if len(found) != 1 or found[0] is None:
        raise TargetError(Code.BAD_TARGET, "step() is for one tapped context: say which, by context=")
    found[0].mark(name)
