"""Playwright with Lockstep: one tap on the browser context.

    import lockstep_playwright
    context = lockstep_playwright.tap(browser.new_context())                # sync API
    context = await lockstep_playwright.tap(await browser.new_context())    # async API

Importing this imports nothing of Playwright; `tap`, `launch` and `CdpTap` do when they are asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from lockstep.adapter import require
from lockstep.taps.imports import when_imported
from lockstep_playwright.adapter import adapter, attach

__all__ = ["CdpTap", "adapter", "launch", "step", "tap"]

_HOMES = {"CdpTap": "cdp_tap", "launch": "launching", "step": "tapping", "tap": "tapping"}

# For sessions in code, which begin before Playwright does and its `tap` comes.
when_imported("playwright", attach)


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'lockstep_playwright' has no attribute {name!r}")
    try:
        module = import_module(f"lockstep_playwright.{home}")
    except ModuleNotFoundError:
        require(adapter)  # says how to install it, where it is Playwright that is missing
        raise
    found = globals()[name] = getattr(module, name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
