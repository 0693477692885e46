"""Where a command of Lockstep's imports CrewAI, for the target of a crew's own run, it leaves no trace of that."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from sessions import NOWHERE, PROGRAMS, SWITCHES, Machine, answer

from lockstep.testing import Provider

WRAPPED = """
import lockstep_crewai, research
print(lockstep_crewai.wrap(research.crew).kickoff(inputs={"topic": "tea"}).raw)
"""
FACTORY = """
import os, research
def make():
    told = {name: os.environ.get(name) for name in ("CREWAI_DISABLE_TELEMETRY", "CREWAI_TRACING_ENABLED")}
    assert told == {"CREWAI_DISABLE_TELEMETRY": "true", "CREWAI_TRACING_ENABLED": "false"}, told
    return research.crew
"""


@pytest.mark.timeout(300)
def test_a_replay_of_a_crews_own_run_sends_nothing_and_leaves_the_home_folder_empty(
    machine: Machine, tmp_path: Path
) -> None:
    for name, text in (("wrapped.py", WRAPPED), ("factory.py", FACTORY)):
        (machine.work / name).write_text(text)
    (machine.work / "research.py").write_text((PROGRAMS / "research.py").read_text())
    with Provider(answer) as provider:
        recorded = machine.run(sys.executable, "wrapped.py", **provider.environ, **SWITCHES)
    assert recorded.returncode == 0, recorded.stderr
    assert machine.kept()
    machine.home = tmp_path / "another home"
    machine.home.mkdir()
    replayed = machine.lockstep("replay", "crewai/research", "--target", "factory:make", **NOWHERE)
    assert replayed.returncode == 0, replayed.stderr
    assert "identical" in replayed.stderr
    assert [path for path in machine.home.rglob("*") if path.is_file()] == []
