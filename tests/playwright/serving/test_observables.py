"""A page that uses all that a page can reach, recorded and then replayed with its site gone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from browser_site import Site
from observing import OBSERVABLES, differing, observe
from playwright.sync_api import sync_playwright

import lockstep
import lockstep_playwright
from lockstep.errors import Code
from lockstep_playwright.hosting import Wanted, opened

RACES = {"cookie", "chunks"}  # what a page may find in another order, and nothing else over a socket of our own
# Of Playwright's sessions, in workers; the clock of one is a difference, at which the program is stopped where it was.
OUT_OF_REACH = {"worker", "blob_worker", "worker_websocket", "download", "cookies_of_context"}

type Seen = dict[str, Any]


def by_socket(chromium: str, url: str, store: str) -> Seen:
    with opened(Wanted(executable=chromium)) as host:
        context = lockstep_playwright.tap(host.context, run="all", store=store, endpoint=host.endpoint)
        seen = observe(context, url)
        context.close()
    return seen


def by_sessions(chromium: str, url: str, store: str) -> Seen:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium)
        context = lockstep_playwright.tap(browser.new_context(), run="all", store=store)
        seen = observe(context, url)
        context.close()
        browser.close()
    return seen


@pytest.mark.parametrize(
    ("record", "times", "may_differ"), [(by_socket, 2, RACES), (by_sessions, 1, RACES | OUT_OF_REACH)]
)
def test_a_page_sees_again_all_that_it_saw_and_nobody_is_asked(
    site: Site, chromium: str, tmp_path: Path, record: Any, times: int, may_differ: set[str]
) -> None:
    store = str(tmp_path / "store.db")
    recorded = record(chromium, site.url, store)
    with site.gone() as canary:
        for _ in range(times):
            seen: Seen = {}
            replayed = lockstep.replay(
                "playwright/all", lambda context, seen=seen: observe(context, site.url, seen=seen),
                store=store, executable=chromium,
            )  # fmt: skip
            differs = set(differing(recorded, seen))
            assert differs <= may_differ, replayed.divergence
            if not differs & OUT_OF_REACH:
                found = replayed.report.difference
                assert found is not None or not differs
                # Nothing else differs, but for the order in which frames were there when the page was looked at.
                assert found is None or differs or found.code is Code.ORDER, replayed.divergence
                assert replayed.report.difference is None or replayed.report.difference.code == Code.ORDER
            assert len(OBSERVABLES) - len(differs & set(OBSERVABLES)) >= 31
        assert canary.connects() == []
