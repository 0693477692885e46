"""A browser by Playwright's async API.

async def about() -> None:
    async with browsing(chromium) as browser:
        context = await browser.new_context()

asyncio.run(about())
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from playwright.async_api import Browser, async_playwright


@asynccontextmanager
async def browsing(chromium: str, **options: Any) -> AsyncIterator[Browser]:
    """`chromium`: the path, as the fixture has it; `options` of `launch`."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=chromium, **options)
        try:
            yield browser
        finally:
            await browser.close()
