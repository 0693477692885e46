"""Replays of a part of a run, and of one that was broken off."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from typing import Any

import crew_runs
import crews
import pytest
import recorded_crews as of

import lockstep
import lockstep_crewai
from lockstep.errors import TargetError
from lockstep.testing import Provider


def test_up_to_a_step_and_of_one_turn(provider: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
    crew = lockstep_crewai.wrap(crews.sequential())
    first, second = crew.kickoff({"order": 7}), crew.kickoff({"order": 8})
    crew_runs.silence(provider, monkeypatch)

    part = lockstep.replay("crewai/desk", crews.sequential, until=2)
    assert (part.report.cut, part.report.steps, part.divergence) == (True, 3, None)
    every = lockstep.replay("crewai/desk", crews.sequential)
    assert every.identical
    assert [each.raw for each in every.results] == [first.raw, second.raw]
    one = lockstep.replay("crewai/desk", crews.sequential, turn=1)
    assert one.identical
    assert one.result.raw == first.raw
    with pytest.raises(TargetError, match="has no turn 3: it has 2"):
        lockstep.replay("crewai/desk", crews.sequential, turn=3)
    with pytest.raises(TargetError, match="has no step 9: its last is 7"):
        lockstep.replay("crewai/desk", crews.sequential, until=9)
    assert crews.ran == []


def test_one_that_was_broken_off_is_replayed_up_to_there(provider: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
    crew = crews.sequential()
    crew.tasks[1].callback = _interrupt
    crew = lockstep_crewai.wrap(crew)
    with pytest.raises(KeyboardInterrupt):
        crew.kickoff(crews.INPUTS)
    assert of.steps("crewai/desk") == ["desk", "desk/research", "desk/letter"]
    crew_runs.silence(provider, monkeypatch)

    part = lockstep.replay("crewai/desk", crews.sequential)
    assert (part.report.cut, part.report.steps, part.report.difference) == (True, 3, None)
    assert crews.ran == []

    def other() -> Any:
        crew = crews.sequential()
        crew.agents[1].backstory = "You are another."
        return crew

    assert lockstep.replay("crewai/desk", other).report.difference is not None


def test_one_that_was_killed_in_a_model_s_call_stops_there(provider: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
    """In two tasks at once, of which one has been answered."""
    program = """
import os, threading, time
import crews, lockstep_crewai
crew = lockstep_crewai.wrap(crews.async_tasks())
crew.tasks[0].callback = lambda output: (time.sleep(0.5), os._exit(9))
crew.kickoff(crews.INPUTS)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}, check=False
    )
    assert done.returncode == 9
    assert "at-once/research" in of.steps("crewai/at-once")
    crew_runs.silence(provider, monkeypatch)
    part = lockstep.replay("crewai/at-once", crews.async_tasks)
    assert (part.report.cut, part.report.difference) == (True, None)
    assert crews.ran == []


def _interrupt(*args: Any) -> Any:
    raise KeyboardInterrupt


def test_under_a_running_loop(provider: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
    result = crews.akickoff(lockstep_crewai.wrap(crews.sequential()))
    crew_runs.silence(provider, monkeypatch)

    async def both() -> Any:
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                ticks += 1
                await asyncio.sleep(0.01)

        ticking = asyncio.create_task(tick())
        replay = await lockstep.areplay("crewai/desk", crews.sequential)
        ticking.cancel()
        return replay, ticks

    replay, ticks = asyncio.run(both())
    assert replay.identical
    assert replay.result.raw == result.raw
    assert ticks > 3
