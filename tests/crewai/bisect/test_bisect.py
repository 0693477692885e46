"""A bisect finds the answer with which, kept, a crew's run is bad, and without which it is not."""

from __future__ import annotations

import asyncio
import math
import re
from typing import Any

import branches
import crew_runs as runs
import crew_script
import crews
import pytest

import lockstep
from lockstep.testing import Answer, Provider, Request


@pytest.fixture
def once_wrong(provider: Provider) -> Provider:
    """The writer's first answer of all is one that it gives no second time, and what all others say stays the same."""
    given: list[int] = []

    def said(request: Request) -> Answer | None:
        answer = crew_script.settled(request)
        if answer is None or crew_script.asker(request) != "writer":
            return answer
        given.append(request.number)
        return Answer("refund it at once") if len(given) == 1 else answer

    provider.script = said
    return provider


@pytest.fixture
def settled_but_tools(provider: Provider) -> Provider:
    """Models answer equal requests alike; each look at an order finds something else."""
    provider.script = crew_script.settled
    return provider


_FIRST = re.compile(r"look 1\b")  # what only the first look of all finds


def outputs(view: Any) -> str:
    """What the steps of a run came to, as one text."""
    return str(runs.timeline(view.address, lambda timeline: _read(timeline)))


def _read(timeline: Any) -> list[Any]:
    from lockstep.log import checkpoints

    states = checkpoints.States(timeline.reader)
    heads = timeline.reader.heads(timeline.stream.id)
    return [states.at(event.pos).get("output") for _, event in heads if event.kind.name == "STEP"]


def is_rash(view: Any) -> bool:
    return "refund it at once" in outputs(view)


def test_it_names_the_step_and_the_answer(once_wrong: Provider) -> None:
    kind = crews.named("sequential")
    run, _ = runs.recorded(kind)
    verdict = lockstep.bisect(run, kind.make, is_rash, live=["look_up"])
    assert (verdict.verdict, verdict.step, verdict.effect) == ("culprit", 2, "2.1")
    again: Any = asyncio.run(lockstep.abisect(run, kind.make, is_rash, live=["look_up"]))
    assert (again.verdict, again.effect) == ("culprit", "2.1")


def test_several_probes_at_once_are_made_by_processes_that_import_the_factory(once_wrong: Provider) -> None:
    kind = crews.named("sequential")
    run, _ = runs.recorded(kind)
    verdict = lockstep.bisect(run, kind.make, is_rash, live=["look_up"], jobs=2)
    assert (verdict.verdict, verdict.effect) == ("culprit", "2.1")


@pytest.mark.parametrize(
    "name", ["sequential", "async_tasks", "sequential-akickoff", "alone", "flow", "paying-for_each_async"]
)
def test_a_tool_fault_is_found_in_few_probes(name: str, settled_but_tools: Provider) -> None:
    kind = crews.named(name)
    run, _ = runs.recorded(kind)
    at = next(at for at, effect in runs.calls(run, "tool") if _FIRST.search(str(branches.outcome(run, effect))))
    verdict = lockstep.bisect(run, kind.make, lambda view: bool(_FIRST.search(_tools(view))), live=["*"])
    assert (verdict.verdict, verdict.effect) == ("culprit", at)
    count = len(runs.calls(run, "model")) + len(runs.calls(run, "tool"))
    assert verdict.probes <= math.ceil(math.log2(count)) + 1


def _tools(view: Any) -> str:
    return " ".join(str(call.outcome) for call in view.calls if call.kind == "tool")


def test_a_tool_that_nobody_allowed_is_answered_from_the_record(once_wrong: Provider) -> None:
    kind = crews.named("sequential")
    run, _ = runs.recorded(kind)
    crews.ran.clear()
    assert lockstep.bisect(run, kind.make, is_rash).effect == "2.1"
    assert crews.ran == []


@pytest.mark.parametrize("name", ["sequential", "paying-for_each", "flow", "alone"])
def test_a_predicate_sees_what_was_returned(name: str, settled_but_tools: Provider) -> None:
    kind = crews.named(name)
    run, result = runs.recorded(kind)
    seen: list[Any] = []
    verdict = lockstep.bisect(run, kind.make, lambda view: bool(seen.append(view.result)), live=["*"])
    assert verdict.verdict == "not-reproducible"
    said = [each["output"]["raw"] for each in seen[0]] if isinstance(seen[0], list) else seen[0]
    if isinstance(said, dict):
        said = said["output"]["raw"] if "output" in said else said["returned"]
    assert said == ([each.raw for each in result] if isinstance(result, list) else getattr(result, "raw", result))


def test_a_crew_that_is_bad_by_its_code_is_told_so(settled_but_tools: Provider) -> None:
    kind = crews.named("sequential")
    run, _ = runs.recorded(kind)
    verdict = lockstep.bisect(run, kind.make, lambda view: True, live=["look_up"])
    assert verdict.verdict == "in-the-code"


_MISLED = "pay it twice"


def is_misled(view: Any) -> bool:
    return _MISLED in _tools(view)


@pytest.mark.parametrize("name", ["paying", "twins"])
def test_a_pair_of_tools_of_which_either_misleads_is_found_as_that_pair(name: str, settled_but_tools: Provider) -> None:
    """One after the other, and in two lanes beside each other."""
    kind = crews.named(name)
    good, _ = runs.recorded(kind)
    pair = [at for at, _ in runs.calls(good, "tool")]
    bad = lockstep.fork(
        f"{good}:{runs.steps(good)[-1].number}", kind.make, edits=dict.fromkeys(pair, _MISLED), live=["*"], branch="bad"
    )
    assert len(pair) == 2 and bad.edited == 2
    crews.ran.clear()
    found = lockstep.bisect(bad.address, kind.make, is_misled, good=good)
    assert (found.verdict, len(found.causes), found.minimal) == ("culprit", 2, True)
    assert all(_MISLED in str(branches.outcome(bad.address, effect)) for effect in _effects(bad.address, found.causes))
    assert crews.ran == []  # models alone were asked, where they heard one wrong answer of two


def looking() -> Any:
    """One that looks an order up, and says what it found."""
    eye = crews.agent("researcher", tools=[crews.LookUp()])
    return crews.Crew(name="eyes", agents=[eye], tasks=[crews.task("research", eye)])


def test_of_kickoffs_that_hear_nothing_of_each_other_a_pair_is_found_without_a_call(
    settled_but_tools: Provider,
) -> None:
    kind = crews.Kind(looking, crews.for_each, "eyes", 6, ("look_up",) * 3)
    good, _ = runs.recorded(kind)
    pair = [at for at, _ in runs.calls(good, "tool")][::2]
    bad = lockstep.fork(
        f"{good}:{runs.steps(good)[-1].number}", kind.make, edits=dict.fromkeys(pair, _MISLED), live=["*"], branch="bad"
    )
    assert bad.edited == 2
    asked = settled_but_tools.requests
    crews.ran.clear()
    found = lockstep.bisect(bad.address, kind.make, is_misled, good=good)
    assert (found.verdict, len(found.causes), found.minimal) == ("culprit", 2, True)
    assert (found.live_calls, crews.ran, settled_but_tools.requests) == (0, [], asked)


def _effects(address: str, at: Any) -> list[Any]:
    return [effect for where, effect in runs.calls(address, "tool") if where in at]
