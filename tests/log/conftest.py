"""A store of its own for each test of the log."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lockstep.log.store import Store, open_store

# The values and runs to test with stand beside the tests, which are no package.
sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    open_store(path, create=True).close()
    with open_store(path) as opened:
        yield opened
