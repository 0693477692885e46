import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lockstep_langgraph import insession, patches, turns

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The default store of a test, which works in a directory of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LOCKSTEP_STORE", str(tmp_path / "store.db"))
    return tmp_path / "store.db"


@pytest.fixture(autouse=True)
def _attached() -> Iterator[None]:
    """As in a program under `lockstep record`, for the length of a test."""
    patches.install()
    turns.install()
    insession.watch()
    yield
    turns.uninstall()
    patches.uninstall()
