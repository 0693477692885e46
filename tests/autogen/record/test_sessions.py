"""A team while a session is on: a lane of its run, with steps of its own."""

from __future__ import annotations

import asyncio
from typing import Any

import looking
import pytest
import teams

import lockstep
import lockstep_autogen
from lockstep.log.store import open_store
from lockstep.log.timeline import Timeline, resolve
from lockstep.testing import Provider


@pytest.mark.parametrize("name", ["round_robin", "graph", "streaming", "nested", "agent_tool", "parallel"])
def test_a_team_in_a_session_replays_identically(name: str, provider: Provider) -> None:
    kind = teams.named(name)

    def program() -> Any:
        team = lockstep_autogen.attach(kind.make())
        return [
            (message["source"], message.get("content")) for message in teams.messages(teams.run(team, kind.asked()))
        ]

    with lockstep.record("session"):
        recorded = program()
    assert looking.runs() == {"session": "complete"}
    requests, ran = provider.requests, list(teams.ran)
    provider.stop()
    replay = lockstep.replay("session", program)
    assert replay.identical, replay.divergence
    assert replay.result == recorded
    assert provider.requests == requests == kind.requests and teams.ran == ran


def test_its_steps_are_counted_by_themselves_and_its_calls_are_in_its_lane(provider: Provider) -> None:
    with lockstep.record("session"):
        teams.run(lockstep_autogen.attach(teams.round_robin()), "refund order 7")
    with open_store(None) as store:
        place = resolve(store, "session/desk:3")
        timeline: Timeline = place.timeline
        assert [step.name for step in timeline.steps] == ["user", "writer", "critic", "writer", "critic"]
        assert [(effect.kind, effect.name) for effect in timeline.step(1).effects] == [
            ("model", "gpt-4o-2024-08-06"), ("tool", "look_up"),
        ]  # fmt: skip
        model = timeline.step(1).effects[0]
        assert [child.kind for child in model.children] == ["model"]  # what core has recorded of its request


def test_a_team_that_was_attached_before_the_session_goes_on_in_its_own_run_after_it(provider: Provider) -> None:
    team = lockstep_autogen.attach(teams.capped())

    async def run() -> None:
        await team.run(task="first")
        with lockstep.record("session"):
            await team.run(task="second")
        await team.run(task="third")

    asyncio.run(run())
    assert looking.runs() == {"autogen/capped": "complete", "session": "complete"}
    with looking.run("autogen/capped") as seen:
        assert seen.turns() == [("run", "ok"), ("run", "ok")]


def test_a_team_that_says_something_else_differs_at_its_step(provider: Provider) -> None:
    tasks = ["refund order 7", "refund order 8"]

    def program() -> Any:
        return teams.run(lockstep_autogen.attach(teams.capped()), tasks[0]).stop_reason

    with lockstep.record("session"):
        program()
    tasks.reverse()
    replay = lockstep.replay("session", program)
    assert replay.divergence is not None and not replay.identical
    assert "messages.value[0].content" in replay.divergence
    assert "refund order 8" in replay.divergence
