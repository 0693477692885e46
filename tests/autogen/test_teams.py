"""The teams of these tests do without us what their tables say."""

import asyncio

import pytest
import teams

from lockstep.testing import Provider


@pytest.mark.parametrize("kind", teams.KINDS, ids=teams.labelled)
def test_a_team_of_each_kind_runs_without_us(kind: teams.Kind, provider: Provider) -> None:
    result = teams.run(kind.make(), kind.asked())
    assert teams.spoke(kind.speakers, teams.speakers(result)), teams.speakers(result)
    assert result.stop_reason == kind.stop
    assert provider.requests == kind.requests
    assert tuple(sorted(teams.ran)) == tuple(sorted(kind.tools))


def test_models_of_a_streaming_team_speak_in_pieces(provider: Provider) -> None:
    events = asyncio.run(_all(teams.streaming()))
    assert "".join(teams.pieces(events)).startswith("say more")


def test_parallel_tools_end_in_another_order_than_they_began(provider: Provider) -> None:
    kind = teams.named("parallel")
    teams.run(kind.make(), kind.asked())
    assert tuple(teams.ran) == kind.tools


async def _all(team: teams.Team) -> list[object]:
    return [event async for event in team.run_stream(task="go")]
