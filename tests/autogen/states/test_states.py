"""The state of each step is all that AutoGen itself would have saved there."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
import teams

import lockstep_autogen
from lockstep.testing import Provider
from lockstep_autogen import canonical, saving, states


def _plain(saved: Any, team: Any) -> Any:
    """What a team saves, without what is drawn anew in each run."""
    found = canonical.state(canonical.inert(saved), (team._team_id,) if hasattr(team, "_team_id") else ())
    return _sorted(found)


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _sorted(value[name]) for name in sorted(value)}
    return [_sorted(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("kind", teams.KINDS, ids=teams.labelled)
def test_it_says_all_that_the_team_would_have_saved(kind: teams.Kind, provider: Provider) -> None:
    seen: list[tuple[Any, Any]] = []

    async def run() -> None:
        team: Any = lockstep_autogen.attach(kind.make())
        before = team._lockstep_root.seams.told.cut

        async def cut(moment: Any) -> Any:
            if moment.team is team:
                seen.append((await states.channels(team), _plain(await team.save_state(), team)))
            return await before(moment)

        team._lockstep_root.seams.told.cut = cut
        await teams.running(team, kind.asked())
        seen.append((await states.channels(team), _plain(await team.save_state(), team)))

    asyncio.run(run())
    assert len(seen) >= (1 if kind.make in (teams.single,) else 2)
    for channels, saved in seen:
        assert _plain(saving.saved(channels), None) == saved
