"""What a page finds where its network is a record: every kind of answer, and nothing behind it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hand_written import FRAME, ORIGIN, Browser, Browsing, Write, answer, asked, failure, page, written

from lockstep.errors import Code
from lockstep_playwright.network.exchange import Head

_FETCH = "const get = async (path, options) => (await fetch(path, options)).text();"


@pytest.fixture(scope="module")
def only(chromium: str) -> Iterator[Browser]:
    browser = Browser(chromium)
    yield browser
    browser.close()


def browse(only: Browser, store: Path, exchanges: list[list[Write]], **options: Any) -> tuple[Any, Browsing]:
    """What `window.found` is on the page that these exchanges make."""
    written(store, exchanges)

    async def go() -> tuple[Any, Browsing]:
        async with only.served(store, **options) as browsing:
            await browsing.page.goto(ORIGIN + "/")
            return await browsing.page.evaluate("window.found"), browsing

    return only.run(go())


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


def test_a_redirect_is_served_hop_by_hop_with_its_cookies(only: Browser, store: Path) -> None:
    script = (
        _FETCH
        + """window.found = (async () => {
      const answer = await fetch("/moved", {method: "POST", body: "carried"});
      return [answer.url, answer.redirected, await answer.text(), document.cookie];
    })()"""
    )
    text = [("content-type", "text/plain;charset=UTF-8")]
    hop = answer(
        "/moved", "", 307, ("location", "/there"), ("set-cookie", "seen=1; Path=/"),
        ("set-cookie", "hidden=2; Path=/; HttpOnly"), method="POST", body=b"carried", sent=text,
    )  # fmt: skip
    there = answer("/there", "arrived", method="POST", body=b"carried", sent=text)
    found, browsing = browse(only, store, [page(script), hop, there])
    assert found == [f"{ORIGIN}/there", True, "arrived", "seen=1"]
    assert browsing.report().identical


def test_equal_requests_get_their_answers_in_order_and_another_one_fails_with_the_nearest_named(
    only: Browser, store: Path
) -> None:
    script = (
        _FETCH
        + """window.found = (async () => [
      await get("/again"), await get("/again"), await get("/unknown?x=1").catch((error) => error.message),
      await get("/after"),
    ])()"""
    )
    exchanges = [page(script), answer("/again", "first"), answer("/again", "second"), answer("/after", "still there")]
    found, browsing = browse(only, store, [*exchanges, answer("/unknown?x=2", "not asked for")])
    assert found == ["first", "second", "Failed to fetch", "still there"]
    difference = browsing.report().difference
    assert difference is not None
    assert (difference.code, difference.lane, difference.name) == (Code.REQUEST, FRAME, "GET site.example/unknown")
    # A number may well be what the page meant: no rule that lets it differ is put to anybody.
    assert (difference.path, difference.expected, difference.actual, difference.hint) == ("query.x", '"2"', '"1"', "")


@pytest.mark.parametrize(
    "error", ["net::ERR_CONNECTION_RESET", "net::ERR_NAME_NOT_RESOLVED", "net::ERR_EMPTY_RESPONSE"]
)
def test_a_page_that_could_not_be_reached_fails_with_the_same_error(only: Browser, store: Path, error: str) -> None:
    written(store, [failure("/", error)])

    async def go() -> str:
        async with only.served(store) as browsing:
            try:
                await browsing.page.goto(ORIGIN + "/")
            except Exception as raised:
                return str(raised)
        return ""

    assert error in only.run(go())


def test_a_stream_comes_in_its_pieces_and_stays_open_where_it_had_no_end(only: Browser, store: Path) -> None:
    script = """window.found = new Promise((resolve) => {
      const events = [], source = new EventSource("/events");
      source.onmessage = (event) => {
        events.push(event.data);
        if (events.length === 3) setTimeout(() => resolve([events, source.readyState, source.url]), 100);
      };
      source.onerror = () => resolve("closed");
    })"""
    events = asked("/events", headers=[("accept", "text/event-stream")])
    stream: list[Write] = [
        lambda recorder: recorder.asked(events),
        lambda recorder: recorder.answered(events, Head(status=200, headers=(("content-type", "text/event-stream"),))),
        *(lambda recorder, n=n: recorder.part(events, f"data: {n}\n\n".encode()) for n in range(3)),
        lambda recorder: recorder.over(events, cancelled=True),
    ]
    found, browsing = browse(only, store, [page(script), stream])
    assert found == [["0", "1", "2"], 1, f"{ORIGIN}/events"]
    assert browsing.report().identical


def test_a_stream_sets_its_cookies_for_its_own_address(only: Browser, store: Path) -> None:
    script = """window.found = (async () => { await (await fetch("/chunks")).text(); return document.cookie; })()"""
    request = asked("/chunks")
    sets = (("set-cookie", "seen=1; Path=/; Max-Age=60"), ("set-cookie", "hidden=2; HttpOnly"))
    stream: list[Write] = [
        lambda recorder: recorder.asked(request),
        lambda recorder: recorder.answered(request, Head(status=200, headers=sets)),
        lambda recorder: recorder.part(request, b"one "),
        lambda recorder: recorder.part(request, b"two"),
        lambda recorder: recorder.over(request),
    ]
    written(store, [page(script), stream])

    async def go() -> tuple[str, list[tuple[str, str, bool]]]:
        async with only.served(store) as browsing:
            await browsing.page.goto(ORIGIN + "/")
            found = await browsing.page.evaluate("window.found")
            kept = await browsing.page.context.cookies()
            return found, sorted((each["name"], each["domain"], each["httpOnly"]) for each in kept)

    assert only.run(go()) == ("seen=1", [("hidden", "site.example", True), ("seen", "site.example", False)])


def test_a_stream_that_was_compressed_says_so(only: Browser, store: Path) -> None:
    script = """window.found = (async () => {
      const answer = await fetch("/chunks");
      return [answer.headers.get("content-encoding"), await answer.text()];
    })()"""
    request = asked("/chunks")
    stream: list[Write] = [
        lambda recorder: recorder.asked(request),
        lambda recorder: recorder.answered(request, Head(status=200, decoded="gzip")),
        lambda recorder: recorder.part(request, b"one "),
        lambda recorder: recorder.part(request, b"two"),
        lambda recorder: recorder.over(request),
    ]
    found, _ = browse(only, store, [page(script), stream])
    assert found == ["gzip", "one two"]


def test_an_answer_that_breaks_off_breaks_off(only: Browser, store: Path) -> None:
    script = """window.found = (async () => {
      const reader = (await fetch("/broken")).body.getReader();
      const first = new TextDecoder().decode((await reader.read()).value);
      return [first, await reader.read().catch((error) => error.name)];
    })()"""
    request = asked("/broken")
    stream: list[Write] = [
        lambda recorder: recorder.asked(request),
        lambda recorder: recorder.answered(request, Head(status=200)),
        lambda recorder: recorder.part(request, b"half"),
        lambda recorder: recorder.over(request, "net::ERR_INCOMPLETE_CHUNKED_ENCODING"),
    ]
    found, _ = browse(only, store, [page(script), stream])
    assert found == ["half", "TypeError"]


def test_what_had_no_answer_when_its_page_left_has_none(only: Browser, store: Path) -> None:
    script = """window.found = Promise.race([
      fetch("/slow").then(() => "answered", () => "failed"),
      new Promise((resolve) => setTimeout(resolve, 300, "waits")),
    ])"""
    request = asked("/slow")
    slow: list[Write] = [
        lambda recorder: recorder.asked(request),
        lambda recorder: recorder.over(request, cancelled=True),
    ]
    found, browsing = browse(only, store, [page(script), slow])
    assert found == "waits"
    assert browsing.report().identical


def test_answers_come_in_the_recorded_order_whatever_was_asked_first(only: Browser, store: Path) -> None:
    script = (
        _FETCH
        + """window.found = (async () => {
      const order = [];
      await Promise.all(["/a", "/b", "/c"].map((path) => get(path).then(() => order.push(path))));
      return order;
    })()"""
    )
    asks, rest = zip(
        *((all_[0], all_[1:]) for all_ in (answer(path, path) for path in ("/a", "/b", "/c"))), strict=True
    )
    found, browsing = browse(only, store, [page(script), list(asks), rest[2], rest[0], rest[1]])
    assert found == ["/c", "/a", "/b"]
    assert browsing.report().identical


def test_an_answer_waits_for_the_action_that_had_begun_before_it_came(only: Browser, store: Path) -> None:
    script = """window.shown = "nothing yet";
    fetch("/late").then(async (answer) => { window.shown = await answer.text(); })"""
    first, *late = answer("/late", "late news")
    written(store, [page(script), [first], late], actions=[0, 2])

    async def go() -> list[str]:
        async with only.served(store) as browsing:
            await browsing.network.pace.action_begins()
            await browsing.page.goto(ORIGIN + "/")
            await asyncio.sleep(0.3)
            seen = [await browsing.page.evaluate("window.shown")]
            await browsing.network.pace.action_begins()
            await browsing.page.wait_for_function("window.shown !== 'nothing yet'")
            seen.append(await browsing.page.evaluate("window.shown"))
            assert not browsing.notes
            return seen

    assert only.run(go()) == ["nothing yet", "late news"]


def test_an_order_that_cannot_be_kept_is_given_up_and_named(only: Browser, store: Path) -> None:
    script = _FETCH + """window.found = get("/asked")"""
    exchanges = [page(script), answer("/never"), answer("/asked", "in the end")]
    found, browsing = browse(only, store, exchanges)
    assert found == "in the end"
    assert [source for source, _ in browsing.notes] == ["order"]
    assert not browsing.report().identical


def test_a_socket_says_what_it_said_and_closes_as_it_closed(only: Browser, store: Path) -> None:
    found, browsing = browse(only, store, [page(_TALK), _talk("hello")])
    assert found == ["v2", ["hi", [1, 2]], 4001, "enough", True]
    assert browsing.report().identical


def test_a_secure_socket_is_one(only: Browser, store: Path) -> None:
    origin = "https://site.example"
    written(store, [page(_TALK, f"{origin}/"), _talk("hello", origin)])

    async def go() -> Any:
        async with only.served(store) as browsing:
            await browsing.page.goto(f"{origin}/")
            return await browsing.page.evaluate("window.found"), browsing

    found, browsing = only.run(go())
    assert found == ["v2", ["hi", [1, 2]], 4001, "enough", True]
    assert browsing.report().identical


def test_a_page_that_says_something_else_on_a_socket_differs(only: Browser, store: Path) -> None:
    found, browsing = browse(only, store, [page(_TALK), _talk("good evening")])
    assert found[2] == 1006
    difference = browsing.report().difference
    assert difference is not None
    assert (difference.kind, difference.expected, difference.actual) == ("websocket", "good evening", "hello")


def test_over_playwrights_own_connection_the_same_is_served(only: Browser, store: Path) -> None:
    script = (
        _FETCH + """window.found = (async () => [await get("/text"), await get("/gone").catch(() => "failed")])()"""
    )
    exchanges = [page(script), answer("/text", "told"), failure("/gone", "net::ERR_CONNECTION_RESET")]
    found, browsing = browse(only, store, exchanges, own_socket=False)
    assert found == ["told", "failed"]
    assert browsing.report().identical


_TALK = """window.found = new Promise((resolve) => {
  const socket = new WebSocket(location.origin.replace("http", "ws") + "/talk", ["v1", "v2"]), said = [];
  socket.binaryType = "arraybuffer";
  socket.onopen = () => socket.send("hello");
  socket.onmessage = ({data}) => said.push(typeof data === "string" ? data : [...new Uint8Array(data)]);
  socket.onclose = ({code, reason, wasClean}) => resolve([socket.protocol, said, code, reason, wasClean]);
})"""


def _talk(hello: str, origin: str = ORIGIN) -> list[Write]:
    url = origin.replace("http", "ws") + "/talk"
    return [
        lambda recorder: recorder.opened("1", FRAME, url, ("v1", "v2")),
        lambda recorder: recorder.accepted("1", 101, (("Sec-WebSocket-Protocol", "v2"),)),
        lambda recorder: recorder.frame("1", {"from": "page", "text": hello}),
        lambda recorder: recorder.frame("1", {"from": "server", "text": "hi"}),
        lambda recorder: recorder.frame("1", {"from": "server", "base64": "AQI="}),
        lambda recorder: recorder.ended("1", {"code": 4001, "reason": "enough", "clean": True, "by": "server"}),
    ]
