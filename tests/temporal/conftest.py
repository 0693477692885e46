import atexit
import os
import sys
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


_sessions: list[pytest.Session] = []


def pytest_sessionstart(session: pytest.Session) -> None:
    _sessions.append(session)


def pytest_collection_finish(session: pytest.Session) -> None:
    """This file may be loaded after the session's start."""
    if session not in _sessions:
        _sessions.append(session)


@atexit.register
def _leave() -> None:
    """Threads of Temporal's core may abort, or keep up, an interpreter that is torn down meanwhile: this one is not."""
    if "temporalio.bridge.temporal_sdk_bridge" in sys.modules and _sessions:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(int(_sessions[-1].exitstatus))
