"""`lockstep record -- python worker.py`: a program that knows nothing of Lockstep."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import observed_workflows as own
import pytest
from live_server import Server, run, unique
from observed import attempts, recorded

import lockstep
from lockstep.log.store import open_store
from lockstep_temporal import LockstepPlugin

HERE = Path(__file__).parent
PROGRAM = str(HERE / "plain_worker.py")


def run_python(*words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return subprocess.run(
        [sys.executable, *words], check=False, capture_output=True, text=True, env=environment, stdin=subprocess.DEVNULL
    )


def record(store: Path, *words: str) -> tuple[dict[str, Any], subprocess.CompletedProcess[str]]:
    done = run_python(
        "-m", "lockstep", "record", "--store", str(store), "--run", "worker", "--json", "--", sys.executable, *words
    )
    return json.loads(done.stdout), done


class Plain(NamedTuple):
    """A program that has been recorded: its activities run in a process that it has started."""

    store: Path
    name: str
    told: dict[str, Any]
    done: subprocess.CompletedProcess[str]


@pytest.fixture(scope="module")
def plain(temporal_server: Server, tmp_path_factory: pytest.TempPathFactory) -> Plain:
    store, name = tmp_path_factory.mktemp("plain") / "runs.db", unique("plain")
    return Plain(store, name, *record(store, PROGRAM, temporal_server.address, name, "3", "apart"))


def test_the_workflows_of_a_recorded_worker_are_runs_of_their_own(plain: Plain) -> None:
    with open_store(str(plain.store)) as opened:
        assert sorted(opened.names()) == [f"temporal/{plain.name}", "worker"]
    read = recorded(plain.store, plain.name)
    (effect,) = read.effects
    assert [each["name"] for each in attempts(read, effect)] == ["beats#1", "beats#2"]
    assert read.reader.info.incomplete == 0
    replayed = lockstep.replay(f"temporal/{plain.name}", own.WORKFLOWS, store=str(plain.store))
    assert (replayed.identical, replayed.result) == (True, 2)


def test_a_recorded_worker_ends_as_it_does_by_itself(plain: Plain) -> None:
    assert plain.done.returncode == 3, plain.done.stderr
    assert plain.done.stderr.splitlines()[-1] == "2"
    assert (plain.told["faults"], plain.told["state"], plain.told["exit"]) == ([], "failed", 3)


def test_what_temporals_core_does_on_the_network_is_named_as_covered(plain: Plain) -> None:
    coverage = plain.told["coverage"]
    assert [entry for entry in coverage if entry["how"] == "not covered"] == []
    apart = [(entry["source"], entry["detail"]) for entry in coverage if entry["how"] == "in runs of its own"]
    assert apart == [("temporal client", "its workflows are runs of their own, temporal/<workflow id>")]


def test_a_replay_of_the_worker_itself_says_where_its_workflows_are(plain: Plain) -> None:
    replayed = run_python("-m", "lockstep", "replay", "--store", str(plain.store), "worker")
    assert replayed.returncode == 1
    said = replayed.stderr
    assert "LS210" in said and "its workflows are runs of their own, temporal/<workflow id>" in said
    assert "plain_worker.py" in said  # the line of the program, and none of ours


def test_a_worker_that_has_the_plugin_gets_no_second_one(temporal_server: Server, tmp_path: Path) -> None:
    store, name = tmp_path / "runs.db", unique("plain")
    program = tmp_path / "with_plugin.py"
    text = Path(PROGRAM).read_text()
    text = text.replace(
        "Client.connect(address)", "Client.connect(address, plugins=[LockstepPlugin(__file__ + '.db')])"
    )
    program.write_text(
        text.replace("import asyncio\n", "import asyncio\nfrom lockstep_temporal import LockstepPlugin\n")
    )
    told, done = record(store, str(program), temporal_server.address, name, "0")
    assert (done.returncode, told["faults"]) == (0, []), done.stderr
    assert "may run twice" not in done.stderr
    with open_store(str(store)) as opened:
        assert opened.names() == ["worker"]
    assert len(recorded(tmp_path / "with_plugin.py.db", name).effects) == 1


def test_a_program_that_is_a_client_only_is_told_what_nobody_records(temporal_server: Server, tmp_path: Path) -> None:
    program = tmp_path / "client_only.py"
    program.write_text(
        "import asyncio, time\nimport temporalio.worker\nfrom temporalio.client import Client\n"
        f"asyncio.run(Client.connect({temporal_server.address!r}))\ntime.sleep(0.3)\n"
    )
    told, done = record(tmp_path / "runs.db", str(program))
    assert done.returncode == 0, done.stderr
    assert [entry["source"] for entry in told["coverage"] if entry["how"] == "not covered"] == ["temporal client"]


def test_the_plugin_in_a_session_says_that_its_workflows_are_elsewhere(temporal_server: Server, tmp_path: Path) -> None:
    store = tmp_path / "runs.db"
    with lockstep.record("inside", store=str(store)) as session:
        ended = run(
            temporal_server, own.Beats.run, 2, plugins=[LockstepPlugin(store)],
            workflows=own.WORKFLOWS, activities=own.ACTIVITIES,
        )  # fmt: skip
    assert ended.result == 2
    coverage = session.report.coverage
    assert [entry.source for entry in coverage if entry.how == "not covered"] == []
    assert [entry.source for entry in coverage if entry.how == "in runs of its own"] == ["temporal client"]
    assert len(recorded(store, ended.workflow_id).effects) == 1
