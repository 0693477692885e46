import asyncio
import contextlib
import urllib.request
from typing import Any

from async_browser import browsing
from browser_site import Site
from observing import BESIDE, OBSERVABLES, aobserve, differing

# What is the same each time, without anything of ours: it is asked for, but the answer is no news.
CONSTANT = {"script", "dropped"}


def looked(chromium: str, url: str) -> list[dict[str, Any]]:
    """What two contexts of one browser see, one after the other."""

    async def look() -> list[dict[str, Any]]:
        async with browsing(chromium) as browser:
            return [await aobserve(await browser.new_context(), url) for _ in range(2)]

    return asyncio.run(look())


def test_a_page_sees_all_that_is_named_and_each_time_something_else(chromium: str, site: Site) -> None:
    one, other = looked(chromium, site.url)
    assert len(OBSERVABLES) == 34
    assert set(one) == {*OBSERVABLES, *BESIDE}
    assert [name for name, value in one.items() if value == "never" or "Error: " in str(value)] == ["dropped"]
    assert set(differing(one, other)) == set(one) - CONSTANT


def test_each_request_is_written_down_before_it_is_answered(site: Site) -> None:
    with urllib.request.urlopen(site.url + "/post", data=b"hello") as answer:
        assert answer.read().endswith(b"to hello")
    [hit] = site.hits()
    assert (hit["method"], hit["path"], hit["body"]) == ("POST", "/post", "hello")


def test_what_listens_in_the_place_of_a_killed_site_tells_who_connected(site: Site) -> None:
    with site.gone() as canary:
        assert canary.connects() == []
        request = urllib.request.Request(site.url + "/all")
        with contextlib.suppress(TimeoutError):
            urllib.request.urlopen(request, timeout=0.2)
        [first] = canary.connects()
        assert first.startswith("GET /all")
