"""A team stops at a step, and goes on from there as if nothing had been: in the program itself, and in a fork."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import runs
import scripted_agents
import teams

import lockstep
import lockstep_autogen
from lockstep.errors import TargetError
from lockstep.testing import Provider

_GO_ON = ["round_robin", "capped", "selector", "swarm", "looping", "nested"]


@pytest.fixture
def settled(provider: Provider) -> Provider:
    """Equal requests get equal answers."""
    provider.script = scripted_agents.settled
    return provider


async def in_two(kind: teams.Kind, *places: int | str) -> list[Any]:
    team: Any = lockstep_autogen.stop_at(lockstep_autogen.attach(kind.make(), run="stopped"), *places)
    first = await teams.running(team, kind.asked())
    return [first, await teams.running(team)]


@pytest.mark.parametrize("name", _GO_ON)
def test_a_team_that_was_stopped_goes_on_as_if_it_had_not_been(name: str, settled: Provider) -> None:
    kind = teams.named(name)
    whole = teams.run(kind.make(), kind.asked())
    teams.ran.clear()
    first, second = asyncio.run(in_two(kind, 2))
    assert first.stop_reason.startswith("Stopped by Lockstep after step")
    assert second.stop_reason == whole.stop_reason
    assert teams.messages(first) + teams.messages(second) == teams.messages(whole)
    replay = lockstep.replay("autogen/stopped", kind.make)
    assert replay.identical, replay.divergence
    assert [teams.messages(one) for one in replay.results] == [teams.messages(first), teams.messages(second)]


def test_a_graph_stops_when_all_that_speak_at_once_have_spoken(settled: Provider) -> None:
    kind = teams.named("graph")
    first, second = asyncio.run(in_two(kind, 2))
    assert teams.spoke(kind.speakers, f"{teams.speakers(first)} {teams.speakers(second)}")
    assert (teams.speakers(second), second.stop_reason) == ("joiner", kind.stop)
    assert lockstep.replay("autogen/stopped", kind.make).identical


def test_it_stops_whenever_an_agent_has_spoken(settled: Provider) -> None:
    kind = teams.named("round_robin")

    async def run() -> list[Any]:
        team: Any = lockstep_autogen.stop_at(lockstep_autogen.attach(kind.make()), "critic")
        results = [await teams.running(team, "go"), await teams.running(team)]
        lockstep_autogen.stop_at(team)
        return results

    first, second = asyncio.run(run())
    assert teams.speakers(first) == "user writer critic"
    assert (teams.speakers(second), second.stop_reason) == ("writer critic", kind.stop)


def test_a_fork_stops_where_it_is_asked_to_and_goes_on_in_another(provider: Provider) -> None:
    kind = teams.named("round_robin")
    run, _ = runs.recorded(kind)
    stopped = lockstep.fork(f"{run}:1", kind.make, stop=2)
    assert (stopped.state, stopped.live) == ("complete", 1)
    assert stopped.result.stop_reason.startswith("Stopped by Lockstep after step 2")
    assert lockstep.replay(stopped.address, kind.make).identical
    on = lockstep.fork(f"{stopped.address}:2", kind.make)
    assert (on.live, on.result.stop_reason) == (2, kind.stop)
    assert teams.messages(on.result)[: len(stopped.result.messages)] == teams.messages(stopped.result)
    assert lockstep.replay(on.address, kind.make).identical


def test_the_command_line_stops_a_fork(provider: Provider, tmp_path: Path) -> None:
    kind = teams.named("round_robin")
    run, _ = runs.recorded(kind)
    done = subprocess.run(
        [sys.executable, "-m", "lockstep", "fork", f"{run}:1", "--target", "teams:round_robin", "--break", "critic"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(teams.__file__).parent), *sys.path])},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert runs.steps(f"{run}@fork")[-1].number == 2


def test_the_command_line_stops_the_teams_of_a_program_and_its_replay(provider: Provider, tmp_path: Path) -> None:
    Path(tmp_path, "desk.py").write_text(
        "import teams, lockstep_autogen\n"
        "print(teams.run(lockstep_autogen.attach(teams.round_robin()), 'go').stop_reason)\n"
    )
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(teams.__file__).parent), *sys.path])}
    for arguments in (["record", "--run", "desk", "--break", "2", "--", sys.executable, "desk.py"], ["replay", "desk"]):
        done = subprocess.run(
            [sys.executable, "-m", "lockstep", *arguments], cwd=tmp_path, env=environ, capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith("Stopped by Lockstep after step 2")


@pytest.mark.parametrize(
    ("make", "places", "why"),
    [
        (teams.magentic, (2,), "plans anew"),
        (teams.single, (1,), "without a team"),
        (teams.round_robin, (1.5,), "number of a step"),
    ],
)
def test_what_cannot_be_stopped_is_refused(make: Any, places: Any, why: str, provider: Provider) -> None:
    with pytest.raises(TargetError, match=why):
        lockstep_autogen.stop_at(lockstep_autogen.attach(make()), *places)


def test_a_team_that_is_not_attached_is_refused(provider: Provider) -> None:
    with pytest.raises(TargetError, match="attach"):
        lockstep_autogen.stop_at(teams.round_robin(), 1)
