"""An agent that looks at all that a page can reach, and tells what it saw: the same in a replay, or it is not one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

type Seen = dict[str, Any]

# The names, as the page uses them, in the order of the comparison in the benchmarks.
OBSERVABLES = (
    *(
        "html",
        "css",
        "image",
        "background_image",
        "script",
        "frame",
        "cross_site_frame",
        "redirect_get",
        "redirect_post",
    ),
    *("same_post_twice", "random_post", "same_get_thrice", "xhr", "gzip", "brotli", "binary", "events_held"),
    *(
        "events_that_end",
        "chunks",
        "websocket",
        "service_worker",
        "worker",
        "blob_worker",
        "preflight",
        "upload",
        "beacon",
    ),
    *("unavailable", "dropped", "indexed_db", "local_storage", "cookie", "popup", "download", "inline"),
)
# What else is looked at: no browser tool serves sockets of workers, and pages do not see these cookies.
BESIDE = ("worker_websocket", "cookies_of_context")


def observe(context: Any, url: str, patience: int = 30, seen: Seen | None = None) -> Seen:
    """What a page of this context sees of the site, by name; "never" for what takes longer than `patience` seconds. It
    is put into `seen` as it comes."""
    seen = {} if seen is None else seen
    page = context.new_page()
    page.goto(f"{url}/all?patience={patience}")
    seen |= page.evaluate("window.finished")
    with page.expect_download() as downloading:
        page.click("#download")
    seen["download"] = Path(downloading.value.path()).read_text()
    seen["cookies_of_context"] = _cookies(context.cookies())
    page.close()
    return seen


async def aobserve(context: Any, url: str, patience: int = 30, seen: Seen | None = None) -> Seen:
    """The same by the async API."""
    seen = {} if seen is None else seen
    page = await context.new_page()
    await page.goto(f"{url}/all?patience={patience}")
    seen |= await page.evaluate("window.finished")
    async with page.expect_download() as downloading:
        await page.click("#download")
    seen["download"] = Path(await (await downloading.value).path()).read_text()
    seen["cookies_of_context"] = _cookies(await context.cookies())
    await page.close()
    return seen


def differing(one: Seen, other: Seen) -> list[str]:
    """The names that do not have the same value on both sides."""
    return [name for name in (*OBSERVABLES, *BESIDE) if one.get(name) != other.get(name)]


def _cookies(cookies: list[dict[str, Any]]) -> list[list[Any]]:
    return sorted([each["name"], each["value"], each["httpOnly"]] for each in cookies)
