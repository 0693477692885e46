"""What is known to go wrong where a browser's answers are given again: each agent here gets what it got."""

from __future__ import annotations

import re
from typing import Any

from browser_site import Site
from pained import Tapped

_ASKED = """async () => {
    const got = [], times = Number(await (await fetch("/times")).text());
    while (got.length < times) {
        got.push(await fetch("/again").then((answer) => answer.text(), (error) => error.name));
    }
    return got;
}"""
_TRIED = """async (path) => {
    const tried = [];
    while (tried.at(-1)?.[0] !== 200) {
        try { const answer = await fetch(path); tried.push([answer.status, await answer.text()]); }
        catch (error) { tried.push([error.name]); }
    }
    return tried;
}"""
_HEARD = """(path) => new Promise((resolve) => {
    const heard = [], source = window.source = new EventSource(path);
    source.onmessage = (event) => { heard.push(event.data); if (heard.length === 3) resolve(heard); };
})"""


def test_one_address_has_another_answer_each_time_and_is_missed_when_they_are_used_up(tapped: Tapped, site: Site):
    times = [3]

    def ask(context: Any) -> Any:
        page = context.new_page()
        page.route("**/times", lambda route: route.fulfill(body=str(times[0])))
        page.goto(f"{site.url}/basket")
        return page.evaluate(_ASKED)

    seen = tapped.record(ask)
    assert [text.partition(":")[0] for text in seen] == ["1", "2", "3"]
    with site.gone() as canary:
        again = tapped.replay(ask)
        assert (again.identical, again.result) == (True, seen), again.divergence
        times[0] = 4
        more = tapped.replay(ask)
        assert canary.connects() == []
    difference = more.report.difference
    assert difference is not None
    assert (difference.kind, difference.name.rpartition("/")[2]) == ("http", "again")
    assert more.result == [*seen, "TypeError"]


def test_what_failed_and_was_tried_again_fails_and_is_tried_again(tapped: Tapped, site: Site):
    def try_(context: Any) -> Any:
        page = context.new_page()
        page.goto(f"{site.url}/basket")
        return page.evaluate(_TRIED, "/flaky")

    seen = tapped.record(try_)
    assert [each[0] for each in seen] == [503, "TypeError", 200]
    site.kill()
    again = tapped.replay(try_)
    assert (again.identical, again.result) == (True, seen), again.divergence


def test_a_stream_of_events_that_connects_anew_has_the_same_events_and_one_connection_more_is_held(
    tapped: Tapped, site: Site
):
    lingers = [0]

    def hear(context: Any) -> Any:
        page = context.new_page()
        page.goto(f"{site.url}/basket")
        heard = page.evaluate(_HEARD, "/events/again")
        page.wait_for_timeout(lingers[0])
        return heard, page.evaluate("source.readyState < 2")

    seen = tapped.record(hear)
    site.kill()
    lingers[0] = 400
    again = tapped.replay(hear)
    assert (again.identical, again.result) == (True, seen), again.divergence


def test_an_answer_that_its_page_did_not_stay_for_has_its_body(tapped: Tapped, site: Site):
    # Once its page has been looked at: which is later on a busy machine, and not before it is left.
    late = "path => { setTimeout(() => fetch('/answer?left').then(() => { location.href = path }), 400) }"

    def leave(context: Any) -> Any:
        page = context.new_page()
        page.goto(f"{site.url}/basket")
        page.evaluate(late, "/form/1")
        page.wait_for_url("**/form/1")
        return page.inner_text("h1")

    assert tapped.record(leave) == "Part 1, visit 0"
    bodies = {path: body for _, path, body in tapped.asked()}
    assert re.fullmatch(rb"answer \d+ [0-9a-f]{8}", bodies["/answer?left"])
    assert b"<title>basket</title>" in bodies["/basket"]
    site.kill()
    again = tapped.replay(leave)
    assert again.identical, again.divergence


def test_the_cache_of_the_browser_is_as_it_was_without_us(tapped: Tapped, site: Site):
    look = """async () => {
        const bytes = [];
        for (let time = 0; time < 3; time++) bytes.push((await (await fetch('/picture.png')).blob()).size);
        return bytes;
    }"""

    def agent(context: Any) -> Any:
        page = context.new_page()
        page.goto(f"{site.url}/basket")
        return page.evaluate(look)

    seen = tapped.record(agent)
    assert [hit["path"] for hit in site.hits()] == ["/basket", "/picture.png"]
    site.kill()
    again = tapped.replay(agent)
    assert (again.identical, again.result) == (True, seen), again.divergence
