"""The async API: pages at once, and the twins of replay and fork under a running loop."""

import asyncio

import pytest
from async_browser import browsing
from browser_site import Site
from native_agents import Shop

import lockstep
import lockstep_playwright
from lockstep.errors import TargetError


def test_pages_that_are_driven_at_once_are_replayed(shop: Shop, site: Site, store: str, chromium: str):
    async def record() -> None:
        async with lockstep_playwright.launch(run="own", store=store, executable=chromium) as context:
            assert await shop.three_forms(context) == ["joe 1", "joe 2", "joe 3"]
        async with browsing(chromium) as browser:
            context = await lockstep_playwright.tap(await browser.new_context(), run="theirs", store=store)
            await shop.three_forms(context)
            await context.close()

    asyncio.run(record())
    with site.gone() as canary:
        for run in ("playwright/own", "playwright/theirs"):
            done = lockstep.replay(run, shop.three_forms, store=store)
            assert (done.identical, done.divergence, done.result) == (True, None, ["joe 1", "joe 2", "joe 3"])
        assert canary.connects() == []


def test_replay_and_fork_have_twins_for_a_running_loop(shop: Shop, store: str, chromium: str):
    async def all_of_it() -> None:
        async with lockstep_playwright.launch(run="shop", store=store, executable=chromium) as context:
            await shop.three_forms(context)
        with pytest.raises(TargetError, match=r"await lockstep\.areplay instead"):
            lockstep.replay("playwright/shop", shop.three_forms, store=store)
        assert (await lockstep.areplay("playwright/shop", shop.three_forms, store=store)).identical
        fork = await lockstep.afork("playwright/shop:0", shop.three_forms, store=store)
        assert (fork.state, fork.live, fork.result) == ("complete", 3, ["joe 1", "joe 2", "joe 3"])

    asyncio.run(all_of_it())


def test_a_sync_function_is_replayed_under_a_running_loop(shop: Shop, store: str, chromium: str):
    with lockstep_playwright.launch(run="shop", store=store, executable=chromium) as context:
        shop.one_form(context)

    async def replay() -> tuple[bool, bool]:
        apart = await lockstep.areplay("playwright/shop", shop.one_form, store=store)
        here = lockstep.replay("playwright/shop", shop.one_form, store=store)
        return apart.identical, here.identical

    assert asyncio.run(replay()) == (True, True)
