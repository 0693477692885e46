"""What pages see of clock and chance. Their addresses are served by routes of Playwright's."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page

from lockstep_playwright.shim.shim import Shim

START = 1_700_000_000_000
HOME = "http://localhost/"  # only such pages have all of `crypto`


@contextmanager
def shimmed(browser: Browser, mode: Any = "seed", seed: str = "a seed") -> Iterator[BrowserContext]:
    """A context whose pages are empty, with a shim as contexts get it whose pages cannot be held."""
    with closing(browser.new_context()) as context:
        context.add_init_script(Shim(mode, seed=seed, start=START).script() or "0")
        context.route("**/*", lambda route: route.fulfill(body="<title>empty</title>", content_type="text/html"))
        yield context


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    with shimmed(browser) as context:
        page = context.new_page()
        page.goto(HOME)
        yield page


CHANCE = """[
    Math.random(), Math.random(), crypto.randomUUID(), [...crypto.getRandomValues(new Uint8Array(20))],
    [...crypto.getRandomValues(new Uint32Array(3))],
]"""


def test_what_a_page_rolls_depends_on_the_seed_and_on_its_address(browser: Browser) -> None:
    def rolled(seed: str, url: str = HOME) -> Any:
        with shimmed(browser, seed=seed) as context:
            page = context.new_page()
            page.goto(url)
            return page.evaluate(CHANCE)

    one = rolled("one")
    assert rolled("one") == one
    assert rolled("other") != one
    assert rolled("one", "http://localhost/elsewhere") != one


def test_random_numbers_are_what_they_are_elsewhere(page: Page) -> None:
    dice = page.evaluate("Array.from({length: 4000}, Math.random)")
    assert all(0 <= each < 1 for each in dice)
    assert len(set(dice)) == len(dice)
    assert 0.45 < sum(dice) / len(dice) < 0.55
    assert page.evaluate(
        "/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/.test(crypto.randomUUID())"
    )
    # A view into a larger buffer is filled, and nothing around it.
    assert page.evaluate("""() => {
        const buffer = new ArrayBuffer(24);
        crypto.getRandomValues(new Uint8Array(buffer, 8, 8));
        const bytes = [...new Uint8Array(buffer)];
        return [bytes.slice(0, 8), bytes.slice(16)].flat().every(b => b === 0) && bytes.some(b => b !== 0);
    }""")
    refused = "() => { try { crypto.getRandomValues(new Float32Array(4)) } catch (error) { return error.name } }"
    assert page.evaluate(refused) == "TypeMismatchError"


CLOCKS = """[
    Date.now(), new Date().getTime(), +new Date(), Date.parse(Date()), performance.timeOrigin + performance.now(),
    new Intl.DateTimeFormat("en", {timeZone: "UTC", dateStyle: "long"}).format(),
    Number(new Intl.DateTimeFormat("en", {timeZone: "UTC", year: "numeric"}).formatToParts()[0].value),
    new Event("x").timeStamp, performance.mark("here").startTime,
]"""


def test_every_clock_begins_at_the_recorded_time(page: Page) -> None:
    *clocks, day, year, stamp, mark = page.evaluate(CLOCKS)
    assert {round(each / 1000) for each in clocks} == {START // 1000}
    assert (day, year) == ("November 14, 2023", 2023)
    assert 0 <= stamp < 10 and 0 <= mark < 10
    temporal = page.evaluate("""typeof Temporal === "undefined" ? null :
        [Temporal.Now.instant().epochMilliseconds, String(Temporal.Now.plainDateISO("UTC"))]""")
    assert temporal in (None, [START, "2023-11-14"])


def test_dates_of_something_are_left_alone(page: Page) -> None:
    assert page.evaluate("new Date(0).toISOString()") == "1970-01-01T00:00:00.000Z"
    assert page.evaluate("[Date.UTC(2000, 1), new Date(2000, 1, 1).getMonth(), isNaN(new Date(undefined))]") == [
        949363200000,
        1,
        True,
    ]
    assert page.evaluate("""() => {
        class Day extends Date { name() { return "day" } }
        const day = new Day();
        return [day instanceof Day, day instanceof Date, day.name(), day.getTime(), new Date() instanceof Date,
                Date.name, Date.length, String(Date), new Date().constructor === Date];
    }""") == [True, True, "day", START, True, "Date", 7, "function () { [native code] }", True]


def test_time_moves_by_what_timers_were_set_to_however_long_they_took(page: Page) -> None:
    waited = "ms => new Promise(done => { const t = Date.now(); setTimeout(() => done(Date.now() - t), ms) })"
    assert page.evaluate(waited, 250) == 250
    assert page.evaluate(waited, 0) == 0
    assert page.evaluate("""() => new Promise(done => {
        const began = performance.now(), seen = [];
        const timer = setInterval(() => {
            seen.push(Math.round(performance.now() - began));
            if (seen.length === 3) { clearInterval(timer); done(seen) }
        }, 20);
    })""") == [20, 40, 60]


def test_an_animation_ends_after_the_same_number_of_frames(page: Page) -> None:
    frames = """() => new Promise(done => {
        let frames = 0, first;
        requestAnimationFrame(function draw(now) {
            first = first ?? now;
            frames += 1;
            now - first < 200 ? requestAnimationFrame(draw) : done(frames);
        });
    })"""
    assert page.evaluate(frames) == page.evaluate(frames) == 13


def test_who_only_looks_at_the_clock_comes_to_an_end(page: Page) -> None:
    assert page.evaluate(
        "() => { const until = Date.now() + 50; let n = 0; while (Date.now() < until) n++; return n > 0 }"
    )


def test_handlers_of_timers_get_what_they_were_given(page: Page) -> None:
    assert page.evaluate(
        "new Promise(done => setTimeout(function (...given) { done([this === window, ...given]) }, 1, 'a', 2))"
    ) == [True, "a", 2]
    assert page.evaluate("new Promise(done => { window.done = done; setTimeout('done(7)', 1) })") == 7
    assert (
        page.evaluate("() => { const timer = setTimeout(() => {}, 1); clearTimeout(timer); return typeof timer }")
        == "number"
    )


def test_the_waits_of_the_agent_do_not_move_the_clock_of_the_page(page: Page) -> None:
    page.evaluate("setTimeout(() => window.ready = true, 150)")
    page.wait_for_function("window.ready")
    # The polls of the wait are animation frames; the page has only waited for its own timer.
    assert page.evaluate("Date.now()") - START in (150, 151)


def test_a_frozen_clock_stands_still(browser: Browser) -> None:
    with shimmed(browser, "freeze") as context:
        page = context.new_page()
        page.goto(HOME)
        page.evaluate("new Promise(done => setTimeout(done, 30))")
        assert page.evaluate("[Date.now(), Date.now(), performance.now()]") == [START, START, 0]
        frozen = page.evaluate(CHANCE)
    with shimmed(browser) as context:
        page = context.new_page()
        page.goto(HOME)
        assert page.evaluate(CHANCE) == frozen


def test_frames_and_windows_without_an_address_are_children_of_their_page(page: Page) -> None:
    seen = page.evaluate("""() => {
        const frames = [0, 1].map(() => document.body.appendChild(document.createElement("iframe")).contentWindow);
        const realms = [window, ...frames, window.open("about:blank")];
        return realms.map(realm => [realm.Date.now(), realm.Math.random()]);
    }""")
    assert {time for time, _ in seen} == {START}
    assert len({dice for _, dice in seen}) == len(seen)
    page.goto(HOME)
    again = page.evaluate("""() => {
        const frames = [0, 1].map(() => document.body.appendChild(document.createElement("iframe")).contentWindow);
        return [window, ...frames].map(realm => [realm.Date.now(), realm.Math.random()]);
    }""")
    assert again == seen[:3]


def test_cookies_are_kept_for_as_long_as_the_page_means(browser: Browser) -> None:
    with shimmed(browser) as context:
        page = context.new_page()
        page.goto(HOME)
        page.evaluate("""() => {
            const day = new Date(Date.now() + 86400000).toUTCString();
            document.cookie = `kept=1; path=/; expires=${day}`;
            document.cookie = "session=2";
            document.cookie = "gone=3; expires=Thu, 01 Jan 1970 00:00:00 GMT";
        }""")
        assert set(page.evaluate("document.cookie").split("; ")) == {"session=2", "kept=1"}
        [kept] = [each for each in context.cookies() if each["name"] == "kept"]
        assert abs(kept["expires"] - time.time() - 86400) < 600


def test_what_pages_measure_of_the_network_is_the_same_each_time(page: Page) -> None:
    page.evaluate("fetch('/data').then(answer => answer.text())")
    for kind in ("resource", "navigation"):
        entries = page.evaluate(f"""performance.getEntriesByType("{kind}")
            .map(entry => [entry.startTime, entry.duration, entry.responseEnd, entry.toJSON().fetchStart])""")
        assert entries and all(entry == [0, 0, 0, 0] for entry in entries)
    assert page.evaluate("performance.timing.navigationStart") == START
    assert page.evaluate("""() => {
        performance.mark("a"); performance.mark("b", {startTime: 5});
        return [performance.measure("m", "a", "b").duration > 0, performance.measure("n").startTime];
    }""") == [True, 0]


def test_where_it_is_off_nothing_of_a_page_is_touched(browser: Browser) -> None:
    assert Shim("off", seed="x", start=START).script() == ""
    with shimmed(browser, "off") as context:
        page = context.new_page()
        page.goto(HOME)
        assert page.evaluate("Date.now()") > START + 10**9
        assert page.evaluate("Object.getOwnPropertySymbols(window).length") == 0
