"""What a fork's tail may do, and what is told where it goes another way."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import branches
import crew_runs as runs
import crews
import pytest

import lockstep
import lockstep_crewai
from lockstep.errors import Refused, TargetError
from lockstep.testing import Answer, Provider

OTHER = [{"name": "issue_refund", "arguments": {"order": 7, "cents": 4500}}]


def pays(run: str) -> str:
    """The address of the answer that asks for the refund."""
    return runs.calls(run, "model")[1][0]


@pytest.mark.parametrize("name", ["paying", "alone", "alone-aask", "react"])
def test_a_mutating_tool_past_the_cut_is_refused_with_the_way_to_allow_it(name: str, provider: Provider) -> None:
    kind = crews.named(name)
    run, _ = runs.recorded(kind)
    crews.ran.clear()
    said: Any = OTHER
    if name == "react":
        said = 'Thought: pay\nAction: issue_refund\nAction Input: {"order": 7, "cents": 4500}'
    with pytest.raises(Refused) as raised:
        lockstep.fork(f"{run}:1", kind.make, edits={pays(run): said})
    fork = raised.value.run
    assert (fork.state, crews.ran) == ("refused", [])
    assert "issue_refund" in fork.refused[0]
    assert "4500" in fork.refused[0]
    assert "--live issue_refund" in fork.refused[0]
    allowed = lockstep.fork(f"{run}:1", kind.make, edits={pays(run): said}, live=["issue_refund"])
    assert (allowed.state, crews.ran) == ("complete", ["issue_refund"])


_OTHER: dict[str, Any] = {"look_up": {"order": 9}, "slowly": {"place": "Bonn", "ticks": 1}}


@pytest.mark.parametrize(
    "name",
    [
        "async_tasks",
        "parallel",
        "paying-for_each_async",
        "paying-akickoff_for_each",
        "flow",
        "crew_stream",
        "hierarchical",
    ],
)
def test_a_refusal_gets_out_of_threads_loops_and_streams(name: str, provider: Provider, capfd: Any) -> None:
    kind = crews.named(name)
    run, _ = runs.recorded(kind)
    tool = runs.calls(run, "tool")[0][1]
    asks = next(
        (at, effect) for at, effect in runs.calls(run, "model")
        if tool.lane.startswith(effect.lane) and tool.name in str(branches.outcome(run, effect))
    )  # fmt: skip
    crews.ran.clear()
    capfd.readouterr()
    edits = {asks[0]: [{"name": tool.name, "arguments": _OTHER[tool.name]}] * 2}
    with pytest.raises(Refused) as raised:
        lockstep.fork(f"{run}:{asks[0].partition('.')[0]}", kind.make, edits=edits)
    assert tool.name in raised.value.run.refused[0]
    assert raised.value.run.report.seconds < 10
    assert crews.ran == []
    assert capfd.readouterr().err == ""
    assert [thread.name for thread in threading.enumerate() if thread.name == "lockstep-kickoff"] == []


def test_a_tool_that_is_marked_as_a_look_runs(provider: Provider) -> None:
    kind = crews.named("sequential")

    def make() -> Any:
        crew = kind.make()
        lockstep.mark(crew.agents[0].tools[0], effect="read")
        return crew

    run, _ = runs.recorded(crews.Kind(make, kind.how, kind.run, kind.requests))
    crews.ran.clear()
    fork = lockstep.fork(f"{run}:0", make)
    assert (fork.state, crews.ran) == ("complete", ["look_up"])


def test_a_call_that_was_made_already_is_answered_from_the_record(provider: Provider) -> None:
    kind = crews.named("paying")
    run, _ = runs.recorded(kind)
    crews.ran.clear()
    fork = lockstep.fork(f"{run}:0", kind.make)
    assert (fork.state, fork.reused, fork.live, crews.ran) == ("complete", 2, 3, [])


@pytest.mark.parametrize("name", ["async_tasks", "paying-for_each_async", "flow"])
def test_of_what_runs_at_once_each_call_is_served_or_asked_anew(name: str, provider: Provider) -> None:
    kind = crews.named(name)
    run, _ = runs.recorded(kind)
    step = branches.done(run)[0]
    before = len(branches.answered_by(run, step))
    fork = lockstep.fork(f"{run}:{step.number}", kind.make, edits={f"{step.number}": "41.00"}, live=["*"])
    assert fork.state == "complete"
    asked = len(branches.asked_past(fork.address, "model")) + len(branches.asked_past(fork.address, "tool"))
    assert asked == fork.live
    assert before + asked == len(runs.calls(fork.address, "model")) + len(runs.calls(fork.address, "tool"))
    branches.is_again(fork, kind)


def test_a_crew_that_does_not_come_to_its_cut_is_told_so(provider: Provider) -> None:
    kind = crews.named("async_tasks")
    run, _ = runs.recorded(kind)
    waits = threading.Event()

    def make() -> Any:
        crew = kind.make()
        crew.tasks[0].callback = lambda output: waits.wait(20)
        crew.tasks[1].callback = lambda output: waits.wait(20)
        return crew

    last = branches.done(run)[-1].number
    fork = lockstep.fork(f"{run}:{last}", make, deadline=1.0)
    waits.set()
    assert fork.state == "diverged"
    assert fork.report.seconds < 10


# Other ways.


def test_another_prompt_before_the_cut_is_told_with_its_task(provider: Provider) -> None:
    kind = crews.named("sequential")
    run, _ = runs.recorded(kind)

    def make() -> Any:
        crew = kind.make()
        crew.agents[1].goal = "be brief"
        return crew

    before = provider.requests
    fork = lockstep.fork(f"{run}:2", make)
    found = fork.report.difference
    assert found is not None
    assert (fork.state, found.lane) == ("diverged", "desk/letter")
    assert provider.requests == before


def test_another_prompt_past_the_cut_is_asked_with(provider: Provider) -> None:
    kind = crews.named("sequential")
    run, _ = runs.recorded(kind)

    def make() -> Any:
        crew = kind.make()
        crew.agents[2].goal = "be brief"
        return crew

    fork = lockstep.fork(f"{run}:2", make)
    assert (fork.state, fork.live) == ("complete", 1)


def test_a_live_crew_is_refused(provider: Provider) -> None:
    kind = crews.named("sequential")
    run, _ = runs.recorded(kind)
    with pytest.raises(TargetError, match="give the function that makes it"):
        lockstep.fork(f"{run}:1", kind.make())


def test_a_branch_is_forked_in_its_turn_and_that_one_too(provider: Provider) -> None:
    kind = crews.named("sequential")
    run, _ = runs.recorded(kind)
    one = lockstep.fork(f"{run}:1", kind.make, edits={"1": "first"}, branch="one")
    two = lockstep.fork(f"{one.address}:2", kind.make, edits={"2": "second"}, branch="two")
    three = lockstep.fork(f"{two.address}:3", kind.make, edits={"3.1": "third"}, branch="three")
    assert [task.raw for task in three.result.tasks_output] == ["first", "second", "third"]
    for fork in (one, two, three):
        branches.is_again(fork, kind)


def test_the_turns_that_followed_are_made_again_with_what_they_were_given(provider: Provider) -> None:
    crew = lockstep_crewai.wrap(crews.sequential())
    for order in (7, 8):
        crew.kickoff(inputs={"order": order})
    fork = lockstep.fork("crewai/desk:2", crews.sequential, live=["look_up"])
    assert len(fork.results) == 2
    assert lockstep.replay(fork.address, crews.sequential).identical
    later = lockstep.fork("crewai/desk:6", crews.sequential, live=["look_up"])
    assert len(later.results) == 2
    assert 0 < later.live < fork.live
    alone = lockstep.fork("crewai/desk:2", crews.sequential, turn=1)
    assert len(alone.results) == 1


def test_a_failed_run_is_forked_from_its_last_task(provider: Provider) -> None:
    kind = crews.named("sequential")
    script = provider.script
    provider.script = lambda request: Answer(status=400) if request.number >= 4 else script(request)
    with pytest.raises(Exception, match="400"):
        kind.how(lockstep_crewai.wrap(kind.make()))
    provider.script = script
    fork = lockstep.fork("crewai/desk:2", kind.make)
    assert (fork.state, len(fork.result.tasks_output)) == ("complete", 3)
    branches.is_again(fork, kind)


@pytest.mark.parametrize("name", ["sequential", "sequential-akickoff", "flow", "alone-aask"])
def test_a_running_loop_awaits_a_fork(name: str, provider: Provider) -> None:
    kind = crews.named(name)
    run, _ = runs.recorded(kind)

    async def fork() -> Any:
        found = await lockstep.afork(f"{run}:1", kind.make, live=["*"])
        assert asyncio.all_tasks() == {asyncio.current_task()}
        return found

    assert asyncio.run(fork()).state == "complete"


def test_a_fork_says_nothing_on_stderr(provider: Provider, capfd: Any) -> None:
    kind = crews.named("async_tasks")
    run, _ = runs.recorded(kind)
    capfd.readouterr()
    lockstep.fork(f"{run}:1", kind.make, live=["*"])
    assert capfd.readouterr().err == ""
