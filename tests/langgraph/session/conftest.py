import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The default store of a test, which works in a directory of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LOCKSTEP_STORE", str(tmp_path / "store.db"))
    return tmp_path / "store.db"
