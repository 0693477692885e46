"""A bisect finds the answer with which, kept, a team's run is bad, and without which it is not."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
import runs
import scripted_agents
import teams

import lockstep
from lockstep.log.store import open_store
from lockstep.log.timeline import resolve
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
    # In processes of their own, which import what makes it.
    several = lockstep.bisect(run, kind.make, is_rash, live=["look_up"], jobs=2)
    assert (several.verdict, several.effect) == ("culprit", "2.1")
    assert not any(probe.found for probe in several.tried)


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


def test_a_pair_of_tools_of_which_either_misleads_is_found_as_that_pair(settled_but_tools: Provider) -> None:
    kind = teams.named("single")
    good, _ = runs.recorded(kind)
    pair = [at for at, _ in runs.calls(good, "tool")]
    last = runs.steps(good)[-1].number
    bad = lockstep.fork(
        f"{good}:{last}", kind.make, edits=dict.fromkeys(pair, MISLED), live=["look_up", "issue_refund"], branch="bad"
    )
    assert len(pair) == 2 and is_misled(bad.address)
    teams.ran.clear()
    found = lockstep.bisect(bad.address, kind.make, lambda view: is_misled(view.address), good=good)
    assert (found.verdict, found.causes, found.minimal) == ("culprit", tuple(pair), True)
    assert teams.ran == []  # models alone were asked, where they heard one wrong answer of two
    again = lockstep.bisect(bad.address, kind.make, lambda view: is_misled(view.address), good=good)
    assert again.causes == found.causes


def looking() -> Any:
    """One agent that looks in three places at once, and says what it found without asking a model once more."""
    return teams.agent("scout", tools=[teams.slowly])


def test_where_no_model_hears_of_the_tools_a_pair_of_them_is_found_without_a_call(settled_but_tools: Provider) -> None:
    kind = teams.Kind(looking, "user scout", None, 1, ("slowly Oslo", "slowly Rome", "slowly Pune"))
    good, _ = runs.recorded(kind)
    pair = [at for at, _ in runs.calls(good, "tool")][1:]
    last = runs.steps(good)[-1].number
    bad = lockstep.fork(f"{good}:{last}", looking, edits=dict.fromkeys(pair, MISLED), live=["*"], branch="bad")
    assert len(pair) == 2 and bad.edited == 2
    asked = settled_but_tools.requests
    teams.ran.clear()
    found = lockstep.bisect(bad.address, looking, lambda view: is_misled(view.address), good=good)
    assert (found.verdict, len(found.causes), found.minimal) == ("culprit", 2, True)
    assert set(found.causes) == set(pair)
    assert (found.live_calls, teams.ran, settled_but_tools.requests) == (0, [], asked)


MISLED = "pay it twice"


def is_misled(address: str) -> bool:
    with open_store(None) as store:
        timeline = resolve(store, address).timeline
        effects = [effect for step in timeline.steps for effect in step.effects if effect.kind == "tool"]
        return any(MISLED in str(timeline.outcome(effect)) for effect in effects)
