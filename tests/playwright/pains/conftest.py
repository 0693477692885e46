import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from pained import Tapped
from playwright.sync_api import Playwright


@pytest.fixture(scope="module")
def tapped_browser(playwright: Playwright, chromium: str) -> Iterator[Tapped]:
    tapped = Tapped(playwright, chromium)
    yield tapped
    tapped.close()


@pytest.fixture
def tapped(tapped_browser: Tapped, tmp_path: Path) -> Tapped:
    """One browser a module, with a store for each test."""
    tapped_browser.store = str(tmp_path / "store.db")
    return tapped_browser
