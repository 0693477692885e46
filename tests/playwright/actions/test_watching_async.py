"""Actions of the async API: at once on several pages, cancelled, and in the order in which they are without us."""

import asyncio
import traceback
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from async_browser import browsing
from hearing import SHOP, Heard
from playwright.async_api import BrowserContext, Page, expect
from playwright.async_api import Error as PlaywrightError

from lockstep_playwright.actions import Watch

URL = "http://shop.test/"


@asynccontextmanager
async def shopping(chromium: str, *heard: Heard) -> AsyncIterator[BrowserContext]:
    """A context with a shop in it, watched by each of these."""
    async with browsing(chromium) as browser:
        context = await browser.new_context()
        await context.route("**/*", lambda route: route.fulfill(body=SHOP, content_type="text/html"))
        for each in heard:
            await Watch(context, each).attach()
        yield context
        await context.close()
    for each in heard:
        assert each.faults == []


async def shop(page: Page, item: str) -> list[Any]:
    await page.goto(URL)
    await page.fill("#q", item)
    await page.click("#buy")
    await expect(page.locator("#out")).to_have_text(f"bought 1 of {item}")
    seen: list[Any] = await asyncio.gather(page.title(), page.inner_text("#out"), page.evaluate("bought"))
    try:
        await asyncio.wait_for(page.wait_for_selector("#never"), 0.05)
    except TimeoutError:
        seen.append("given up")
    try:
        await page.click("#nope", timeout=50)
    except PlaywrightError as error:
        lines = traceback.format_exception(error)
        seen.append([line for line in lines if "locator resolved" not in line])
    await page.close()
    return seen


def test_pages_used_at_once_each_have_their_own_actions_in_order(chromium: str) -> None:
    heard = Heard()

    async def main() -> None:
        async with shopping(chromium, heard) as context:
            pages = [await context.new_page() for _ in range(3)]
            await asyncio.gather(*(shop(page, f"item {number}") for number, page in enumerate(pages)))

    asyncio.run(main())
    for number in range(3):
        mine = [action.name for action, _ in heard.ended if action.page == number + 1 and action.kind == "action"]
        # What is given up ends at once since 1.65, and before that with its page.
        given_up = mine.pop(mine.index('wait for "#never"'))
        assert [*mine[:5], given_up, *mine[5:]] == [
            f"goto {URL}",
            f'fill "#q" = "item {number}"',
            'click "#buy"',
            f'expect "#out" to have text "bought 1 of item {number}"',
            "evaluate bought",
            'wait for "#never"',
            'click "#nope"',
            "close page",
        ]
        digests = [done.dom[1] for action, done in heard.ended if action.page == number + 1 and done.dom[1]]
        assert digests[2:] == digests[2:3] * len(digests[2:])
    assert any(action.beside for action in heard.begun)


def test_a_program_sees_what_it_sees_without_us(chromium: str) -> None:
    async def main(*heard: Heard) -> list[Any]:
        async with shopping(chromium, *heard) as context:
            return await shop(await context.new_page(), "shoes")

    assert asyncio.run(main(Heard())) == asyncio.run(main())


def test_a_call_that_is_given_up_has_no_result(chromium: str) -> None:
    heard = Heard()

    async def main() -> None:
        async with shopping(chromium, heard) as context:
            await shop(await context.new_page(), "shoes")

    asyncio.run(main())
    error = heard.done('wait for "#never"').error
    assert error is not None and error["name"] in ("AbortError", "CancelledError", "Error", "TargetClosedError")


def test_a_task_that_calls_alone_has_no_line_and_all_others_have(chromium: str) -> None:
    heard = Heard()

    async def main() -> None:
        async with shopping(chromium, heard) as context:
            page = await context.new_page()
            await asyncio.gather(page.goto(URL), context.new_page())
            await page.click("#buy")

    asyncio.run(main())
    here = test_a_task_that_calls_alone_has_no_line_and_all_others_have.__name__
    # Since 1.65 nobody knows; before, the client tells where the call was made.
    assert heard.action(f"goto {URL}").site.rpartition(" in ")[2] in ("", "main", here)
    assert heard.action('click "#buy"').site.endswith("main")


def test_an_action_is_held_until_those_who_hear_of_it_let_it_go(chromium: str) -> None:
    heard = Heard()

    async def main() -> None:
        async with shopping(chromium, heard) as context:
            page = await context.new_page()
            await page.goto(URL)
            heard.order.clear()

            async def wait() -> None:
                assert await page.evaluate("bought") == 0
                heard.order.append("let go")

            heard.wait = wait()
            await page.click("#buy")
            assert await page.evaluate("bought") == 1

    asyncio.run(main())
    assert heard.order.index('begin click "#buy"') < heard.order.index("let go") < heard.order.index('end click "#buy"')


def test_two_who_watch_one_context_hear_the_same(chromium: str) -> None:
    first, second = Heard(), Heard()

    async def main() -> None:
        async with shopping(chromium, first, second) as context:
            await shop(await context.new_page(), "shoes")

    asyncio.run(main())
    assert first.names() == second.names()
    assert [done.dom for _, done in first.ended] == [done.dom for _, done in second.ended]


def test_nothing_is_told_once_nobody_watches(chromium: str) -> None:
    heard = Heard()

    async def main() -> None:
        async with browsing(chromium) as browser:
            context = await browser.new_context()
            watch = Watch(context, heard)
            await watch.attach()
            page = await context.new_page()
            await watch.drain()
            watch.detach()
            await page.set_content("<p id=gone>")
            assert await page.locator("#gone").count() == 1

    asyncio.run(main())
    assert heard.names() == ["new page"]
