"""Agents that know nothing of Lockstep. `python wire_agents.py NAME URL CHROMIUM`"""

import asyncio
import os
import sys
import tempfile

from playwright import async_api, sync_api


def busy(url: str, chromium: str) -> None:
    """All kinds of answers that come through Playwright, one after the other."""
    with sync_api.sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(executable_path=chromium)
        context = browser.new_context(viewport={"width": 800, "height": 600}, locale="de-DE")
        page = context.new_page()
        page.on("console", lambda message: print("console", message.text))
        page.on("dialog", lambda dialog: dialog.accept("me"))
        page.expose_function("double", lambda number: number * 2)
        page.route("**/answer", lambda route: route.continue_(headers={**route.request.headers, "x-agent": "1"}))
        print(page.goto(f"{url}/basket").status, page.title())
        print(page.evaluate("double(21)"), page.evaluate("[Math.random(), {at: new Date()}]"))
        page.fill("#item", "tea")
        with page.expect_response("**/basket") as posted:
            page.click("#add")
        print(posted.value.all_headers()["content-type"], posted.value.text())
        sync_api.expect(page.locator("li")).to_have_count(1)
        print(page.locator("li").all_inner_texts(), page.evaluate("prompt('who?')"))
        try:
            page.click("#nothing", timeout=200)
        except sync_api.TimeoutError as error:
            print(type(error).__name__, str(error))
        try:
            sync_api.expect(page.locator("h1")).to_have_text("never", timeout=200)
        except AssertionError as error:
            print(error)
        page.set_content("<a href='/report.csv' download>report</a><input type=file>")
        page.set_input_files("input", {"name": "a.txt", "mimeType": "text/plain", "buffer": b"abc"})
        print(page.eval_on_selector("input", "input => input.files[0].size"))
        page.goto(f"{url}/basket")
        page.evaluate("document.body.innerHTML += `<a id=report href='/report.csv' download>report</a>`")
        for _ in range(2):
            with page.expect_download() as loading:
                page.click("#report")
        saved = os.path.join(folder, "report.csv")
        loading.value.save_as(saved)
        with open(saved) as copy, open(loading.value.path()) as original:
            print(copy.read() == original.read(), os.path.getsize(saved))
        with page.expect_popup() as opened:
            page.evaluate("void open('/form/1')")
        print(opened.value.title(), context.cookies()[0]["name"])
        picture = os.path.join(folder, "picture.png")
        page.screenshot(path=picture)
        print(os.path.getsize(picture), len(context.storage_state(path=f"{picture}.json")))
        print(context.request.get(f"{url}/moved").text(), context.request.post(f"{url}/post", data={"a": 1}).text())
        browser.close()


def crowded(url: str, chromium: str) -> None:
    """Pages at once, and tasks that give up."""

    async def shop(context: async_api.BrowserContext, number: int) -> None:
        page = await context.new_page()
        await page.goto(f"{url}/basket")
        await page.fill("#item", f"item {number}")
        await page.click("#add")
        await async_api.expect(page.locator("li")).to_have_count(1)
        print(number, await page.inner_text("li"), await page.evaluate("Math.random()"))
        await page.close()

    async def main() -> None:
        async with async_api.async_playwright() as playwright:
            browser = await playwright.chromium.launch(executable_path=chromium)
            context = await browser.new_context()
            await asyncio.gather(*(shop(context, number) for number in range(5)))
            page = await context.new_page()
            await page.goto(f"{url}/basket")
            waiting = asyncio.create_task(page.wait_for_selector("#nothing"))
            await asyncio.sleep(0.05)
            waiting.cancel()
            print(await asyncio.gather(waiting, return_exceptions=True))
            try:
                async with asyncio.timeout(0.1):
                    await page.wait_for_selector("#nothing")
            except TimeoutError:
                print("gave up")
            async with asyncio.TaskGroup() as group:
                for number in range(3):
                    wait = f"new Promise(done => setTimeout(() => done({number}), {20 * (3 - number)}))"
                    group.create_task(page.evaluate(wait)).add_done_callback(lambda done: print(done.result()))
            await browser.close()

    asyncio.run(main())


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
