"""What breaks off, hangs, is given up or is somebody else's, as it is recorded over both connections."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from cdp_recordings import BACKENDS, SESSIONS, SOCKET, Browsed, Exchange, Taken
from edge_site import EdgeSite, edge_site
from playwright.async_api import Page

both = pytest.mark.parametrize("backend", BACKENDS)


@asynccontextmanager
async def browsing_at(browsed: Browsed, backend: str) -> AsyncIterator[tuple[Taken, Page, EdgeSite]]:
    with edge_site() as site:
        async with browsed.recorded(backend) as taken:
            page = await taken.context.new_page()
            await page.goto(site.url)
            yield taken, page, site


async def until(happened: Any) -> None:
    """Waits for what the browser tells by itself."""
    for _ in range(400):
        if happened():
            return
        await asyncio.sleep(0.02)
    raise AssertionError("it did not happen")


@both
def test_what_fails_is_called_as_the_page_knows_it(browsed: Browsed, backend: str) -> None:
    async def browse() -> None:
        async with browsing_at(browsed, backend) as (taken, page, site):
            failed = []
            page.on("requestfailed", lambda request: failed.append(request.failure))
            await page.evaluate("fetch('/empty').catch(() => 0)")
            await page.evaluate("fetch('http://127.0.0.1:1/refused').catch(() => 0)")
            await page.evaluate("fetch('http://nowhere.invalid/').catch(() => 0)")
            await page.evaluate("fetch('/broken').then((answer) => (window.broken = answer).body)")
            await until(lambda: taken.one("/broken").pieces)
            site.go.set()
            await page.evaluate("broken.text().catch(() => 0)")
            await until(lambda: len(failed) == 4)
        ends = [taken.one(path).end["error"] for path in ("/empty", "/refused", "/", "/broken") if path != "/"]
        unknown = [each for each in taken.exchanges if "nowhere" in each.name]
        assert [ends[0], ends[1], unknown[0].end["error"], ends[2]] == failed
        assert taken.one("/broken").body == b"one two"

    browsed.run(browse())


@both
def test_a_stream_is_recorded_as_it_comes_and_the_page_reads_it_meanwhile(browsed: Browsed, backend: str) -> None:
    async def browse() -> None:
        async with browsing_at(browsed, backend) as (taken, page, site):
            first = """async () => {
                window.reader = (await fetch('/pieces')).body.getReader();
                return new TextDecoder().decode((await reader.read()).value);
            }"""
            assert await page.evaluate(first) == "one "
            await until(lambda: taken.one("/pieces").pieces)
            assert (taken.one("/pieces").body, taken.one("/pieces").status) == (b"one ", "")
            site.go.set()
            rest = """async () => {
                let text = "";
                for (;;) {
                    const {done, value} = await reader.read();
                    if (done) return text;
                    text += new TextDecoder().decode(value);
                }
            }"""
            assert await page.evaluate(rest) == "two three"
            await until(lambda: taken.one("/pieces").status)
        assert (taken.one("/pieces").body, taken.one("/pieces").status) == (b"one two three", "ok")

    browsed.run(browse())


@both
def test_what_a_page_gives_up_is_cancelled_where_it_was(browsed: Browsed, backend: str) -> None:
    async def browse() -> None:
        async with browsing_at(browsed, backend) as (taken, page, site):
            abort = """async () => {
                const stop = new AbortController();
                const asked = fetch('/late?aborted', {signal: stop.signal}).catch((error) => error.name);
                setTimeout(() => stop.abort(), 50);
                return asked;
            }"""
            assert await page.evaluate(abort) == "AbortError"
            closed = """() => new Promise((resolve) => {
                const events = new EventSource('/events');
                events.onmessage = (event) => { events.close(); resolve(event.data); };
            })"""
            assert await page.evaluate(closed) == "one"
            await until(lambda: taken.one("/late?aborted").status and taken.one("/events").status)
            await page.evaluate("void fetch('/late?left')")
            await until(lambda: "GET /late?left" in site.hits)
            await page.goto(site.url + "/kept")
            await page.evaluate("void fetch('/late?open')")
            await until(lambda: "GET /late?open" in site.hits)
        for path in ("/late?aborted", "/late?left", "/late?open"):
            assert (taken.one(path).head, taken.one(path).status) == ({}, "cancelled")
        assert (taken.one("/events").body, taken.one("/events").status) == (b"data: one\n\n", "cancelled")

    browsed.run(browse())


@both
def test_other_contexts_of_the_browser_go_on_and_are_not_recorded(browsed: Browsed, backend: str) -> None:
    async def browse() -> None:
        async with browsing_at(browsed, backend) as (taken, page, site):
            other = await taken.browser.new_context()
            beside = await other.new_page()
            await beside.goto(site.url + "/nested")
            await until(lambda: "GET /framed?two" in site.hits)
            assert await beside.evaluate("fetch('/theirs').then((answer) => answer.text())") == "GET /theirs "
            assert await page.evaluate("fetch('/ours').then((answer) => answer.text())") == "GET /ours "
            await other.close()
            assert [each.path for each in taken.exchanges] == ["/", "/ours"]
        assert "GET /theirs" in site.hits

    browsed.run(browse())


@both
def test_frames_and_popups_have_lanes_of_their_own(browsed: Browsed, backend: str) -> None:
    async def browse() -> None:
        async with browsing_at(browsed, backend) as (taken, page, site):
            await page.goto(site.url + "/nested")
            await until(lambda: len(taken.exchanges) == 6)
            async with page.expect_popup() as opening:
                await page.evaluate("window.open('/frame?popup'); 0")
            await (await opening.value).wait_for_load_state()
            async with taken.context.expect_page() as apart:
                await page.evaluate("window.open('/frame?apart', '', 'noopener'); 0")
            await (await apart.value).wait_for_load_state()
            await page.goto(f"{site.other}/nested")
            await until(lambda: len([each for each in taken.exchanges if each.status]) == 15)
        lanes = [(each.path, each.lane.removeprefix("main/")) for each in taken.exchanges]
        frames = [("/frame?one", "page-1/frame-2"), ("/frame?two", "page-1/frame-3")]
        asked = [("/framed?one", "page-1/frame-2"), ("/framed?two", "page-1/frame-3")]
        nested = sorted([("/nested", "page-1/frame"), *frames, *asked])
        popups = [("/frame?popup", "page-2/frame"), ("/framed?popup", "page-2/frame")]
        apart_ = [("/frame?apart", "page-3/frame"), ("/framed?apart", "page-3/frame")]
        assert sorted(lanes) == sorted([("/", "page-1/frame"), *nested, *nested, *popups, *apart_])

    browsed.run(browse())


@both
def test_a_frame_of_another_site_keeps_its_lane_and_its_cookies_are_known(browsed: Browsed, backend: str) -> None:
    async def browse() -> None:
        async with browsing_at(browsed, backend) as (taken, page, site):
            frame = f"""() => new Promise((resolve) => {{
                const frame = document.createElement('iframe');
                frame.src = '{site.other}/frame?far';
                frame.onload = () => resolve();
                document.body.append(frame);
            }})"""
            await page.evaluate(frame)
            inner = next(each for each in page.frames if "far" in each.url)
            assert await inner.evaluate("fetch('/moved').then((answer) => answer.text())") == "set"
            assert await inner.evaluate("fetch('/empty').catch((error) => error.name)") == "TypeError"
            await until(lambda: all(each.status for each in taken.exchanges))
        far = [each for each in taken.exchanges if "localhost" in each.name]
        assert {each.lane for each in far} == {"main/page-1/frame-2"}
        assert {each.path for each in far} == {"/frame?far", "/framed?far", "/moved", "/set", "/empty"}
        assert (taken.one("/moved").cookies, taken.one("/set").cookies) == (["hop=1; HttpOnly"], ["there=2"])

    browsed.run(browse())


@both
def test_cookies_of_a_popups_first_document_are_known(browsed: Browsed, backend: str) -> None:
    async def browse() -> None:
        async with browsing_at(browsed, backend) as (taken, page, _):
            async with page.expect_popup() as opening:
                await page.evaluate("window.open('/moved'); 0")
            await (await opening.value).wait_for_load_state()
        moved, there = taken.one("/moved"), taken.one("/set")
        assert {moved.lane, there.lane} == {"main/page-2/frame"}
        assert [_named(moved), _named(there)] == [["hop=1"], ["there=2"]]
        assert ["HttpOnly" in each.cookies[0] for each in (moved, there)] == [True, False]

    browsed.run(browse())


def _named(found: Exchange) -> list[str]:
    return [line.partition(";")[0] for line in found.cookies]


@both
def test_a_file_from_the_disk_is_named_in_the_request_that_uploads_it(
    browsed: Browsed, backend: str, tmp_path: Path
) -> None:
    content = b"a file of some size\n" * 5000
    path = tmp_path / "large.txt"
    path.write_bytes(content)

    async def browse() -> None:
        async with browsing_at(browsed, backend) as (taken, page, site):
            await page.set_content(
                f"<form method=post enctype=multipart/form-data action='{site.url}/sent'>"
                "<input type=file name=file><button>send</button></form>"
            )
            await page.set_input_files("input", path)
            await page.click("button")
            await page.wait_for_url("**/sent")
        sent = taken.one("/sent").request
        assert b'filename="large.txt"' in sent["body"]
        assert content not in sent["body"]  # no protocol tells it before it has left

    browsed.run(browse())


@both
def test_what_the_program_answers_itself_is_not_of_the_network(browsed: Browsed, backend: str) -> None:
    async def browse() -> None:
        async with browsing_at(browsed, backend) as (taken, page, _):
            await page.route("**/mocked", lambda route: route.fulfill(body="mine"))
            await page.route("**/changed", lambda route: route.continue_(post_data="another", method="POST"))
            assert await page.evaluate("fetch('/mocked').then((answer) => answer.text())") == "mine"
            changed = await page.evaluate("fetch('/changed').then((answer) => answer.text())")
            assert changed == "POST /changed another"
        assert [each.path for each in taken.exchanges] == ["/", "/changed"]
        assert taken.one("/changed").request["body"] == b"another"

    browsed.run(browse())


@both
def test_websockets_are_recorded_as_they_ended(browsed: Browsed, backend: str) -> None:
    talk = """(said) => new Promise((resolve) => {
        const path = said === 'refused' ? '/refused' : '/socket';
        const socket = new WebSocket(location.origin.replace('http', 'ws') + path);
        socket.onopen = () => socket.send(said);
        socket.onmessage = () => { if (said === 'page') socket.close(4321, 'enough'); };
        socket.onclose = (event) => resolve([event.code, event.reason, event.wasClean]);
    })"""

    async def browse() -> None:
        async with browsing_at(browsed, backend) as (taken, page, _):
            seen = [await page.evaluate(talk, said) for said in ("page", "server", "drop", "refused")]
            await until(
                lambda: len([each for each in taken.exchanges if each.kind == "websocket" and each.status]) == 4
            )
        ends = [each.end for each in taken.exchanges if each.kind == "websocket"]
        assert [[end["code"], end["reason"], end["clean"]] for end in ends] == seen
        assert [end["by"] for end in ends] == ["page", "server", "server", "server"]
        assert [seen[0], seen[1], seen[2][0]] == [[4321, "enough", True], [4000, "server", True], 1006]

    browsed.run(browse())


def test_a_websocket_that_a_popup_opens_at_once_is_recorded_over_our_own_connection(browsed: Browsed) -> None:
    async def browse() -> None:
        async with browsing_at(browsed, SOCKET) as (taken, page, _):
            async with page.expect_popup() as opening:
                await page.evaluate("window.open('/talking'); 0")
            await until(lambda: taken.of("/socket") and taken.one("/socket").status)
            names = "Object.getOwnPropertyNames(globalThis).filter((name) => name.includes('lockstep'))"
            assert await (await opening.value).evaluate(names) == []
        found = taken.one("/socket")
        assert (found.lane, found.pieces[1]["text"]) == ("main/page-2/frame", "server")
        assert (found.status, found.end["code"]) == ("ok", 4000)

    browsed.run(browse())


@both
def test_pages_find_no_trace_of_what_listens_to_their_websockets(browsed: Browsed, backend: str) -> None:
    look = """() => [
        WebSocket.name, WebSocket.length, WebSocket.toString(), WebSocket.prototype.constructor === WebSocket,
        WebSocket.prototype.close.name, WebSocket.prototype.close.toString(), WebSocket.OPEN,
        Object.getOwnPropertyNames(globalThis).filter((name) => name.includes('lockstep')),
        JSON.stringify(Object.getOwnPropertyDescriptor(globalThis, 'WebSocket')),
    ]"""

    async def browse() -> None:
        async with browsing_at(browsed, backend) as (taken, page, site):
            ours = await page.evaluate(look)
            plain = await (await taken.browser.new_context()).new_page()
            await plain.goto(site.url)
            theirs = await plain.evaluate(look)
            native = "function () { [native code] }"
            assert [*ours[:2], *ours[3:5], *ours[6:]] == [*theirs[:2], *theirs[3:5], *theirs[6:]]
            assert [ours[2], ours[5]] == [native, native]

    browsed.run(browse())


def test_only_our_own_connection_tells_of_workers_streams(browsed: Browsed) -> None:
    work = """() => new Promise((resolve) => {
        const code = `fetch('${location.origin}/events').then((answer) => answer.body.getReader().read())
            .then(({value}) => postMessage(new TextDecoder().decode(value)))`;
        const worker = new Worker(URL.createObjectURL(new Blob([code])));
        worker.onmessage = (event) => resolve(event.data);
    })"""

    async def browse(backend: str) -> Taken:
        async with browsing_at(browsed, backend) as (taken, page, _):
            assert await page.evaluate(work) == "data: one\n\n"
            if backend == SOCKET:
                await until(lambda: taken.one("/events").pieces)
            else:
                await until(lambda: taken.faults)
                told, taken.faults = taken.faults, []
                assert ["a stream that nobody tells of" in fault for fault in told] == [True]
            return taken

    assert browsed.run(browse(SOCKET)).one("/events").lane == "main/page-1/worker-1"
    assert browsed.run(browse(SESSIONS)).one("/events").pieces == []
