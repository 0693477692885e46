"""How long a page of a hundred requests takes to load: plain, recorded and replayed, in turns. From a server that
answers at once, and from one that takes a while for each answer, as one at some distance does.

browse_load.py ROUNDS FIGURES
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import lockstep
import lockstep_playwright
from lockstep_playwright.hosting import Wanted, opened

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "playwright"))

from browser_site import Site

LOADS = 4  # of each page in each browser; the first one warms it up
PAGES = {"at once": "/load", "after 20 ms": "/load?after=0.02"}

type Took = dict[str, float]


def load(context: Any, url: str) -> Took:
    """Of each page, seconds from its address to its last answer: the median of the loads after the first."""
    return {name: _load(context.new_page(), f"{url}{path}") for name, path in PAGES.items()}


def _load(page: Any, address: str) -> float:
    took = []
    for _ in range(LOADS):
        began = time.perf_counter()
        page.goto(address)
        page.wait_for_function("window.loaded")
        took.append(time.perf_counter() - began)
    page.close()
    return statistics.median(took[1:])


def recorded(url: str, store: str, socket: bool) -> Took:
    with opened(Wanted(port=socket)) as host:
        context = lockstep_playwright.tap(host.context, run="load", store=store, endpoint=host.endpoint)
        took = load(context, url)
        context.close()
        return took


def replayed(url: str, store: str) -> Took:
    took: list[Took] = []
    done = lockstep.replay("playwright/load", lambda context: took.append(load(context, url)), store=store)
    assert done.identical, done.divergence
    return took[0]


def plain(url: str) -> Took:
    with opened(Wanted(port=False)) as host:
        return load(host.context, url)


def main() -> None:
    rounds, figures = int(sys.argv[1]), sys.argv[2]
    found: dict[str, list[Took]] = {}
    with Site() as site:
        for _ in range(rounds):
            with tempfile.TemporaryDirectory() as folder:
                found.setdefault("plain", []).append(plain(site.url))
                for name, socket in (("socket", True), ("sessions", False)):
                    store = str(Path(folder, f"{name}.db"))
                    found.setdefault(f"{name} recorded", []).append(recorded(site.url, store, socket))
                    found.setdefault(f"{name} replayed", []).append(replayed(site.url, store))
    Path(figures).write_text(json.dumps(found))


if __name__ == "__main__":
    main()
