"""Agents that are run again and again: through the command line, and in warm processes."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.warm import command

from lockstep.session.report import Report
from lockstep.testing import Answer, Provider, Request

HERE = Path(__file__).parent
AGENTS = HERE / "agents"
CERTIFICATE = HERE.parent / "taps" / "http" / "loopback.pem"

type Lockstep = Callable[..., subprocess.CompletedProcess[str]]


class Done(msgspec.Struct, frozen=True):
    """How one run in a warm process went."""

    output: str
    report: Report | None
    error: str


class Warm:
    """A process that has the SDK imported, and runs agents in forks of itself."""

    def __init__(self, environ: Mapping[str, str], hash_seed: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(HERE / "warm.py")],
            cwd=AGENTS,
            # A short list of certificates: reading the whole one takes a client half as long as a replay.
            env={**os.environ, **environ, "PYTHONHASHSEED": hash_seed, "SSL_CERT_FILE": str(CERTIFICATE)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def record(self, store: Path, run: str, agent: str, *argv: str) -> Done:
        return self._do("record", 1, store, run, agent, argv)[0]

    def replay(self, times: int, store: Path, run: str, agent: str, *argv: str) -> list[Done]:
        return self._do("replay", times, store, run, agent, argv)

    def close(self) -> None:
        self._process.communicate()

    def _do(self, mode: str, times: int, store: Path, run: str, agent: str, argv: tuple[str, ...]) -> list[Done]:
        assert self._process.stdin is not None and self._process.stdout is not None
        job = {
            "mode": mode, "times": times, "store": str(store), "run": run, "agent": str(AGENTS / agent), "argv": argv,
        }  # fmt: skip
        self._process.stdin.write(json.dumps(job) + "\n")
        self._process.stdin.flush()
        return msgspec.json.decode(self._process.stdout.readline(), type=list[Done])


class Moody:
    """Answers like a model on a bad day: after a random time, and streams with random gaps."""

    def __init__(self) -> None:
        self.slowest = 0.0
        self.chance = random.Random(2)

    def __call__(self, request: Request) -> Answer:
        text = " ".join(self.chance.choices(("amber", "basil", "cedar", "delta", "ember"), k=6))
        gap = self.chance.uniform(0.0, self.slowest / 5)
        return Answer(f"{request.number}: {text}", delay=self.chance.uniform(0.0, self.slowest), gap=gap)


@pytest.fixture(scope="module")
def moody() -> Moody:
    return Moody()


@pytest.fixture(scope="module")
def model(moody: Moody) -> Iterator[Provider]:
    """One provider for a module, with the answers of `moody`: its address is in the recorded requests."""
    with Provider(moody) as started:
        yield started


@pytest.fixture(scope="module")
def warmed() -> Iterator[Callable[[Mapping[str, str], str], Warm]]:
    """Starts warm processes with the given variables and string hash."""
    started: list[Warm] = []

    def start(environ: Mapping[str, str], hash_seed: str) -> Warm:
        started.append(Warm(environ, hash_seed))
        return started[-1]

    yield start
    for process in started:
        process.close()


@pytest.fixture(scope="module")
def warm(model: Provider, warmed: Callable[[Mapping[str, str], str], Warm]) -> tuple[Warm, Warm]:
    """One process that records and another that replays: they share no address and no string hash."""
    return warmed(model.environ, "1"), warmed(model.environ, "2")


@pytest.fixture
def lockstep(tmp_path: Path) -> Lockstep:
    """Runs `lockstep` with the given words in the test's own directory and store."""

    def run(*words: str, env: Mapping[str, str] | None = None, **options: Any) -> subprocess.CompletedProcess[str]:
        return command.run(*words, cwd=tmp_path, env={**os.environ, **(env or {})}, **options)

    return run
