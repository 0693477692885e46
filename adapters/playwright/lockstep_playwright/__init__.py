"""Playwright with Lockstep: one tap on the browser context.

    import lockstep_playwright
    context = lockstep_playwright.tap(browser.new_context())                # sync API
    context = await lockstep_playwright.tap(await browser.new_context())    # async API

Importing this imports nothing of Playwright; `tap`, `launch` and `CdpTap` do when they are asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lockstep.adapter import late_names
from lockstep.taps.imports import when_imported
from lockstep_playwright.adapter import adapter, attach

__all__ = ["CdpTap", "adapter", "launch", "step", "tap"]

# For sessions in code, which begin before Playwright does and its `tap` comes.
when_imported("playwright", attach)

if TYPE_CHECKING:
    from lockstep_playwright.cdp_tap import CdpTap
    from lockstep_playwright.launching import launch
    from lockstep_playwright.tapping import step, tap
else:
    __getattr__ = late_names(adapter, globals(), CdpTap="cdp_tap", launch="launching", step="tapping", tap="tapping")
