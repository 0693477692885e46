"""Functions of a context that tests record, replay and fork. `Shop` is the site that they browse."""

from __future__ import annotations

import asyncio
from typing import Any


class Shop:
    """`url` of its site."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.shown = "as ever"  # what a route of the agent's own answers with

    def two_forms(self, context: Any) -> str:
        """Six actions on one page: open, type, send, twice."""
        page = context.new_page()
        for part in (1, 2):
            page.goto(f"{self.url}/form/{part}")
            page.fill("#name", f"joe {part}")
            page.click("#send")
        return str(page.inner_text("h1"))

    def one_form(self, context: Any) -> str:
        page = context.new_page()
        page.goto(f"{self.url}/form/1")
        page.fill("#name", "joe 1")
        page.click("#send")
        return str(page.inner_text("h1"))

    def other_name(self, context: Any) -> str:
        page = context.new_page()
        page.goto(f"{self.url}/form/1")
        page.fill("#name", "jim")
        page.click("#send")
        return str(page.inner_text("h1"))

    def one_form_of_jim(self, context: Any) -> str:
        """As the first form of two, sent by another one."""
        return self.other_name(context)

    def sent_twice(self, context: Any) -> None:
        self.one_form(context)
        context.pages[0].click("#send")

    def not_sent(self, context: Any) -> None:
        page = context.new_page()
        page.goto(f"{self.url}/form/1")
        page.fill("#name", "joe 1")

    def mocked(self, context: Any) -> str:
        """Answers a request itself."""
        page = context.new_page()
        page.route("**/mocked", lambda route: route.fulfill(body=f"<p>{self.shown}</p>", content_type="text/html"))
        page.goto(f"{self.url}/mocked")
        return "went on"

    def two_at_once(self, context: Any) -> list[str]:
        """What is asked for first comes last."""
        page = context.new_page()
        page.goto(f"{self.url}/form/1")
        both = page.evaluate(
            "Promise.all(['/small/1?after=0.3', '/small/2'].map(path => fetch(path).then(a => a.text())))"
        )
        return list(both)

    def in_turn(self, context: Any) -> list[str]:
        """One action that asks twice, one after the other, and an action behind it."""
        page = context.new_page()
        page.goto(f"{self.url}/form/1")
        got = page.evaluate(
            "(async () => [await (await fetch('/small/1')).text(), await (await fetch('/small/2')).text()])()"
        )
        page.fill("#name", "joe")
        return list(got)

    def prices(self, context: Any) -> str:
        page = context.new_page()
        page.goto(f"{self.url}/prices")
        page.wait_for_function("document.title == 'priced'")
        return str(page.inner_text("#total"))

    async def three_forms(self, context: Any) -> list[str]:
        """Three pages at once."""

        async def fill(part: int) -> str:
            page = await context.new_page()
            await page.goto(f"{self.url}/form/{part}")
            await page.fill("#name", f"joe {part}")
            return str(await page.input_value("#name"))

        return list(await asyncio.gather(*(fill(part) for part in (1, 2, 3))))
