"""Each kind of team does what it does without us, and is recorded."""

from __future__ import annotations

from typing import Any

import looking
import pytest
import teams

import lockstep_autogen
from lockstep.testing import Provider

# Who closes each step, where that is not who speaks: an orchestrator speaks with whom it has chosen, teams in teams
# have steps of their own, an agent that is used as a tool has none.
_STEPS = {
    "magentic": [
        "user", "MagenticOneOrchestrator, coder", "MagenticOneOrchestrator, surfer", "MagenticOneOrchestrator",
    ],
    "nested": ["user", "first", "second", "inner", "boss", "first", "second", "inner", "boss"],
    "society": ["user", "first", "second", "mind", "critic", "first", "second", "mind", "critic"],
    "agent_tool": ["user", "main", "main"],
    "graph": ["user", "drafter", "critic_a, critic_b", "joiner"],
    "single": ["user", "loner"],
}  # fmt: skip


@pytest.mark.parametrize("kind", teams.KINDS, ids=teams.labelled)
def test_a_recorded_team_does_as_it_did(kind: teams.Kind, provider: Provider, told: pytest.LogCaptureFixture) -> None:
    without = teams.run(kind.make(), kind.asked())
    requests, ran = provider.requests, list(teams.ran)
    teams.ran.clear()
    team = lockstep_autogen.attach(kind.make())
    result = teams.run(team, kind.asked())

    assert teams.spoke(kind.speakers, teams.speakers(result))
    assert result.stop_reason == without.stop_reason == kind.stop
    assert [type(message) for message in result.messages] == [type(message) for message in without.messages]
    assert provider.requests == 2 * requests == 2 * kind.requests
    assert sorted(teams.ran) == sorted(ran) == sorted(kind.tools)
    assert [record.getMessage() for record in told.records] == []
    with looking.run(f"autogen/{team.name}") as seen:
        assert seen.steps[0].kind == "input"
        named: list[Any] = _STEPS.get(kind.name) or kind.speakers.replace("user user", "user").split()
        if kind.name == "graph":
            assert seen.names in (named, ["user", "drafter", "critic_b, critic_a", "joiner"])
        elif kind.name not in ("team_tool",):
            assert seen.names == named
        assert sum(effect.kind == "model" for effect in seen.effects()) == kind.requests
        assert sorted(_ran(seen)) == sorted(kind.tools)
        assert [effect for effect in seen.effects() if effect.status != "ok"] == []
        assert seen.turns() == [("run_stream", "ok")]
        assert seen.faults() == []
    assert looking.runs() == {f"autogen/{team.name}": "complete"}


def _ran(seen: looking.Seen) -> list[str]:
    names = {"Inline": "code", "input": "user"}
    found = []
    for effect in seen.effects():
        if effect.kind in ("tool", "human") and effect.name != "approval":
            request: Any = seen.timeline.request(effect)
            name = names.get(effect.name, effect.name)
            found.append(f"{name} {request['arguments']['place']}" if name == "slowly" else name)
    return found
