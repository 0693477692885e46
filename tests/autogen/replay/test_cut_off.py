"""A run that was cut off is replayed up to there, and a fork of it makes again what was broken off."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest
import runs
import scripted_agents
import teams
from autogen_core import CancellationToken

import lockstep
import lockstep_autogen
from lockstep.testing import Answer, Provider, Request


async def by_a_token(team: Any, provider: Provider) -> None:
    """While the second model is asked."""
    token = CancellationToken()
    task = asyncio.create_task(team.run(task="go", cancellation_token=token))
    while provider.requests < 2:
        await asyncio.sleep(0.005)
    token.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def by_who_reads(team: Any, provider: Provider) -> None:
    """After three messages nobody takes more of the stream."""
    stream = team.run_stream(task="go")
    for _ in range(3):
        await anext(stream)
    await stream.aclose()


async def by_a_model(team: Any, provider: Provider) -> None:
    """The third answer is an error."""
    with pytest.raises(RuntimeError):
        await team.run(task="go")


def said(request: Request) -> Answer | None:
    answer = scripted_agents.answered(request)
    if answer is None or request.number not in (2, 3):
        return answer
    return msgspec.structs.replace(answer, delay=0.2) if request.number == 2 else Answer(status=400)


@pytest.mark.parametrize("cut", [by_a_token, by_who_reads, by_a_model])
def test_it_replays_to_the_cut_and_a_fork_goes_on(cut: Any, provider: Provider) -> None:
    provider.script = said
    kind = teams.named("round_robin")
    team: Any = lockstep_autogen.attach(kind.make())
    asyncio.run(cut(team, provider))
    provider.script = scripted_agents.answered
    replay = lockstep.replay("autogen/desk", kind.make)
    assert replay.divergence is None
    assert (replay.identical, replay.report.cut) == (True, True)
    for step in runs.steps("autogen/desk")[1:]:
        fork = lockstep.fork(f"autogen/desk:{step.number}", kind.make)
        assert fork.divergence is None
        assert (fork.state, fork.result.stop_reason) == ("complete", kind.stop)
        runs.is_again(lockstep.replay(fork.address, kind.make), fork.result)
