"""`--target module:name`: runs that were recorded in code are replayed and forked from the command line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.warm import command

AGENT = """
import random, sys
import lockstep

@lockstep.tool(effect="read")
def look(number):
    return random.SystemRandom().randrange(10**9)

def main():
    found = [look(number) for number in range(3)]
    print("saw", *found)
    return found

async def later():
    return main()

count = 3

if __name__ == "__main__":
    with lockstep.record("agent"):
        main()
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "agent.py").write_text(AGENT)
    subprocess.run([sys.executable, "agent.py"], cwd=tmp_path, check=True, stdout=subprocess.PIPE)
    return tmp_path


def lockstep(place: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return command.run(*words, cwd=place)


@pytest.mark.parametrize("name", ["main", "later"])
def test_a_run_recorded_in_code_replays_by_its_target(place: Path, name: str) -> None:
    done = lockstep(place, "replay", "agent", "--target", f"agent:{name}")
    assert (done.returncode, done.stderr.splitlines()[0][:11]) == (0, "✓ identical"), done.stderr
    assert done.stdout.startswith("saw ")


def test_a_fork_of_a_target_gets_its_edit_and_its_branch_replays(place: Path) -> None:
    forked = lockstep(place, "fork", "agent:2", "--target", "agent:main", "--set", "2=5", "--branch", "try", "--json")
    assert forked.returncode == 0, forked.stderr
    told = json.loads(forked.stdout)
    assert (told["address"], told["state"], told["live"], told["edited"]) == ("agent@try", "complete", 1, 1)
    printed = forked.stderr.splitlines()[0].split()
    assert printed[:1] == ["saw"]
    assert printed[2] == "5"
    replayed = lockstep(place, "replay", "agent@try", "--target", "agent:main")
    assert replayed.returncode == 0, replayed.stderr
    assert replayed.stdout.split() == printed


@pytest.mark.parametrize(
    ("target", "code"),
    [("agent", "LS401"), ("nowhere:main", "LS401"), ("agent:nothing", "LS401"), ("agent:count", "LS402")],
)
def test_a_target_that_is_none_is_told_so(place: Path, target: str, code: str) -> None:
    done = lockstep(place, "replay", "agent", "--target", target)
    assert (done.returncode, done.stdout) == (125, "")
    assert code in done.stderr
