"""How processes of a run begin and end: forked, replaced, killed, left behind."""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from pathlib import Path
from typing import Any

from lockstep.log.model import RunState
from lockstep.log.store import open_store


def test_workers_of_a_prefork_server_are_followed(runs: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    recorded = runs.record("prefork.py", port)
    assert recorded["exit"] == 0, runs.said
    assert recorded["killed"] == ["main/fork.1", "main/fork.2"]
    assert runs.replay()["identical"], runs.said


def test_a_child_that_is_killed_is_replayed_to_where_it_was(runs: Any) -> None:
    recorded = runs.record("ending.py", "killed")
    assert (recorded["state"], recorded["killed"]) == ("complete", ["main/told.1"])
    again = runs.replay()
    assert again["identical"] and not again["cut"], runs.said
    assert "-9" in runs.printed.splitlines()


def test_a_run_whose_processes_were_all_killed_at_once_replays_to_the_cut(runs: Any, tmp_path: Path) -> None:
    recording = runs.start("record", "--run", "r", "--", sys.executable, str(runs.agent("endless.py")))
    while not (tmp_path / "far").exists():
        time.sleep(0.01)
    os.killpg(recording.pid, signal.SIGKILL)
    recording.wait()
    again = runs.replay()
    assert again["identical"] and again["cut"], runs.said


def test_a_daemon_process_ends_with_its_parent(runs: Any) -> None:
    assert runs.record("ending.py", "daemon")["killed"] == ["main/told.1"]
    assert runs.replay()["identical"], runs.said


def test_a_child_that_outlives_its_parent_is_recorded_to_its_end(runs: Any, tmp_path: Path) -> None:
    recorded = runs.record("ending.py", "outlives")
    assert recorded["running"] == ["main/fork.1"]
    with open_store(str(tmp_path / "store.db")) as store:
        while store.run("r").info.state is RunState.GROWING:
            time.sleep(0.05)
        assert store.run("r").info.state is RunState.COMPLETE
    again = runs.replay()
    assert again["identical"], runs.said
    assert len([line for line in runs.printed.splitlines() if line[:1].isdigit()]) == 5


def test_a_child_that_becomes_another_python_is_recorded_as_that(runs: Any) -> None:
    recorded = runs.record("ending.py", "exec")
    assert recorded["exit"] == 0 and not recorded["faults"], runs.said
    printed = [line for line in runs.printed.splitlines() if "-" in line and line[:1].isdigit()]
    assert runs.replay()["identical"], runs.said
    assert [line for line in runs.printed.splitlines() if "-" in line and line[:1].isdigit()] == printed


def test_a_process_more_than_recorded_is_the_difference(runs: Any) -> None:
    runs.record("ending.py", "exec")
    found = runs.replay("ending.py", "more")["divergence"]
    assert (found["code"], found["lane"]) == ("LS103", "main/fork.2")
    assert "never began this process" in found["reason"]


def test_a_process_fewer_than_recorded_is_the_difference(runs: Any) -> None:
    runs.record("ending.py", "more")
    found = runs.replay("ending.py", "exec")["divergence"]
    assert (found["code"], found["lane"]) == ("LS104", "main/fork.2")


def test_a_process_that_became_what_nobody_records_is_named_and_not_run_again(runs: Any, tmp_path: Path) -> None:
    code = f"import os; os.spawnv(os.P_WAIT, '/bin/sh', ['sh', '-c', 'echo x >> {tmp_path}/ran'])"
    (tmp_path / "agent.py").write_text(code)
    recorded = runs.record(str(tmp_path / "agent.py"))
    assert any(entry["how"] == "not covered" for entry in recorded["coverage"]), runs.said
    again = runs.replay()
    assert not again["identical"]
    assert (tmp_path / "ran").read_text() == "x\n"


def test_every_python_of_a_shell_is_followed(runs: Any, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("import os, sys\nos.system(f'{sys.executable} b.py; {sys.executable} b.py')\n")
    (tmp_path / "b.py").write_text("import time, uuid\nprint(time.time(), uuid.uuid4())\n")
    runs.record(str(tmp_path / "a.py"))
    printed = [line for line in runs.printed.splitlines() if line[:1].isdigit()]
    assert len(set(printed)) == 2
    assert runs.replay()["identical"], runs.said
    assert [line for line in runs.printed.splitlines() if line[:1].isdigit()] == printed
