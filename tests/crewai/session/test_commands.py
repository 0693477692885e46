"""`lockstep record -- python crew.py`: no line changes, and a replay asks nobody and leaves the home folder alone."""

from __future__ import annotations

import sys

import pytest
from sessions import NOWHERE, SWITCHES, Machine, answer

from lockstep.debugger import listing
from lockstep.log.store import open_store
from lockstep.log.timeline import resolve
from lockstep.testing import Provider

TASKS = ["find", "outline", "write"]


def _replays(machine: Machine, name: str, recorded: str, **variables: str) -> None:
    kept = machine.kept()
    replayed = machine.lockstep("replay", name, **NOWHERE, **variables)
    assert replayed.returncode == 0, replayed.stderr
    assert "identical" in replayed.stderr and "0 live calls" in replayed.stderr
    assert replayed.stdout == recorded
    assert machine.kept() == kept


@pytest.mark.timeout(400)
def test_a_crew_is_a_lane_of_the_run_of_its_program(machine: Machine) -> None:
    """In a home folder that was never used, with the telemetry that CrewAI has when nobody switches it off."""
    with Provider(answer) as provider:
        recorded = machine.record("research", **provider.environ)
    assert recorded.returncode == 0, recorded.stderr
    assert "not covered: nothing" in recorded.stderr and "incomplete" not in recorded.stderr
    with open_store(None) as store:
        whole = listing.log("research", resolve(store, "research").timeline)
        lane = listing.log("research/research", resolve(store, "research/research").timeline)
    kinds = [effect.kind for step in whole.steps for effect in step.effects]
    assert (kinds.count("model"), kinds.count("tool")) == (4, 1)
    assert [step.name for step in lane.steps if step.kind != "end"] == ["input", *TASKS]
    _replays(machine, "research", recorded.stdout)


@pytest.mark.timeout(400)
def test_a_flow_with_a_router_and_rows_of_its_states_replays_and_takes_edits(machine: Machine) -> None:
    """An edited answer reaches the flow, and who listens."""
    with Provider(answer) as provider:
        recorded = machine.record("counting", **provider.environ, **SWITCHES)
    assert recorded.returncode == 0, recorded.stderr
    with open_store(None) as store:
        lane = listing.log("counting/Counting", resolve(store, "counting/Counting").timeline)
    assert [step.name for step in lane.steps if step.kind != "end"] == ["input", "first", "which", "grow"]
    _replays(machine, "counting", recorded.stdout, **SWITCHES)
    forked = machine.lockstep("fork", "counting:2", "--set", '2.1:text="another"', **NOWHERE, **SWITCHES)
    assert forked.returncode == 0, forked.stderr
    assert forked.stdout.splitlines()[-2:] == ["11 another", "11 ['another']"]


@pytest.mark.timeout(400)
def test_tasks_and_inputs_at_once_replay_with_what_listeners_heard(machine: Machine) -> None:
    with Provider(answer) as provider:
        recorded = machine.record("sums", **provider.environ, **SWITCHES)
    assert recorded.returncode == 0, recorded.stderr
    _replays(machine, "sums", recorded.stdout, **SWITCHES)


@pytest.mark.timeout(400)
def test_crewai_run_is_followed_to_the_crew(machine: Machine) -> None:
    """CrewAI's own command starts the project's script by `uv run`, in another process."""
    variables = {**machine.project("research"), **SWITCHES}
    with Provider(answer) as provider:
        recorded = machine.lockstep(
            "record", "--run", "project", "--", "crewai", "run", **provider.environ, **variables
        )
    assert recorded.returncode == 0, recorded.stderr
    with open_store(None) as store:
        lane = listing.log("project", resolve(store, "project").timeline)
    assert [step.name for step in lane.steps if step.name in ("find", "outline", "write")] == [
        "find",
        "outline",
        "write",
    ]
    kept = machine.kept()
    replayed = machine.lockstep("replay", "project", **{**variables, **NOWHERE})
    assert replayed.returncode == 0, replayed.stderr
    assert "0 live calls" in replayed.stderr and machine.kept() == kept


def test_without_lockstep_nothing_attaches(machine: Machine) -> None:
    program = "import sys, crewai; print(any(name.startswith('lockstep') for name in sys.modules))"
    ran = machine.run(sys.executable, "-c", program, **SWITCHES)
    assert ran.stdout == "False\n", ran.stderr
