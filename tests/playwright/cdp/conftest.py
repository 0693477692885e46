import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from cdp_recordings import Browsed, opened


@pytest.fixture(scope="module")
def browsed(chromium: str) -> Iterator[Browsed]:
    """A browser for the tests of a module."""
    with opened(chromium) as found:
        yield found
