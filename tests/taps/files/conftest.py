"""A directory of its own for each test, in which the program runs."""

from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, empty. The store lies beside it."""
    directory = tmp_path / "project"
    directory.mkdir()
    monkeypatch.chdir(directory)
    return directory


@pytest.fixture
def twice(here: Path, session: Any) -> Any:
    """Records a program, lets `between` change the world, and replays it: what it returned must be the same."""

    def run(program: Any, between: Any = lambda: None) -> Any:
        recorded = session.record(program)
        assert recorded.faults == ()
        first = session.result
        between()
        replayed = session.replay(program)
        assert replayed.difference is None
        assert replayed.identical, replayed.coverage
        assert replayed.digest == recorded.digest
        assert session.result == first
        return first

    return run
