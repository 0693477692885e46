"""What a page sees of a site when it is recorded, and then again in a replay, with the site gone: by four tools.

browse_observables.py socket|sessions|har|route FIGURES
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

import lockstep
import lockstep_playwright
from lockstep.errors import Stop
from lockstep_playwright.browsers import find_chromium
from lockstep_playwright.hosting import Wanted, opened

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "playwright"))

import routing
from browser_site import Site
from observing import OBSERVABLES, differing, observe

PATIENCE = 10  # seconds that a page waits for what does not come

type Seen = dict[str, Any]
type Replay = Callable[[], Seen]


def by_socket(url: str, room: Path) -> tuple[Seen, Replay]:
    """Ours, over a socket of its own."""
    with opened(Wanted()) as host:
        context = lockstep_playwright.tap(
            host.context, run="all", store=str(room / "store.db"), endpoint=host.endpoint
        )  # fmt: skip
        seen = observe(context, url, PATIENCE)
        context.close()
    return seen, lambda: replayed(url, room)


def by_sessions(url: str, room: Path) -> tuple[Seen, Replay]:
    """Ours, over Playwright's sessions."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium())
        context = lockstep_playwright.tap(browser.new_context(), run="all", store=str(room / "store.db"))
        seen = observe(context, url, PATIENCE)
        context.close()
        browser.close()
    return seen, lambda: replayed(url, room)


def replayed(url: str, room: Path) -> Seen:
    """What is seen until the replay ends, which may be at a divergence."""
    seen: Seen = {}
    lockstep.replay(
        "playwright/all", lambda context: observe(context, url, PATIENCE, seen), store=str(room / "store.db")
    )  # fmt: skip
    return seen


def by_har(url: str, room: Path) -> tuple[Seen, Replay]:
    """Playwright's HAR files."""
    har = room / "all.har"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium())
        context = browser.new_context(record_har_path=har, record_har_content="embed")
        seen = observe(context, url, PATIENCE)
        context.close()
        browser.close()

    def replay() -> Seen:
        again: Seen = {}
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=find_chromium())
            context = browser.new_context()
            context.route_from_har(har, not_found="abort")
            routing.until_it_fails(lambda: observe(context, url, PATIENCE, again))
            browser.close()
        return again

    return seen, replay


def by_route(url: str, room: Path) -> tuple[Seen, Replay]:
    """A log of responses, and `context.route`."""
    seen, log = asyncio.run(routing.recorded(find_chromium(), url, PATIENCE))
    return seen, lambda: asyncio.run(routing.replayed(find_chromium(), url, PATIENCE, log))


WAYS = {"socket": by_socket, "sessions": by_sessions, "har": by_har, "route": by_route}


def main() -> None:
    way, figures = sys.argv[1:]
    with Site() as site, tempfile.TemporaryDirectory() as folder:
        seen, replay = WAYS[way](site.url, Path(folder))
        with site.gone() as canary:
            try:
                again = replay()
            except Stop as error:
                raise SystemExit(str(error)) from error
            came = canary.connects()
    names = [name for name in differing(seen, again) if name in OBSERVABLES]
    found = {
        "differing": names,
        "connects": len(came),
        "requests": [first.partition("\r\n")[0] for first in came if first],
    }
    Path(figures).write_text(json.dumps(found))


if __name__ == "__main__":
    main()
