"""Teams of AutoGen on the loopback provider."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import scripted_agents
import teams

from lockstep.testing import Provider


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Provider]:
    """The provider that all clients of `teams` speak to, with their script; a test may stop it, so that nothing can ask
    it any more."""
    teams.ran.clear()
    # No certificate is looked at here, and to load those of the machine takes most of the time of making a client.
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path))
    with Provider(scripted_agents.answered) as started:
        for name, value in started.environ.items():
            monkeypatch.setenv(name, value)
        yield started
