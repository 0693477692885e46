import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lockstep_langgraph import patches, turns

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent.parent / "calls")]


@pytest.fixture(autouse=True)
def _seen() -> Iterator[None]:
    """Calls and turns are seen, as they are once there is a saver of ours."""
    patches.install()
    turns.install()
    yield
    turns.uninstall()
    patches.uninstall()
