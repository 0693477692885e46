import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lockstep_langgraph import patches

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def _seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Calls are seen, as they are once there is a saver of ours; each test has stores of its own."""
    monkeypatch.chdir(tmp_path)
    patches.install()
    yield
    patches.uninstall()
