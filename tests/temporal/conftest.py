import atexit
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from live_server import Server, running


@pytest.fixture(scope="session")
def temporal_server() -> Iterator[Server]:
    """The one real server of this test session; what is run on it, and how: see `live_server`."""
    with running() as server:
        yield server


@pytest.fixture(scope="session", autouse=True)
def _ends_again() -> Iterator[None]:
    """What ends a stuck workflow may reach its thread in a destructor, which swallows it: it is raised again."""
    before = sys.unraisablehook

    def hook(unraisable: Any) -> None:
        if unraisable.exc_type.__name__ != "Stuck":
            before(unraisable)

    sys.unraisablehook = hook
    yield
    sys.unraisablehook = before


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
