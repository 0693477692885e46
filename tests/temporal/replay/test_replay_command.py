"""`lockstep replay` of a workflow's run: a module as the target, exit codes, JSON, and a debugger in the workflow."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import drifting_workflows as drifting
import one_workflow
import pytest
from scripted_workflow import scripted

from lockstep.cli.app import app

HERE = Path(__file__).parent
RUN = "temporal/order%2F7"

CHANGED = """
from datetime import timedelta
from temporalio import workflow

@workflow.defn
class Greets:
    @workflow.run
    async def run(self, name: str) -> str:
        said = await workflow.execute_activity("greet", name, start_to_close_timeout=timedelta(seconds=6))
        return said
"""

# breakpoint() is let through the sandbox by versions that have a debugger of their own.
DEBUGGED = """
from datetime import timedelta
from importlib.util import find_spec
from temporalio import workflow

@workflow.defn(sandboxed=find_spec("temporalio.worker._debugger") is not None)
class Greets:
    @workflow.run
    async def run(self, name: str) -> str:
        said = await workflow.execute_activity("greet", name, start_to_close_timeout=timedelta(seconds=5))
        breakpoint()
        return f"{said}, said at {workflow.now():%H:%M}"
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    with scripted(tmp_path / "store.db", one_workflow.Greets, "order/7") as script:
        script.start("Ada")
        script.resolve(1, "Hello Ada")
    return tmp_path


class Said(NamedTuple):
    """How a command went, as `subprocess` tells it."""

    returncode: Any
    stdout: str
    stderr: str


type Replay = Callable[..., Said]


@pytest.fixture
def replay(place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Replay:
    """`lockstep replay`, without a process for each."""
    monkeypatch.syspath_prepend(str(place))
    return _command("replay", place, capsys)


@pytest.fixture
def verify(place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Replay:
    """`lockstep verify` likewise."""
    monkeypatch.syspath_prepend(str(place))
    return _command("verify", place, capsys)


def _command(verb: str, place: Path, capsys: pytest.CaptureFixture[str]) -> Replay:
    def run(*words: str, run: str = RUN) -> Said:
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            app([verb, run, "--store", str(place / "store.db"), *words], standalone_mode=False)
        told = capsys.readouterr()
        return Said(ended.value.code, told.out, told.err)

    return run


def command(place: Path, *words: str, said: str = "") -> subprocess.CompletedProcess[str]:
    """The same as a process of its own."""
    path = os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])
    return subprocess.run(
        [sys.executable, "-m", "lockstep", *words], cwd=place, capture_output=True, text=True, check=False,
        input=said, env={**os.environ, "PYTHONPATH": path},
    )  # fmt: skip


def test_a_module_is_the_target(place: Path) -> None:
    done = command(place, "replay", RUN, "--target", "one_workflow")
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.startswith("✓ identical   2 steps  digest ")


def test_other_code_ends_with_one_and_says_where(place: Path, replay: Replay) -> None:
    (place / "changed.py").write_text(CHANGED)
    done = replay("--target", "changed:Greets")
    assert done.returncode == 1
    assert "✗ diverged at step 0  LS101 activity: start_to_close_timeout differs" in done.stderr
    assert "changed.py:9 in Greets.run" in done.stderr
    assert f"lockstep log {RUN}" in done.stderr
    told = json.loads(replay("--target", "changed", "--json").stdout)
    assert not told["identical"]
    divergence = told["divergence"]
    assert (divergence["expected"], divergence["actual"]) == ('"5s"', '"6s"')
    ((was, now),) = divergence["beside"]
    assert was.startswith('activity greet("Ada")')
    assert now.startswith('activity greet("Ada")')


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["--target", "not_there"], 125, "LS401 not_there cannot be imported"),
        (["--target", "one_workflow:greet"], 125, "its target is a workflow class, list of workflows"),
        (["--target", "drifting_workflows:Agent"], 125, "the recorded workflow is Greets, and the target has no work"),
        (["--target", "drifting_workflows"], 125, "More than one workflow named Drifts"),
        ([], 125, "say what to run by --target MODULE:NAME"),
        (["--target", "one_workflow", "--depth", "node"], 125, "activities never run in a replay"),
        (["--target", "one_workflow", "--turn", "2"], 125, "has no turn 2: it has 1"),
        (["--target", "one_workflow", "--until", "2"], 125, "has no step 2: its last is 1"),
    ],
)
def test_what_cannot_begin_is_no_divergence(replay: Replay, words: list[str], code: int, told: str) -> None:
    done = replay(*words)
    assert (done.returncode, done.stdout) == (code, "")
    assert told in done.stderr
    assert "Traceback" not in done.stderr


def test_a_run_of_the_interceptor_says_how_to_get_one_that_replays(place: Path, replay: Replay) -> None:
    with scripted(place / "store.db", one_workflow.Greets, "7", origin="interceptor") as script:
        script.start("Ada")
    done = replay("--target", "one_workflow", run="temporal/7")
    assert done.returncode == 125
    assert "LockstepInterceptor alone" in done.stderr
    assert "lockstep temporal pull --workflow-id 7" in done.stderr


def test_drift_is_named(place: Path, replay: Replay) -> None:
    with scripted(place / "store.db", drifting.Drifts, "7") as script:
        script.start(4711)
        script.resolve(1, "found")
    done = replay("--target", "drifting_workflows:Drifts", run="temporal/7")
    assert done.returncode == 0
    assert "  input drift, 2 times: activity look_up  arguments[0].asked[].id: the code draws it anew" in done.stderr


def test_verify_checks_the_record_and_says_how_to_replay_it(verify: Replay) -> None:
    done = verify()
    assert done.returncode == 0
    assert "✓ consistent" in done.stderr
    assert f"lockstep replay {RUN} --target MODULE:NAME" in done.stderr


def test_verify_replays_a_target_as_often_as_it_is_told(place: Path, verify: Replay) -> None:
    done = verify("--target", "one_workflow", "--times", "3")
    assert done.returncode == 0
    assert "✓ identical   3 replays" in done.stderr
    (place / "changed.py").write_text(CHANGED)
    changed = verify("--target", "changed", "--times", "3")
    assert changed.returncode == 1
    assert "replay 1 of 3 was not the same run" in changed.stderr
    assert f"lockstep replay {RUN} --target changed" in changed.stderr


def test_a_debugger_stops_in_the_workflow(place: Path) -> None:
    (place / "debugged.py").write_text(DEBUGGED)
    done = command(place, "replay", RUN, "--target", "debugged", said="p said, name\nc\n")
    assert "('Hello Ada', 'Ada')" in done.stdout
    assert done.returncode == 0, done.stderr
