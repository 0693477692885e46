"""A store of its own for each test of the log."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.warm import command

from lockstep.log.store import Store, open_store

# The values and runs to test with stand beside the tests, which are no package.
sys.path.insert(0, str(Path(__file__).parent))

from looking import look, looker

__all__ = ["look", "looker"]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    open_store(path, create=True).close()
    with open_store(path) as opened:
        yield opened


@pytest.fixture
def lockstep(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs `lockstep` with the given words in the test's own directory and store."""

    def run(*words: str, **options: Any) -> subprocess.CompletedProcess[str]:
        return command.run(*words, cwd=tmp_path, **options)

    return run
