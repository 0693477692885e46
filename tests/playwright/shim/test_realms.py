"""What is told to documents and workers over a connection of our own, before they run."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from browser_site import Site

from lockstep.session.native import Memory
from lockstep_playwright import connecting
from lockstep_playwright.cdp import socket as own
from lockstep_playwright.hosting import Wanted, aopened
from lockstep_playwright.network.recorder import Recorder
from lockstep_playwright.shim.shim import Shim

START = 1_700_000_000_000

type Act = Callable[[Any], Awaitable[Any]]


def acted(chromium: str, act: Act) -> Any:
    """What an agent gets with a fresh context, all of whose realms have one shim."""

    async def main() -> Any:
        faults: list[Any] = []

        def failed(where: str, error: BaseException) -> None:
            faults.append((where, error))

        async with aopened(Wanted(executable=chromium)) as host:
            transport = await own.connect(host.endpoint, failed)
            mark = connecting.mark()
            await host.context.add_cookies([mark])
            name = await connecting.marked(transport, mark)
            shim = Shim("seed", seed="a seed", start=START)
            linked = await connecting.link(transport, name, Recorder(Memory()), shim, failed)
            found = await act(host.context)
            await linked.close()
            assert faults == []
            return found

    return asyncio.run(main())


def test_each_document_is_numbered_also_where_a_page_changes_its_process(chromium: str, site: Site) -> None:
    async def act(context: Any) -> list[Any]:
        page, seen = await context.new_page(), []
        for number in range(12):
            origin = (site.url, site.other)[number % 2]
            await page.goto(f"{origin}/answer{'' if number % 3 else '?other'}")
            seen.append(await page.evaluate("[Date.now(), Math.random()]"))
        return seen

    seen = acted(chromium, act)
    assert [time - START for time, _ in seen] == [1000 * number for number in range(12)]
    assert len({dice for _, dice in seen}) == 12
    assert acted(chromium, act) == seen


def test_workers_have_clock_and_dice_of_their_own_and_none_sees_its_own_address_change_them(
    chromium: str, site: Site
) -> None:
    made = """() => {
        const code = "postMessage([Date.now(), Math.random(), crypto.randomUUID(), performance.now()])";
        const url = URL.createObjectURL(new Blob([code], {type: "text/javascript"}));
        const worked = () => new Promise(done => { new Worker(url).onmessage = event => done(event.data) });
        return worked().then(one => worked().then(other => [one, other]));
    }"""

    async def act(context: Any) -> Any:
        page = await context.new_page()
        await page.goto(f"{site.url}/answer")
        return await page.evaluate(made)

    one, other = acted(chromium, act)
    assert [one[0], other[0]] == [START, START]
    assert one[1:3] != other[1:3]
    assert acted(chromium, act) == [one, other]


def test_a_frame_of_another_site_has_a_number_of_its_own_and_a_popup_is_a_child_of_its_opener(
    chromium: str, site: Site
) -> None:
    async def act(context: Any) -> Any:
        page = await context.new_page()
        await page.goto(f"{site.url}/answer")
        await page.evaluate(
            "url => { document.body.innerHTML = `<iframe src='${url}'></iframe>` }", f"{site.other}/frame"
        )
        while len(page.frames) < 2 or not page.frames[1].url.endswith("/frame"):
            await asyncio.sleep(0.01)
        await page.frames[1].wait_for_load_state()
        async with context.expect_page() as opening:
            await page.evaluate("void window.open('/answer')")
        popup = await opening.value
        await popup.wait_for_load_state()
        return [await each.evaluate("[Date.now(), Math.random()]") for each in (page, page.frames[1], popup)]

    seen = acted(chromium, act)
    assert [time - START for time, _ in seen] == [0, 1000, 0]
    assert len({dice for _, dice in seen}) == 3
    assert acted(chromium, act) == seen
