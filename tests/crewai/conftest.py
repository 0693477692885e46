"""Crews on the loopback provider.

CrewAI's switches are set before it is imported, so that it sends nothing, asks nothing, waits for nothing at its end
and writes into nobody's home.
"""

import contextlib
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

os.environ["HOME"] = os.environ["CREWAI_STORAGE_DIR"] = tempfile.mkdtemp(prefix="lockstep-crewai-")
os.environ["CREWAI_DISABLE_TELEMETRY"] = os.environ["CREWAI_DISABLE_VERSION_CHECK"] = "true"
os.environ["CREWAI_TRACING_ENABLED"] = "false"
sys.path.insert(0, str(Path(__file__).parent))

import crew_events
import crew_runs
import crew_script
import crews
import pytest

from lockstep.cli.app import app
from lockstep.testing import Provider


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Provider]:
    """The provider that all models of `crews` speak to, with their script; a test may stop it, so that nothing can ask
    it any more."""
    crews.ran.clear()
    # No certificate is looked at here, and to load those of the machine takes most of the time of making a client.
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path))
    monkeypatch.setenv("CREWS_PLACE", str(tmp_path))
    with Provider(crew_script.answered) as started:
        for name, value in started.environ.items():
            monkeypatch.setenv(name, value)
        yield started


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> crew_runs.Command:
    """What a command of Lockstep's prints, in this process, where CrewAI is imported already."""

    def run(*words: str) -> str:
        capsys.readouterr()
        with contextlib.suppress(SystemExit):
            app([*words], standalone_mode=False)
        printed = capsys.readouterr()
        return printed.out + printed.err

    return run


@pytest.fixture
def heard() -> Iterator[crew_events.Heard]:
    """What CrewAI's listeners are told meanwhile."""
    with crew_events.hearing() as heard:
        yield heard


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sessions first: each looks at every object that there is, and those of other tests would make that slow."""
    items.sort(key=lambda item: Path(__file__).parent / "session" not in item.path.parents)


def pytest_unconfigure() -> None:
    shutil.rmtree(os.environ["HOME"], ignore_errors=True)


def pytest_configure(config: pytest.Config) -> None:
    """What CrewAI warns itself of is nobody's here."""
    config.addinivalue_line("filterwarnings", "ignore::DeprecationWarning:crewai")
