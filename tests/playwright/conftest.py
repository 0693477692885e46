import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from browser_site import Site
from playwright.sync_api import Browser, Playwright, sync_playwright

from lockstep.errors import LockstepError
from lockstep_playwright.browsers import find_chromium

_missing: list[LockstepError] = []


@pytest.fixture
def site() -> Iterator[Site]:
    """The site of `browser_site`, for one test, which may kill it."""
    with Site() as started:
        yield started


@pytest.fixture(scope="session")
def chromium() -> str:
    """The path of the browser. Where there is none, tests fail: none of them is skipped."""
    with sync_playwright() as playwright:
        bundled = playwright.chromium.executable_path
    try:
        return find_chromium(bundled=bundled)
    except LockstepError as error:
        _missing.append(error)
        raise


@pytest.fixture(scope="module")
def playwright() -> Iterator[Playwright]:
    """Playwright by its sync API, once a module: while it is on, no test of this thread can run an event loop. Tests of
    the async API are in modules of their own, with `async_browser.browsing(chromium)`."""
    with sync_playwright() as started:
        yield started


@pytest.fixture(scope="module")
def browser(playwright: Playwright, chromium: str) -> Iterator[Browser]:
    """A browser by the sync API, with nothing of ours on it, once a module. Each test makes contexts of its own."""
    launched = playwright.chromium.launch(executable_path=chromium)
    yield launched
    launched.close()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The last word, where it explains all failures above it."""
    for error in _missing[:1]:
        terminalreporter.write_line(f"NO TEST OF A BROWSER COULD RUN: {error}", red=True, bold=True)
