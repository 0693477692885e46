"""A recording that is killed is kept as far as it came: nothing acknowledged is lost, and it replays up to the cut."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.warm import command

from lockstep.testing import Answer, Provider, Request

AGENT = Path(__file__).parent / "agents" / "lasting.py"
REQUESTS = 32  # that a whole run of the agent makes
STEPS = 20
MOMENTS = 20


class Store:
    """A store, the provider, and what agents that record into it were told."""

    def __init__(self, directory: Path, provider: Provider) -> None:
        self.directory = directory
        self.provider = provider

    def told(self, run: str) -> list[str]:
        file = self.directory / run
        return file.read_text().splitlines() if file.exists() else []

    def steps_told(self, run: str) -> list[str]:
        return [line.removeprefix("step ") for line in self.told(run) if line.startswith("step ")]

    def start(self, *words: str, told: str = "nobody") -> subprocess.Popen[str]:
        return command.start(
            *words,
            cwd=self.directory,
            env={
                **os.environ,
                **self.provider.environ,
                "LOCKSTEP_STORE": str(self.directory / "store.db"),
                "ACKNOWLEDGED": str(self.directory / told),
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def record(self, run: str, *arguments: str) -> subprocess.Popen[str]:
        return self.start("record", "--run", run, "--", sys.executable, str(AGENT), *arguments, told=run)

    def run(self, *words: str) -> tuple[int, str, str]:
        """The status, stdout and stderr of a command that is to ask the provider nothing."""
        before = self.provider.requests, self.provider.connections
        process = self.start(*words)
        out, words_ = process.communicate(timeout=60)
        assert (self.provider.requests, self.provider.connections) == before, "the provider was reached"
        return process.returncode, out, words_


def moody(request: Request) -> Answer:
    chance = random.Random(request.number)
    return Answer(f"{request.number} " + "word " * 8, delay=chance.uniform(0.0, 0.02), gap=chance.uniform(0.0, 0.005))


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with Provider(moody) as provider:
        yield Store(tmp_path_factory.mktemp("interrupted"), provider)


def until(reached: Callable[[], object], process: subprocess.Popen[str]) -> None:
    """Waits for a place in the agent's run."""
    while not reached():
        assert process.poll() is None, process.communicate()
        time.sleep(0.0005)


def kill(process: subprocess.Popen[str], store: Store, run: str, *, whole: bool) -> str:
    """Kills the agent, and with it (`whole`) its supervisor. Returns what it had printed."""
    agent = next(int(line.removeprefix("process ")) for line in store.told(run) if line.startswith("process "))
    if whole:
        os.kill(process.pid, signal.SIGKILL)
    os.kill(agent, signal.SIGKILL)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    return out


def assert_kept(store: Store, run: str, printed: str, replays: int = 0) -> None:
    """The run is interrupted, has every step that was acknowledged, is consistent, and replays up to the cut."""
    status, out, words = store.run("runs", "--json")
    assert status == 0, words
    assert {row["run"]: row["state"] for row in json.loads(out)}[run] == "interrupted"

    status, out, words = store.run("log", run, "--json")
    assert status == 0, words
    stored = [row["name"] for row in json.loads(out)["steps"] if row["kind"] == "step"]
    acknowledged = store.steps_told(run)
    assert stored[: len(acknowledged)] == acknowledged
    assert len(stored) <= len(acknowledged) + 1

    # A replay notes where the recording did: it is told the recorded file.
    status, out, words = store.run("replay", run)
    assert status == 0, words
    assert words.startswith("✓ identical up to the cut"), words
    assert printed.startswith(out) or out.startswith(printed)
    assert store.steps_told(run)[len(acknowledged) :] == stored

    status, out, words = store.run("verify", run, "--json", "--times", str(replays))
    assert status == 0, out
    verdict = json.loads(out)
    assert (verdict["consistent"], verdict["open_end"], verdict["identical"]) == (True, True, True)


@pytest.mark.parametrize("moment", range(MOMENTS))
def test_a_recording_killed_at_any_moment_is_kept_up_to_it(moment: int, store: Store) -> None:
    chance = random.Random(moment)
    requests = 1 + (moment * REQUESTS + chance.randrange(REQUESTS)) // MOMENTS
    run = f"killed-{moment}"
    end = store.provider.requests + min(requests, REQUESTS)
    process = store.record(run)
    until(lambda: store.provider.requests >= end, process)
    time.sleep(chance.uniform(0.0, 0.02))
    printed = kill(process, store, run, whole=moment % 2 == 0)
    assert_kept(store, run, printed)


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("where", ["in a tool", "in a stream"])
def test_a_recording_killed_in_the_middle_of_an_answer_is_kept(where: str, whole: bool, store: Store) -> None:
    run = f"{where.replace(' ', '-')}-{whole}"
    process = store.record(run, where)
    until(lambda: where in store.told(run), process)
    printed = kill(process, store, run, whole=whole)
    assert_kept(store, run, printed, replays=2)


def test_two_processes_record_into_one_store_at_once(store: Store) -> None:
    processes = {run: store.record(run) for run in ("one", "other")}
    outputs = {run: process.communicate(timeout=60) for run, process in processes.items()}
    for run, (printed, words) in outputs.items():
        assert processes[run].returncode == 0, words
        assert f"● {run}  complete" in words and "not covered: nothing" in words
        assert len(store.steps_told(run)) == STEPS
        status, out, words = store.run("replay", run)
        assert (status, out) == (0, printed), words
        assert words.startswith("✓ identical ")
        assert store.run("verify", run)[0] == 0
    status, out, _ = store.run("runs", "--json")
    assert {row["run"]: row["state"] for row in json.loads(out) if row["run"] in outputs} == dict.fromkeys(
        outputs, "complete"
    )
