"""What becomes of contexts that are tapped: each is a run of its own, and the program goes on whatever happens."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from browser_site import Site
from native_agents import Shop
from playwright.sync_api import Browser, BrowserType, Playwright

import lockstep
import lockstep_playwright
from lockstep.errors import AdapterError, TargetError
from lockstep.log.model import RunState
from lockstep.log.store import open_store
from lockstep.log.timeline import Timeline
from lockstep_playwright import fitting


def steps(store: str, run: str) -> list[str]:
    with open_store(store) as opened:
        return [step.name for step in Timeline(opened.run(run)).steps if step.kind == "action"]


def test_each_action_is_a_step_with_what_it_asked_of_the_network(browser: Browser, shop: Shop, store: str):
    context = lockstep_playwright.tap(browser.new_context(), run="shop", store=store)
    shop.one_form(context)
    context.close()
    with open_store(store) as opened:
        timeline = Timeline(opened.run("playwright/shop"))
        told = {step.name: [effect.name for effect in step.effects] for step in timeline.steps if step.kind == "action"}
    where = shop.url.removeprefix("http://")
    assert list(told) == ["new page", f"goto {shop.url}/form/1", 'fill "#name" = "joe 1"', 'click "#send"']
    assert told[f"goto {shop.url}/form/1"][0] == f"GET {where}/form/1"
    assert told['click "#send"'] == [f"POST {where}/form/1"]


def test_two_contexts_of_one_browser_are_told_apart(browser: Browser, shop: Shop, store: str):
    first = lockstep_playwright.tap(browser.new_context(), run="first", store=store)
    second = lockstep_playwright.tap(browser.new_context(), run="second", store=store)
    untapped = browser.new_context()
    assert [shop.one_form(context) for context in (first, second, untapped)] == ["Part 1, visit 1"] * 3
    first.close()
    second.pages[0].click("#send")
    second.close()
    untapped.close()
    filled = 'fill "#name" = "joe 1"'
    assert steps(store, "playwright/first")[-2:] == [filled, 'click "#send"']
    assert steps(store, "playwright/second")[-3:] == [filled, 'click "#send"', 'click "#send"']


def test_a_name_that_exists_gets_a_number(browser: Browser, store: str):
    for _ in range(2):
        lockstep_playwright.tap(browser.new_context(), run="a@b", store=store).close()
    with open_store(store) as opened:
        assert {info.name for info in opened.runs()} == {"playwright/a%40b", "playwright/a%40b-2"}


def test_a_second_tap_does_nothing_and_says_so(browser: Browser, store: str):
    context = lockstep_playwright.tap(browser.new_context(), run="once", store=store)
    with pytest.warns(UserWarning, match="tapped already, as playwright/once"):
        assert lockstep_playwright.tap(context, run="twice", store=store) is context
    context.close()
    with open_store(store) as opened:
        assert [info.name for info in opened.runs()] == ["playwright/once"]


def test_a_tap_after_a_page_has_loaded_warns_of_what_it_missed(browser: Browser, site: Site, store: str):
    context = browser.new_context()
    page = context.new_page()
    page.goto(site.url + "/form/1")
    with pytest.warns(UserWarning, match="tapped when 1 of its pages had loaded"):
        lockstep_playwright.tap(context, run="late", store=store)
    page.reload()
    context.close()
    assert "reload" in steps(store, "playwright/late")


def test_a_browser_that_cannot_be_reached_leaves_the_program_alone(browser: Browser, shop: Shop, store: str):
    with pytest.warns(UserWarning, match="playwright/shop is incomplete"):
        context = lockstep_playwright.tap(
            browser.new_context(), run="shop", store=store, endpoint="http://127.0.0.1:1"
        )  # fmt: skip
    assert shop.one_form(context) == "Part 1, visit 1"
    context.close()
    with open_store(store) as opened:
        assert opened.run("playwright/shop").info.incomplete


def test_what_is_no_context_is_refused(browser: Browser, store: str):
    with pytest.raises(TargetError, match="not a Browser"):
        lockstep_playwright.tap(browser, store=store)
    context = browser.new_context()
    with pytest.raises(TargetError, match="shim= is one of"):
        lockstep_playwright.tap(context, store=store, shim="on")
    context.close()


def test_another_browser_than_chromium_is_refused_with_the_depth_that_works_there(
    browser: Browser, store: str, monkeypatch: pytest.MonkeyPatch
):
    context = browser.new_context()
    monkeypatch.setattr(BrowserType, "name", "firefox")
    with pytest.raises(
        TargetError, match=r"LS402 firefox has no DevTools protocol.*at wire depth, under `lockstep record`"
    ):
        lockstep_playwright.tap(context, store=store)
    context.close()


def test_a_playwright_that_is_too_old_is_refused_before_anything_is_done(
    browser: Browser, store: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(fitting, "require", lambda adapter: "1.58.0")
    context = browser.new_context()
    with pytest.raises(AdapterError, match=r"LS410 playwright 1\.58\.0 is too old to be tapped, which needs 1\.60"):
        lockstep_playwright.tap(context, store=store)
    with pytest.raises(AdapterError, match="LS410"):
        lockstep_playwright.launch(store=store).__enter__()
    assert context.cookies() == []
    context.close()


def test_a_persistent_context_has_its_first_page_in_a_replay_too(
    playwright: Playwright, chromium: str, shop: Shop, store: str, tmp_path
):
    context = playwright.chromium.launch_persistent_context(tmp_path / "profile", executable_path=chromium)
    lockstep_playwright.tap(context, run="kept", store=store)

    def drive(context) -> str:
        page = context.pages[0]
        page.goto(shop.url + "/form/1")
        return page.title()

    assert drive(context) == "form 1"
    context.close()
    assert lockstep.replay("playwright/kept", drive, store=store).identical


def test_a_block_that_raises_leaves_a_run_that_failed(shop: Shop, store: str, chromium: str, playwright: Playwright):
    del playwright  # a sync one is on in this thread, so `launch` may not start another: it tells so itself
    with pytest.raises(Exception, match="Sync API inside the asyncio loop"):
        lockstep_playwright.launch(run="shop", store=store, executable=chromium).__enter__()


def test_steps_are_marked_by_hand(browser: Browser, store: str):
    context = lockstep_playwright.tap(browser.new_context(), run="marked", store=store)
    lockstep_playwright.step("half way", context)
    context.close()
    assert "half way" in steps(store, "playwright/marked")
    with pytest.raises(TargetError, match="say which"):
        lockstep_playwright.step("nowhere")


def test_another_clients_browser_is_recorded_and_cannot_be_run_again(
    playwright: Playwright, chromium: str, shop: Shop, store: str
):
    with hosted(playwright, chromium) as endpoint:
        with lockstep_playwright.CdpTap.attach(endpoint, run="theirs", store=store) as tap:
            other = playwright.chromium.connect_over_cdp(endpoint)
            shop.one_form(other.new_context())
            tap.step("sent")
            other.close()
    with open_store(store) as opened:
        timeline = Timeline(opened.run("playwright/theirs"))
        names = [effect.name.partition(" ")[0] for step in timeline.steps for effect in step.effects]
        assert timeline.steps[1].name == "sent"
        assert {"GET", "POST"} <= set(names)
        assert timeline.reader.info.state is RunState.COMPLETE
    with pytest.raises(TargetError, match="recorded by CdpTap"):
        lockstep.replay("playwright/theirs", shop.one_form, store=store)


@contextmanager
def hosted(playwright: Playwright, chromium: str) -> Iterator[str]:
    """The endpoint of a browser with a DevTools port, for a block."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        port = held.getsockname()[1]
    launched = playwright.chromium.launch(executable_path=chromium, args=[f"--remote-debugging-port={port}"])
    yield f"http://127.0.0.1:{port}"
    launched.close()
