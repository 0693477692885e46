"""One program, three times: bare, recorded, replayed. It must see the same, and a replay may not reach the server."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.taps.holding import Decide, holding

from lockstep.session.report import Report
from lockstep.session.session import finish, start_recording, start_replay
from lockstep.testing import Provider

HERE = Path(__file__).parent


class Odd:
    """The server of odd answers. `url` and `tls` begin its addresses; `port` is the plain one's."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        plain, secure = self._line().split()
        self.port = int(plain)
        self.url = f"http://127.0.0.1:{plain}"
        self.tls = f"https://127.0.0.1:{secure}"
        self.certificate = str(HERE / "loopback.pem")

    def counts(self) -> tuple[int, int]:
        """Requests and connections so far."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        requests, connections = self._line().split()
        return int(requests), int(connections)

    def release(self) -> None:
        """Lets an answer of `/held` go on."""
        assert self._process.stdin is not None
        self._process.stdin.write("release\n")
        self._process.stdin.flush()

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline()


class Same[T]:
    """Runs a program three ways against a server and compares. `record` and `replay` are two of them.

    `prepare` sets the server back before each live run, where its answers depend on what it was asked before.
    """

    def __init__(self, server: T, counts: Callable[[], tuple[int, int]], prepare: Callable[[], None]) -> None:
        self.server = server
        self.counts = counts
        self.prepare = prepare
        self.run = ""

    def __call__(self, program: Callable[[T], Any], hits: int | None = None, held: bool = False) -> Report:
        """Returns the replay's report, which is the recording's in all that counts. `held`: and a fourth way, as past
        a fork's served part, where nothing is sent before all of a request is known."""
        self.prepare()
        bare = program(self.server)
        self.prepare()
        before = self.counts()
        recorded, report = self.record(program)
        assert recorded == bare
        assert (report.faults, report.uncovered) == ((), ())
        after = self.counts()
        if hits is not None:
            assert after[0] - before[0] == hits
        replayed, proof = self.replay(program)
        assert proof.identical, proof.difference
        assert replayed == bare
        assert (proof.digest, proof.faults, proof.uncovered) == (report.digest, (), ())
        assert self.counts() == after, "the replay reached the server"
        if held:
            self._held(program, bare)
        return proof

    def _held(self, program: Callable[[T], Any], bare: Any) -> None:
        self.prepare()
        held, report = self.hold(program)
        assert held == bare
        assert (report.faults, report.uncovered) == ((), ())
        replayed, proof = self.replay(program)
        assert proof.identical, proof.difference
        assert replayed == bare

    def record(self, program: Callable[[T], Any]) -> tuple[Any, Report]:
        session = start_recording(None, "case", {})
        self.run = session.run
        try:
            seen = program(self.server)
        except BaseException as error:
            finish(session, None, error)
            raise
        return seen, finish(session, 0, None)

    def hold(self, program: Callable[[T], Any], decide: Decide = lambda call: None) -> tuple[Any, Report]:
        """Runs it in a session whose calls are held until all of a request is known, and live then."""
        with holding("held", decide) as session:
            self.run = session.run
            seen = program(self.server)
        return seen, session.report

    def replay(self, program: Callable[[T], Any]) -> tuple[Any, Report]:
        """How the program ended is the report's business: a divergence is not raised from here."""
        session = start_replay(None, self.run, deadline=10.0)
        seen: Any = None
        try:
            seen = program(self.server)
        except BaseException as error:
            seen = error
        return seen, finish(session, 0, None)


def chain(error: BaseException | None) -> list[tuple[str, str, int | None]]:
    """What an agent may look at of an exception: type, text, number, and the same of what is behind it."""
    seen = []
    while error is not None:
        kind = type(error)
        seen.append((f"{kind.__module__}.{kind.__qualname__}", str(error), getattr(error, "errno", None)))
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return seen


def raised(act: Callable[[], Any]) -> list[tuple[str, str, int | None]]:
    try:
        act()
    except Exception as error:
        return chain(error)
    raise AssertionError("nothing was raised")


@pytest.fixture(scope="session")
def server() -> Iterator[Odd]:
    command = [sys.executable, str(HERE / "server.py")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield Odd(process)
        process.kill()


@pytest.fixture
def same(server: Odd) -> Same[Odd]:
    return Same(server, server.counts, lambda: None)


@pytest.fixture
def same_model() -> Iterator[Same[Provider]]:
    """The same with a model provider, whose answers depend on the question only."""
    with Provider(lambda request: f"answer to: {request.prompt}") as provider:
        yield Same(provider, lambda: (provider.requests, provider.connections), provider.seen.clear)
