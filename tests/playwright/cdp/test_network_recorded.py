"""What a page asks of the network, as it is recorded over our own connection and over Playwright's."""

from collections import Counter
from typing import Any

import pytest
from browser_site import Site
from cdp_recordings import BACKENDS, SOCKET, Browsed, Exchange, Taken
from observing import aobserve

# What no protocol tells: of a dropped connection, that the browser tried again; of a service worker's script, that the
# browser looks for a newer one.
UNTOLD = {"GET /dropped", "GET /sw/worker.js"}
# What the browser had already: it asks for it, and nothing reaches the server.
CACHED = {"GET /painted.png", "GET /picture.png"}


@pytest.fixture(scope="module", params=BACKENDS)
def everything(
    request: pytest.FixtureRequest, browsed: Browsed
) -> tuple[str, Taken, dict[str, Any], list[dict[str, Any]]]:
    """A page that reaches for everything: the backend, what was recorded, what it saw, and the site's own log."""
    backend = request.param
    with Site() as site:

        async def browse() -> tuple[Taken, dict[str, Any]]:
            async with browsed.recorded(backend) as taken:
                return taken, await aobserve(taken.context, site.url)

        taken, seen = browsed.run(browse())
        return backend, taken, seen, site.hits()


def test_everything_that_the_site_was_asked_is_recorded_once_and_nothing_else(everything: Any) -> None:
    backend, taken, _, hits = everything
    asked = Counter(f"{hit['method']} {hit['path']}" for hit in hits)
    told = Counter(f"{each.request.get('method', 'GET')} {each.path}" for each in taken.exchanges)
    missed, more = asked - told, told - asked
    # Playwright has no sessions of workers, whose WebSockets only those tell of.
    unseen = set() if backend == SOCKET else {"GET /talk"}
    assert set(missed) - UNTOLD == unseen
    assert set(more) <= CACHED


def test_bodies_are_what_the_page_read(everything: Any) -> None:
    _, taken, seen, _ = everything
    for path, name in (("/unavailable", "unavailable"), ("/answer?xhr", "xhr"), ("/post?random", "random_post")):
        found = taken.one(path)
        assert [found.head["status"], found.body.decode()] == [seen[name][0], seen[name][-1]]
    assert list(taken.one("/binary").body) == seen["binary"]
    assert [each.body.decode() for each in taken.of("/again")] == [text for _, text in seen["same_get_thrice"]]
    assert taken.one("/report.csv").body.decode() == seen["download"]


@pytest.mark.parametrize(("path", "coding", "name"), [("/packed/gzip", "gzip", "gzip"), ("/packed/br", "br", "brotli")])
def test_an_encoding_is_taken_off_and_named(everything: Any, path: str, coding: str, name: str) -> None:
    found = everything[1].one(path)
    assert found.head["decoded"] == coding
    assert "content-encoding" not in {key.lower() for key, _ in found.head["headers"]}
    assert [coding, 200, found.body.decode()] == everything[2][name]


def test_each_hop_of_a_redirect_is_an_exchange_of_its_own_with_its_cookies(everything: Any) -> None:
    _, taken, seen, _ = everything
    moved, there = taken.one("/moved"), taken.one("/answer?moved")
    assert (moved.head["status"], moved.pieces, len(moved.cookies)) == (302, [], 1)
    assert [there.head["status"], there.body.decode()] == seen["redirect_get"][2:]
    kept = taken.one("/moved/307")
    assert (kept.head["status"], kept.request["body"]) == (307, b"carried over")
    assert taken.one("/post?moved").request["body"] == b"carried over"


def test_cookies_that_pages_cannot_see_are_in_the_answer(everything: Any) -> None:
    cookies = next(each for each in everything[1].exchanges if each.path.startswith("/all?")).cookies
    assert [line.partition("=")[0] for line in cookies] == ["visit", "kept_from_pages"]
    assert "httponly" in cookies[1].lower()


def test_what_is_sent_is_stored_as_it_was_sent(everything: Any) -> None:
    _, taken, _, hits = everything
    upload = taken.one("/upload").request["body"]
    assert b'filename="notes.txt"' in upload and b"line 1\nline 2\n" in upload
    assert upload.decode() == next(hit["body"] for hit in hits if hit["path"] == "/upload")
    assert taken.one("/beacon").request["body"] == b"left"
    assert [each.request["body"] for each in taken.of("/post")] == [b"the same"] * 2


def test_a_preflight_is_told_apart_from_what_it_asks_for(everything: Any) -> None:
    asked, made = everything[1].of("/shared")
    assert [asked.request["method"], asked.request["for"]] == ["OPTIONS", "Preflight"]
    assert [made.request["method"], made.body.decode()] == ["PUT", everything[2]["preflight"][-1]]


def test_a_dropped_connection_is_called_what_the_browser_calls_it(everything: Any) -> None:
    found = everything[1].one("/dropped")
    assert (found.status, found.end, found.head) == ("error", {"error": "net::ERR_EMPTY_RESPONSE"}, {})


def test_streams_are_recorded_to_where_their_page_left_them(everything: Any) -> None:
    _, taken, seen, _ = everything
    ended, held = taken.one("/events/ended"), taken.one("/events/held")
    assert (ended.status, held.status) == ("ok", "cancelled")
    for found, name in ((ended, "events_that_end"), (held, "events_held")):
        assert _events(found) == [text for _, text in seen[name][:3]]
    chunks = taken.one("/chunks")
    assert (chunks.status, chunks.body.decode()) == ("ok", "".join(seen["chunks"]))


def _events(found: Exchange) -> list[str]:
    return [line[6:] for line in found.body.decode().splitlines() if line.startswith("data: ")]


def test_a_websocket_is_recorded_with_its_frames_and_how_it_ended(everything: Any) -> None:
    backend, taken, seen, _ = everything
    sockets = {each.lane: each for each in taken.of("/talk")}
    page = sockets["main/page-1/frame"]
    assert page.request["protocols"] == ["v2.chat", "v1.chat"]
    assert page.head["status"] == 101
    assert [frame["from"] for frame in page.pieces] == ["page", "page", "server", "server"]
    assert page.pieces[2]["text"] == seen["websocket"][1][0]
    code, reason, clean = seen["websocket"][2:]
    assert page.end == {"code": code, "reason": reason, "clean": clean, "by": "server"}
    worker = {lane for lane in sockets if "worker" in lane}
    assert len(worker) == (1 if backend == SOCKET else 0)


def test_lanes_say_who_asked(everything: Any) -> None:
    backend, taken, _, _ = everything
    assert [each.lane for each in taken.of("/frame")] == ["main/page-1/frame-2", "main/page-1/frame-3"]
    assert taken.one("/popup").lane == taken.one("/answer?popup").lane == "main/page-2/frame"
    assert taken.one("/answer?sw").lane == "main/service-worker-1/net"
    worker = taken.one("/answer?worker").lane
    assert worker == taken.one("/imported.js").lane
    assert worker.startswith("main/page-1/worker-" if backend == SOCKET else "main/page-1/frame")
