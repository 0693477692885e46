"""Many forks of a command from one start of its interpreter."""

import os
import signal
import sys
from pathlib import Path

import pytest
from tests.warm import command

from lockstep.debugger.fork import fork
from lockstep.launch.nursery import Nursery

AGENT = """
import os, sys
import lockstep

@lockstep.tool(effect="read")
def look(number):
    with open(os.environ["MADE"], "a") as file:
        print(number, os.getpid(), os.getppid(), sys.argv[1:], file=file)
    if "END" in os.environ:
        os.kill(os.getpid(), int(os.environ["END"]))
    return {"number": number, "pid": os.getpid()}

for number in range(4):
    print(look(number)["number"])
"""


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A store with a run of the agent."""
    monkeypatch.setenv("MADE", str(tmp_path / "made"))
    (tmp_path / "agent.py").write_text(AGENT)
    path = tmp_path / "store.db"
    words = ("record", "--store", str(path), "--run", "refund", "--", sys.executable, "agent.py", "a word")
    assert command.run(*words, cwd=tmp_path).returncode == 0
    (tmp_path / "made").unlink()
    return str(path)


def calls(tmp_path: Path) -> list[list[str]]:
    return [line.split(maxsplit=3) for line in (tmp_path / "made").read_text().splitlines()]


def test_each_fork_is_a_process_of_its_own_with_the_commands_arguments(store: str, tmp_path: Path) -> None:
    with Nursery() as nursery, open(os.devnull, "wb") as nowhere:
        done = [
            fork(store, f"refund:{step}", stdout=nowhere.fileno(), start=nursery.run, branch=f"at-{step}")
            for step in (3, 0, 2)
        ]
    assert [(one.state, one.exit, one.live) for one in done] == [
        ("complete", 0, 1), ("complete", 0, 4), ("complete", 0, 2),
    ]  # fmt: skip
    made = calls(tmp_path)
    assert [call[0] for call in made] == ["3", "0", "1", "2", "3", "2", "3"]
    assert {call[3] for call in made} == {"['a word']"}
    assert len({call[1] for call in made}) == 3 and len({call[2] for call in made}) == 1


def test_how_a_fork_ended_is_told(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("END", str(int(signal.SIGKILL)))
    with Nursery() as nursery, open(os.devnull, "wb") as nowhere:
        done = fork(store, "refund:3", stdout=nowhere.fileno(), start=nursery.run)
    assert (done.state, done.exit) == ("interrupted", -signal.SIGKILL)


def test_a_nursery_that_was_not_needed_never_runs_the_program(store: str, tmp_path: Path) -> None:
    with Nursery() as nursery:
        nursery.begin([sys.executable, str(tmp_path / "agent.py")], "fork", store, "refund", branch="main")
    assert not (tmp_path / "made").exists()


def test_where_somebody_ended_it_forks_are_started_by_themselves(store: str, tmp_path: Path) -> None:
    with Nursery() as nursery, open(os.devnull, "wb") as nowhere:
        fork(store, "refund:3", stdout=nowhere.fileno(), start=nursery.run)
        (parent,) = {int(call[2]) for call in calls(tmp_path)}
        os.kill(parent, signal.SIGKILL)
        done = fork(store, "refund:3", stdout=nowhere.fileno(), start=nursery.run)
    assert (done.state, done.live) == ("complete", 1)
    assert [call[2] for call in calls(tmp_path)][1] == str(os.getpid())
