"""What holds for every test: a store of its own, loopback only, and no skipping."""

import faulthandler
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lockstep.testing import Provider

LOOPBACK = ("127.", "::1", "localhost")
_VARIABLES = ("LOCKSTEP_STORE", "OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL")
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """A skipped test proves nothing: it fails."""
    report = yield
    if report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} was skipped: {report.longrepr}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Iterator[None]:
    """The same for a module that skips itself as a whole."""
    report = yield
    if report.skipped:
        report.outcome = "failed"
        report.longrepr = f"{collector.nodeid} was skipped: {report.longrepr}"
    return report


@pytest.fixture(autouse=True)
def _own_surroundings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing of the developer's: no keys, no proxies, and a store that goes with the test."""
    for name in (*_VARIABLES, *_PROXIES, *(proxy.lower() for proxy in _PROXIES)):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LOCKSTEP_STORE", str(tmp_path / "store.db"))


@pytest.fixture
def provider() -> Iterator[Provider]:
    """A model provider on loopback whose equal requests get different answers."""
    with Provider() as started:
        yield started


def pytest_unconfigure() -> None:
    """A thread that never ends would have this process wait for it without a word: then it says where, and fails."""
    faulthandler.dump_traceback_later(60, exit=True)


def _loopback_only(event: str, arguments: tuple[object, ...]) -> None:
    if event != "socket.connect":
        return
    address = arguments[1]
    if isinstance(address, tuple) and not str(address[0]).startswith(LOOPBACK):
        raise PermissionError(f"a test tried to reach {address[0]}")


sys.addaudithook(_loopback_only)
