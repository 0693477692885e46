"""An agent of fifty actions, which measures itself by a clock that no recorder serves.

browse_wire.py FIGURES sync|async|pages URL CHROMIUM
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import meter
from playwright.async_api import async_playwright
from playwright.sync_api import sync_playwright

ACTIONS = 50
PAGES = 5


def one_after_the_other(url: str, chromium: str) -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium)
        page = browser.new_context().new_page()
        page.goto(f"{url}/basket")
        for number in range((ACTIONS - 2) // 3):
            page.fill("#item", f"item {number}")
            page.click("#add")
            page.wait_for_selector(f"li:nth-child({number + 1})")
        print(page.inner_text("#count"))
        browser.close()


async def shop(context: Any, url: str, actions: int) -> None:
    page = await context.new_page()
    await page.goto(f"{url}/basket")
    for number in range((actions - 2) // 3):
        await page.fill("#item", f"item {number}")
        await page.click("#add")
        await page.wait_for_selector(f"li:nth-child({number + 1})")
    print(await page.inner_text("#count"))


async def shopping(url: str, chromium: str, pages: int) -> None:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=chromium)
        context = await browser.new_context()
        await asyncio.gather(*(shop(context, url, ACTIONS // pages) for _ in range(pages)))
        await browser.close()


def main() -> None:
    path, how, url, chromium = sys.argv[1:]
    figures = meter.Figures(path)
    began = meter.wall()
    if how == "sync":
        one_after_the_other(url, chromium)
    else:
        asyncio.run(shopping(url, chromium, PAGES if how == "pages" else 1))
    figures.add("wall", meter.wall() - began)
    figures.write()


if __name__ == "__main__":
    main()
