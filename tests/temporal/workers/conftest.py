import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from live_server import Server

sys.path.insert(0, str(Path(__file__).parent))

from probe_site import Site


@pytest.fixture(scope="session")
def site(temporal_server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """With recordings that went wrong at the planted places, and two workers at work."""
    made = Site(tmp_path_factory.mktemp("site"), temporal_server)
    with ExitStack() as stack:
        for name in ("one", "two"):
            stack.enter_context(made.worker(name))
        made.record("refund")
        made.run("graph.py", PLANTED="5")
        yield made
