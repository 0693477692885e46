"""Commands that start Temporal's core end with the status that they mean, and not with a crash of its threads."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import kitchen_sink as sink
import live_server
from live_server import Server, run

from lockstep.log.store import open_store
from lockstep_temporal.history import imports

TESTS = Path(live_server.__file__).parent


def test_twenty_commands_in_a_row_end_well(temporal_server: Server, tmp_path: Path) -> None:
    ran = run(temporal_server, sink.Steps.run, 3, workflows=[sink.Steps], activities=[sink.add])
    (tmp_path / "history.json").write_text(ran.history)
    store = str(tmp_path / "shared.db")
    with open_store(store, create=True) as opened:
        name = imports(opened, ran.history.encode(), "")
    target = ("--target", "kitchen_sink")
    five = [
        ("import", "history.json"),  # nothing of Temporal runs
        ("replay", "history.json", *target),  # the SDK's own replay does
        ("replay", name, *target, "--store", store),
        ("fork", f"{name}:1", *target, "--live", "add", "--store", store),
        ("temporal", "pull", "--workflow-id", ran.workflow_id, "--run", "pulled", "--address", temporal_server.address),
    ]

    def in_a_row(number: int) -> list[tuple[tuple[str, ...], int, str]]:
        return [(words, *_lockstep(tmp_path, number, *words)) for words in five]

    with ThreadPoolExecutor(4) as pool:  # four rows at once
        done = [each for row in pool.map(in_a_row, range(4)) for each in row]

    assert Counter(status for _, status, _ in done) == {0: 20}, [each for each in done if each[1]]


def test_a_no_is_told_by_the_status_all_the_same(tmp_path: Path) -> None:
    history = live_server.committed("steps").replace('"add"', '"added"')
    (tmp_path / "other.json").write_text(history)

    status, said = _lockstep(tmp_path, 0, "replay", "other.json", "--target", "kitchen_sink")

    assert status == 1
    assert "added" in said


def _lockstep(folder: Path, number: int, *words: str) -> tuple[int, str]:
    told = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}  # twenty starts
    path = os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-m", "lockstep", *words],
        cwd=folder,
        env={**told, "PYTHONPATH": path, "LOCKSTEP_STORE": str(folder / f"{number}.db")},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    return done.returncode, done.stderr
