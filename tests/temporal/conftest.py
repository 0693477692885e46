import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from live_server import Server, running


@pytest.fixture(scope="session")
def temporal_server() -> Iterator[Server]:
    """The one real server of this test session; what is run on it, and how: see `live_server`."""
    with running() as server:
        yield server


def pytest_unconfigure() -> None:
    """Threads of Temporal's core that still let go of what they held abort an interpreter that ends meanwhile."""
    if "temporalio.bridge.temporal_sdk_bridge" in sys.modules:
        time.sleep(0.3)
