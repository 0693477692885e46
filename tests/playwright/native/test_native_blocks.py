"""How a run ends that nobody closes by hand: as the block of Playwright's that its context was used in."""

import asyncio
import gc
import logging
from collections.abc import Mapping
from typing import Any

import pytest
from native_agents import Shop
from playwright.async_api import async_playwright
from playwright.sync_api import sync_playwright

import lockstep_playwright
from lockstep.log.model import RunState
from lockstep.log.store import open_store
from lockstep.log.timeline import Timeline
from lockstep_playwright.cdp.sessions import Sessions
from lockstep_playwright.recorded import Recorded
from lockstep_playwright.recording import Recorder


class Lost(Exception):
    """What the program raises."""


def state(store: str, run: str) -> RunState:
    with open_store(store) as opened:
        return Timeline(opened.run(f"playwright/{run}")).reader.info.state


def last(store: str, run: str) -> tuple[str, Mapping[str, Any]]:
    with open_store(store) as opened:
        action = Recorded(opened.run(f"playwright/{run}")).actions[-1]
        return action.name, action.record


def test_what_leaves_a_block_is_how_its_run_ends_and_what_is_handled_inside_is_not(
    chromium: str, shop: Shop, store: str
):
    with pytest.raises(Lost), sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium)
        with pytest.raises(Lost), browser.new_context() as context:
            lockstep_playwright.tap(context, run="context", store=store)
            raise Lost
        with browser.new_context() as context:
            lockstep_playwright.tap(context, run="handled", store=store)
            with pytest.raises(Lost):
                raise Lost
        with pytest.raises(SystemExit), browser.new_context() as context:
            lockstep_playwright.tap(context, run="exit", store=store)
            raise SystemExit
        open_ = lockstep_playwright.tap(browser.new_context(), run="all", store=store)
        shop.not_sent(open_)
        raise Lost
    assert state(store, "context") is RunState.FAILED
    assert state(store, "handled") is RunState.COMPLETE
    assert state(store, "exit") is RunState.COMPLETE
    assert state(store, "all") is RunState.FAILED
    name, record = last(store, "all")
    assert name.startswith("fill ")
    assert record["dom"][1], "the page behind the last action was not waited for"


def test_nothing_of_ours_is_left_waiting_where_a_browser_ends_with_its_context(
    chromium: str, shop: Shop, store: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    real, over = Sessions.close, []

    async def late(sessions: Sessions) -> None:
        await asyncio.sleep(0.2)  # as on a machine that is busy
        await real(sessions)
        over.append(sessions)

    monkeypatch.setattr(Sessions, "close", late)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium)
        context = lockstep_playwright.tap(browser.new_context(), run="ended", store=store)
        shop.not_sent(context)
        context.close()
        browser.close()
    gc.collect()
    assert len(over) == 1
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR] == []
    assert state(store, "ended") is RunState.COMPLETE


def test_the_same_in_the_async_api(chromium: str, shop: Shop, store: str):
    async def run(closed: str) -> None:
        async with async_playwright() as playwright:
            browser = await playwright.chromium.launch(executable_path=chromium)
            async with browser:
                context = await lockstep_playwright.tap(await browser.new_context(), run=closed, store=store)
                page = await context.new_page()
                await page.goto(f"{shop.url}/form/1")
                await page.fill("#name", "joe 1")
                if closed == "failed":
                    raise Lost

    asyncio.run(run("fine"))
    with pytest.raises(Lost):
        asyncio.run(run("failed"))
    assert state(store, "fine") is RunState.COMPLETE
    assert state(store, "failed") is RunState.FAILED
    name, record = last(store, "failed")
    assert name.startswith("fill ")
    assert record["dom"][1]


def test_faults_of_ours_are_told_when_the_run_ends(
    chromium: str, shop: Shop, store: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    def broken(*_: object) -> None:
        raise ValueError("broken by the test")

    monkeypatch.setattr(Recorder, "stepped", broken)
    with (
        caplog.at_level(logging.WARNING, logger="lockstep"),
        lockstep_playwright.launch(run="faulty", store=store, executable=chromium) as context,
    ):
        assert shop.one_form(context) == "Part 1, visit 1"
        assert not caplog.messages
    assert any("playwright/faulty" in told and "broken by the test" in told for told in caplog.messages)
    with open_store(store) as opened:
        assert opened.run("playwright/faulty").info.incomplete
