"""A fork at each task and method of a crew or flow of each kind: what it came to is another, and only what comes after
it is asked for."""

from __future__ import annotations

from typing import Any

import branches
import crew_runs as runs
import crews
import pytest

import lockstep
from lockstep.testing import Provider

# What a step is to have come to, where it is no text, or where a text of ours would lead nowhere.
_PLANS = {"list_of_plans_per_task": [{"task_number": n, "task": "task", "plan": "EDITED"} for n in (1, 2, 3)]}
EDITED: dict[str, Any] = {
    "based-on-these-tasks-summary-task-number": _PLANS,
    "verdict": {"score": 9, "because": "EDITED"}, "look": "41.00", "size": "big", "more": "done", "way": "on",
}  # fmt: skip
FORKED = [
    crews.named(name)
    for name in (
        "sequential", "streaming", "crew_stream", "hierarchical", "react", "async_tasks", "structured", "guarded",
        "planned", "conditional", "sequential-kickoff_async", "sequential-akickoff", "paying-for_each",
        "paying-for_each_async",
        "paying-akickoff_for_each", "flow", "flow-akickoff", "looping", "persisted", "alone", "alone-aask", "lite",
    )
]  # fmt: skip


@pytest.mark.parametrize("kind", FORKED, ids=crews.labelled)
def test_what_comes_after_it_has_the_edited_output(kind: crews.Kind, provider: Provider) -> None:
    run, _ = runs.recorded(kind)
    recorded = branches.outputs(run)
    for step in branches.done(run):
        wanted = EDITED.get(step.name, "EDITED")
        before = provider.requests
        crews.ran.clear()
        fork = lockstep.fork(f"{run}:{step.number}", kind.make, edits={str(step.number): wanted}, live=["*"])
        assert fork.divergence is None, fork.divergence
        assert (fork.state, fork.edited, fork.unreached) == ("complete", 1, ())
        now = branches.outputs(fork.address)
        came = now[step.lane, step.name]
        assert came == wanted or came["raw"] == wanted or came["pydantic"] == wanted
        assert provider.requests - before == len(branches.asked_past(fork.address, "model"))
        assert len(crews.ran) == len(branches.asked_past(fork.address, "tool"))
        assert all(
            now[key] == recorded[key] for key in [(one.lane, one.name) for one in branches.done(run)[: step.number - 1]]
        )
        branches.is_again(fork, kind)


def test_a_task_is_told_of_the_edited_output_of_the_one_before(provider: Provider) -> None:
    kind = crews.named("sequential")
    run, _ = runs.recorded(kind)
    heard: list[str] = []
    script = provider.script
    provider.script = lambda request: heard.append(str(request.json)) or script(request)
    fork = lockstep.fork(f"{run}:1", kind.make, edits={"1": "order 7 was never paid"})
    assert (fork.live, len(heard)) == (2, 2)
    assert "order 7 was never paid" in heard[0]
    assert "40.00" not in heard[0]


def test_a_router_goes_where_the_edit_says(provider: Provider) -> None:
    kind = crews.named("looping")
    run, result = runs.recorded(kind)
    assert result.count(",") == 2
    first = next(step for step in branches.done(run) if step.name == "more")
    fork = lockstep.fork(f"{run}:{first.number}", kind.make, edits={str(first.number): "done"})
    assert fork.result.count(",") == 0
    assert [step.name for step in branches.done(fork.address)] == ["begin", "ask", "more", "end"]
    assert fork.live == 0


def test_the_state_of_a_flow_is_edited_in_its_place(provider: Provider) -> None:
    kind = crews.named("looping")
    run, _ = runs.recorded(kind)
    first = next(step for step in branches.done(run) if step.name == "ask")
    edits = {f"{first.number}:state.said[0]": "EDITED"}
    fork = lockstep.fork(f"{run}:{first.number}", kind.make, edits=edits)
    assert fork.result.startswith("EDITED, ")
    branches.is_again(fork, kind)


def test_a_form_that_a_task_wants_is_kept(provider: Provider) -> None:
    kind = crews.named("structured")
    run, _ = runs.recorded(kind)
    for edits in ({"1": {"score": 3, "because": "so"}}, {"1:output.pydantic.score": 3}, {"1:raw.score": 3}):
        fork = lockstep.fork(f"{run}:1", kind.make, edits=edits)
        assert fork.result.tasks_output[0].pydantic.score == 3
        assert '"score":3' in fork.result.tasks_output[0].raw.replace(" ", "")


def test_without_an_edit_only_the_tail_is_asked_anew(provider: Provider) -> None:
    kind = crews.named("sequential")
    run, result = runs.recorded(kind)
    for number, left in ((0, 4), (1, 2), (2, 1), (3, 0)):
        before = provider.requests
        fork = lockstep.fork(f"{run}:{number}", kind.make, live=["look_up"])
        assert (fork.state, provider.requests - before, fork.live) == ("complete", left, left + (number == 0))
        same = [one.raw == other.raw for one, other in zip(result.tasks_output, fork.result.tasks_output, strict=True)]
        assert same == [task < number for task in range(3)]


def test_several_steps_are_edited_at_once(provider: Provider) -> None:
    kind = crews.named("sequential")
    run, _ = runs.recorded(kind)
    fork = lockstep.fork(f"{run}:3", kind.make, edits={"2": "two", "3": "three"})
    assert (fork.edited, fork.unreached) == (2, ())
    assert [one.raw for one in fork.result.tasks_output][1:] == ["two", "three"]
    assert fork.live == 1  # the check was told of another letter
