"""Concurrent model calls replay to the same run, fifty times of fifty: same answers, same order, same output."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from lockstep.testing import Provider

AGENTS = Path(__file__).parent / "agents"

RECORDINGS = 5
REPLAYS = 10  # of each recording

# agent, its arguments, the slowest answer in seconds
KINDS = {
    "gathered": ("gathered.py", (), 0.02),
    "gathered and streamed": ("gathered.py", ("streamed",), 0.02),
    "equal requests gathered": ("gathered.py", ("same",), 0.02),
    "equal requests streamed": ("gathered.py", ("same", "streamed"), 0.02),
    "in threads": ("threaded.py", (), 0.02),
    "in threads and streamed": ("threaded.py", ("streamed",), 0.02),
    "equal requests in threads": ("threaded.py", ("same",), 0.02),
    "timeouts and cancelled calls": ("deciding.py", (), 0.16),
    "limits in threads": ("hurried.py", (), 0.16),
}


@pytest.mark.parametrize("kind", KINDS)
def test_fifty_of_fifty_replays_are_the_recorded_run(kind: str, warm, model: Provider, moody, tmp_path: Path) -> None:
    agent, argv, moody.slowest = KINDS[kind]
    recording, replaying = warm
    store = tmp_path / "store.db"
    recorded = [recording.record(store, f"run-{n}", agent, *argv) for n in range(RECORDINGS)]
    assert [(done.error, done.report.faults, done.report.uncovered) for done in recorded] == [("", (), ())] * RECORDINGS
    assert len({done.output for done in recorded}) > 1, "the recordings are all alike: nothing was put to the test"

    before = model.requests, model.connections
    differing = []
    for n, first in enumerate(recorded):
        replays = replaying.replay(REPLAYS, store, f"run-{n}", agent, *argv)
        assert len(replays) == REPLAYS, replays[-1].error
        for again in replays:
            same = again.report is not None and again.report.identical and again.report.digest == first.report.digest
            if not same or again.output != first.output or again.error:
                differing.append((n, again.output == first.output, again.error or again.report))
    assert differing == []
    assert (model.requests, model.connections) == before, "a replay reached the provider"


@pytest.mark.parametrize("kind", ["gathered and streamed", "in threads and streamed", "timeouts and cancelled calls"])
def test_the_command_line_replays_it_too(kind: str, lockstep, model: Provider, moody) -> None:
    agent, argv, moody.slowest = KINDS[kind]
    command = [sys.executable, str(AGENTS / agent), *argv]
    recorded = lockstep("record", "--run", "case", "--", *command, env=model.environ)
    assert recorded.returncode == 0, recorded.stderr
    before = model.requests, model.connections
    for _ in range(2):
        again = lockstep("replay", "case", env=model.environ)
        assert (again.returncode, again.stdout) == (0, recorded.stdout), again.stderr
        assert again.stderr.startswith("✓ identical")
    assert (model.requests, model.connections) == before, "a replay reached the provider"
