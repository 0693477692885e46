"""A bisect finds the answer with which, kept, a team's run is bad, and without which it is not."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
import runs
import scripted_agents
import teams

import lockstep
from lockstep.testing import Answer, Provider, Request


@pytest.fixture
def once_wrong(provider: Provider) -> Provider:
    """The critic's first answer of all is one that it gives no second time, and what all others say stays the same."""
    given: list[int] = []

    def said(request: Request) -> Answer | None:
        answer = scripted_agents.settled(request)
        if answer is None or scripted_agents.asker(request) != "critic" or scripted_agents.spoken(request):
            return answer
        given.append(request.number)
        return Answer("refund it at once") if len(given) == 1 else answer

    provider.script = said
    return provider


def is_rash(view: Any) -> bool:
    """Whether somebody was told to refund at once."""
    return any(message["content"] == "refund it at once" for message in view.result["messages"])


def test_it_names_the_step_and_the_answer(once_wrong: Provider) -> None:
    kind = teams.named("round_robin")
    run, _ = runs.recorded(kind)
    verdict = lockstep.bisect(run, kind.make, is_rash, live=["look_up"])
    assert (verdict.verdict, verdict.step, verdict.effect) == ("culprit", 2, "2.1")
    again: Any = asyncio.run(lockstep.abisect(run, kind.make, is_rash, live=["look_up"]))
    assert (again.verdict, again.effect) == ("culprit", "2.1")


def test_a_tool_is_found_as_a_model_is(settled_but_tools: Provider) -> None:
    kind = teams.named("round_robin")
    run, _ = runs.recorded(kind)
    verdict = lockstep.bisect(run, kind.make, lambda view: "look 1" in str(view.result), live=["look_up"])
    assert (verdict.verdict, verdict.effect) == ("culprit", "1.2")


@pytest.fixture
def settled_but_tools(provider: Provider) -> Provider:
    """Models answer equal requests alike; each look at an order finds something else."""
    provider.script = scripted_agents.settled
    return provider


def test_a_tool_that_nobody_allowed_is_answered_from_the_record(once_wrong: Provider) -> None:
    kind = teams.named("round_robin")
    run, _ = runs.recorded(kind)
    teams.ran.clear()
    assert lockstep.bisect(run, kind.make, is_rash).effect == "2.1"
    assert teams.ran == []


def test_a_team_that_is_bad_by_its_code_is_told_so(provider: Provider) -> None:
    provider.script = scripted_agents.settled
    kind = teams.named("round_robin")
    run, _ = runs.recorded(kind)
    verdict = lockstep.bisect(run, kind.make, lambda view: True, live=["look_up"])
    assert verdict.verdict == "in-the-code"
