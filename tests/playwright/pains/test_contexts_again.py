"""What is known to go wrong with contexts: their storage, clocks, routes, neighbours and ends."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from browser_site import Site
from pained import Tapped

import lockstep
from lockstep.errors import Refused
from lockstep.log.model import RunState
from lockstep.log.store import open_store

_CLOCK_OF_SERVICE_WORKER = """async () => {
    await navigator.serviceWorker.register("/sw/worker.js", {scope: "/sw/"});
    await new Promise((resolve) => { const look = () =>
        navigator.serviceWorker.getRegistration("/sw/").then((found) =>
            found.active?.state === "activated" ? resolve() : setTimeout(look, 10)); look(); });
    const frame = document.createElement("iframe");
    frame.src = "/sw/frame";
    await new Promise((resolve) => { frame.onload = resolve; document.body.append(frame); });
    return (await frame.contentWindow.fetch("/sw/clock")).json();
}"""
_CLOCK_OF_PAGE = """() => [
    Date.now(), Math.random(), crypto.randomUUID(),
    typeof Temporal === "undefined" ? "" : Temporal.Now.instant().toString(),
]"""
_STORED = """async () => {
    sessionStorage.setItem("draft", "half a letter");
    const asked = indexedDB.open("letters", 1);
    asked.onupgradeneeded = () => asked.result.createObjectStore("kept");
    await new Promise((resolve) => { asked.onsuccess = resolve; });
    window.open_database = asked.result;
    window.open_database.transaction("kept", "readwrite").objectStore("kept").put("whole", "letter");
}"""
_KEPT = "[document.cookie, localStorage.theme, sessionStorage.draft, open_database.name]"


def test_every_clock_of_a_page_and_of_its_service_worker_is_the_same(tapped: Tapped, site: Site):
    def agent(context: Any) -> Any:
        page = context.new_page()
        page.goto(f"{site.url}/answer")
        page.set_content("<p></p>")
        page.goto(f"{site.url}/basket")
        return page.evaluate(_CLOCK_OF_PAGE), page.evaluate(_CLOCK_OF_SERVICE_WORKER)

    seen = tapped.record(agent)
    site.kill()
    again = tapped.replay(agent)
    assert (again.identical, again.result) == (True, seen), again.divergence


def test_a_clock_that_the_program_sets_is_its_own(tapped: Tapped, site: Site):
    def agent(context: Any) -> Any:
        page = context.new_page()
        page.clock.install(time=1_800_000_000)
        page.goto(f"{site.url}/basket")
        page.clock.pause_at(1_800_000_100)
        first = page.evaluate("Date.now()")
        page.clock.fast_forward(5000)
        return first, page.evaluate("Date.now()")

    seen = tapped.record(agent)
    assert seen == (1_800_000_100_000, 1_800_000_105_000)
    site.kill()
    again = tapped.replay(agent)
    assert (again.identical, again.result) == (True, seen), again.divergence


def test_what_a_context_began_with_and_what_its_pages_store_is_there_again_and_in_a_fork(tapped: Tapped, site: Site):
    def agent(context: Any) -> Any:
        page = context.new_page()
        page.goto(f"{site.url}/basket")
        page.evaluate(_STORED)
        page.fill("#item", "tea")
        return page.evaluate(_KEPT), sorted(each["name"] for each in context.storage_state()["cookies"])

    local = {"origin": site.url, "localStorage": [{"name": "theme", "value": "dark"}]}
    cookie = {"name": "who", "value": "joe", "url": site.url}
    seen = tapped.record(agent, storage_state={"cookies": [_whole(cookie)], "origins": [local]})
    assert seen == (["who=joe", "dark", "half a letter", "letters"], ["who"])
    forked = tapped.fork(4, agent)
    assert (forked.state, forked.result, forked.divergence) == ("complete", seen, None)
    site.kill()
    again = tapped.replay(agent)
    assert (again.identical, again.result) == (True, seen), again.divergence


def _whole(cookie: dict[str, str]) -> dict[str, Any]:
    return {
        "name": cookie["name"], "value": cookie["value"], "domain": "127.0.0.1", "path": "/", "expires": -1,
        "httpOnly": False, "secure": False, "sameSite": "Lax",
    }  # fmt: skip


def test_two_contexts_that_are_used_in_turn_have_their_own_answers_again(tapped: Tapped, site: Site):
    def agent(contexts: list[Any]) -> list[Any]:
        pages = [context.new_page() for context in contexts]
        for page in pages:
            page.goto(f"{site.url}/form/1")
            page.fill("#name", "joe")
        for page in pages:
            page.click("#send")
        return [page.inner_text("#told") for page in pages]

    contexts = [tapped.tap("left"), tapped.tap("right")]
    seen = agent(contexts)
    assert seen[0] != seen[1]
    for context in contexts:
        context.close()
    site.kill()
    for run, told in zip(("left", "right"), seen, strict=True):
        again = tapped.replay(lambda context: agent([context]), run)
        assert (again.identical, again.result) == (True, [told]), again.divergence


def test_routes_of_the_program_are_its_own_and_come_first(tapped: Tapped, site: Site):
    def change(route: Any) -> None:
        answer = route.fetch()
        route.fulfill(response=answer, body=f"changed: {answer.text()}")

    def agent(context: Any) -> Any:
        page = context.new_page()
        page.route("**/mine", lambda route: route.fulfill(body="mocked"))
        page.route("**/blocked", lambda route: route.abort())
        page.route("**/marked", lambda route: route.continue_(url=f"{site.url}/answer?marked"))
        page.route("**/answer?fetched", change)
        page.goto(f"{site.url}/basket")
        return page.evaluate(
            """() => Promise.all(["/mine", "/blocked", "/marked", "/answer?fetched"].map(
                (path) => fetch(path).then((answer) => answer.text(), (error) => error.name)))"""
        )

    seen = tapped.record(agent)
    assert (seen[0], seen[1], seen[3][:16]) == ("mocked", "TypeError", "changed: answer ")
    assert {path for _, path, _ in tapped.asked()} >= {"/basket"}
    with site.gone() as canary:
        again = tapped.replay(agent)
        assert canary.connects() == []
    assert (again.identical, again.result) == (True, seen), again.divergence


def test_what_the_program_asks_without_a_page_is_answered_again_and_nothing_leaves(tapped: Tapped, site: Site):
    def agent(context: Any) -> Any:
        form = context.request.post(f"{site.url}/form/1", form={"name": "joe"})
        page = context.new_page()
        page.goto(f"{site.url}/form/2")
        large = context.request.get(f"{site.url}/large/1").body() * 5
        return form.status, form.text(), page.inner_text("h1"), len(large)

    seen = tapped.record(agent)
    assert seen[0] == 200
    assert seen[2:] == ("Part 2, visit 1", 81950)
    since = len(site.hits())
    with pytest.raises(Refused, match=r"POST .* would run for real"):
        tapped.fork(0, agent)
    forked = tapped.fork(1, agent)
    assert (forked.state, forked.error, forked.divergence) == ("complete", None, None)
    assert forked.result[1] == seen[1]
    assert [hit["method"] for hit in site.hits()[since:]] == ["GET"] * 2
    with site.gone() as canary:
        again = lockstep.replay("playwright/pain", agent, store=tapped.store)  # in a browser of its own
        assert canary.connects() == []
    assert (again.identical, again.result) == (True, seen), again.divergence


def test_a_context_that_is_closed_at_once_leaves_a_whole_run_and_nothing_behind(
    tapped: Tapped, site: Site, caplog: pytest.LogCaptureFixture, recwarn: pytest.WarningsRecorder
):
    with caplog.at_level(logging.WARNING):
        context = tapped.tap()
        page = context.new_page()
        page.goto(f"{site.url}/load", wait_until="commit")
        page.evaluate("1")
        context.close()
        tapped.browser.new_context().close()  # the loop has turned
    assert ([record.getMessage() for record in caplog.records], recwarn.list) == ([], [])
    with open_store(tapped.store) as opened:
        info = opened.run("playwright/pain").info
    assert (info.state, info.incomplete) == (RunState.COMPLETE, False)
    assert tapped.steps()[-2:] == [("action", "evaluate 1"), ("end", "")]


def test_the_first_step_is_recorded_and_what_cannot_be_put_into_text_is_replayed(tapped: Tapped, site: Site):
    classes = "document.querySelector('#add').className = `css-${Math.random().toString(36).slice(2)}`"

    def agent(context: Any) -> Any:
        context.set_default_timeout(10_000)
        page = context.new_page()
        page.goto(f"{site.url}/basket")
        page.evaluate(classes)
        rect = page.evaluate("document.querySelector('#add').getBoundingClientRect()")
        page.locator("#add").click()
        return rect, page.locator("#add").bounding_box(), page.get_attribute("#add", "class")

    seen = tapped.record(agent)
    assert seen[0]["width"] == seen[1]["width"] > 0
    assert [kind for kind, _ in tapped.steps()[:2]] == ["input", "action"]
    site.kill()
    again = tapped.replay(agent)
    assert (again.identical, again.result) == (True, seen), again.divergence
