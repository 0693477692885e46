import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lockstep.testing import Provider

sys.path.insert(0, str(Path(__file__).parent))

from desk_model import answer


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Iterator[Provider]:
    """The desk's model on loopback, and nobody who collects traces."""
    with Provider(answer) as provider:
        for name, value in provider.environ.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("OPENAI_AGENTS_DISABLE_TRACING", "1")
        yield provider
