import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lockstep_temporal.scribe import scribe

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "runs.db"


@pytest.fixture
def no_faults() -> Iterator[None]:
    """What the interceptor alone records is recorded without a fault, from this process."""
    scribe.faults.clear()
    yield
    assert scribe.flush()
    assert scribe.faults == []
