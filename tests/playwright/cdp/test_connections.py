"""The connections themselves: what they say of a browser that is not there, refuses, or goes."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from async_browser import browsing
from cdp_recordings import BACKENDS, SOCKET, Browsed
from edge_site import edge_site

from lockstep_playwright.cdp import sessions, socket
from lockstep_playwright.cdp.transport import CdpError, Transport
from lockstep_playwright.hosting import free_port

both = pytest.mark.parametrize("backend", BACKENDS)


async def until(happened: Callable[[], Any]) -> None:
    for _ in range(400):
        if happened():
            return
        await asyncio.sleep(0.02)
    raise AssertionError("it did not happen")


def test_what_is_no_devtools_port_is_called_so() -> None:
    async def dial(endpoint: str) -> None:
        await socket.connect(endpoint, lambda *_: None)

    with edge_site() as site:
        with pytest.raises(OSError, match=r"127.0.0.1:\d+ is no browser's DevTools port"):
            asyncio.run(dial(site.url))
    with pytest.raises(OSError):
        asyncio.run(dial(f"http://127.0.0.1:{free_port()}"))


def test_a_browser_is_found_by_its_port_or_by_the_address_that_it_prints(browsed: Browsed) -> None:
    async def dial() -> None:
        first = await socket.connect(browsed.endpoint, lambda *_: None)
        again = await socket.connect(first.url, lambda *_: None)
        version = await again.send("Browser.getVersion")
        assert version == await first.send("Browser.getVersion")
        await again.close()
        await first.close()

    browsed.run(dial())


@both
def test_a_refused_command_says_which_it_was_and_a_posted_one_is_told_of(browsed: Browsed, backend: str) -> None:
    async def ask() -> None:
        async with browsed.recorded(backend) as taken:
            transport = taken.transport
            with pytest.raises(CdpError, match=r"Page\.nothing: .*Page\.nothing") as refused:
                await transport.send("Page.nothing")
            assert not refused.value.gone
            transport.post("Page.nothing")
            await until(lambda: taken.faults)
            assert taken.faults.pop().startswith("Page.nothing: CdpError")
            # Of what has ended by itself, nobody is told.
            transport.post("Fetch.continueRequest", {"requestId": "interception-job-9999.0"})
            transport.post("Page.enable", {}, "no such session")
            await transport.send("Browser.getVersion")

    browsed.run(ask())


@both
def test_commands_reach_the_browser_in_the_order_in_which_they_are_given(browsed: Browsed, backend: str) -> None:
    async def ask() -> None:
        async with browsed.recorded(backend) as taken:
            told: list[dict[str, Any]] = []
            taken.transport.listen(lambda method, params, _: told.append({"method": method, **params}))
            page = await taken.context.new_page()
            await page.evaluate("window.order = []")
            await until(lambda: _pages(told))
            session = _pages(told)[0]
            for number in range(5):
                expression = {"expression": f"order.push({number})"}
                taken.transport.post("Runtime.evaluate", expression, session)
                await taken.transport.send("Runtime.evaluate", {"expression": f"order.push({number}.5)"}, session)
            assert await page.evaluate("order") == [0, 0.5, 1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5]

    browsed.run(ask())


def _pages(told: list[dict[str, Any]]) -> list[str]:
    attached = [each for each in told if each["method"] == "Target.attachedToTarget"]
    return [each["sessionId"] for each in attached if each["targetInfo"]["type"] == "page"]


@both
def test_a_browser_that_goes_leaves_nobody_waiting(chromium: str, backend: str) -> None:
    async def watch() -> None:
        faults: list[str] = []
        port = free_port()
        args = [f"--remote-debugging-port={port}"] if backend == SOCKET else []
        async with browsing(chromium, args=args) as browser:
            context = await browser.new_context()
            transport: Transport
            if backend == SOCKET:
                transport = await socket.connect(f"http://127.0.0.1:{port}", lambda where, _: faults.append(where))
            else:
                transport = await sessions.connect(context, lambda where, _: faults.append(where))
            await context.new_page()
            open_ = asyncio.ensure_future(_hung(transport))
            await asyncio.sleep(0.3)  # it is on its way
            await browser.close()
            with pytest.raises(CdpError) as refused:
                await asyncio.wait_for(open_, 20)
            assert refused.value.gone
            await until(lambda: transport.closed)
            with pytest.raises(CdpError) as refused:
                await transport.send("Browser.getVersion")
            assert refused.value.gone
            transport.post("Browser.getVersion")
            await transport.close()
        assert faults == []

    asyncio.run(watch())


async def _hung(transport: Transport) -> None:
    """Asks something that has no answer."""
    if transport.full:
        targets = (await transport.send("Target.getTargets"))["targetInfos"]
        page_ = next(each for each in targets if each["type"] == "page")
        params = {"targetId": page_["targetId"], "flatten": True}
        session = (await transport.send("Target.attachToTarget", params))["sessionId"]
    else:
        found: list[str] = []
        transport.listen(
            lambda method, params, _: found.append(params["sessionId"]) if method == "Target.attachedToTarget" else None
        )
        await transport.attach()
        session = found[0]
    hung = {"expression": "new Promise(() => {})", "awaitPromise": True}
    await transport.send("Runtime.evaluate", hung, session)
