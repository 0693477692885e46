"""A fork at each call of a crew or flow of each kind: its answer is another, and what an edit of one may say."""

from __future__ import annotations

from typing import Any

import branches
import crew_runs as runs
import crews
import pytest

import lockstep
from lockstep.errors import AddressError, Code, EditError
from lockstep.testing import Provider

# What stands for an answer that its asker takes as nothing else, by what asks.
_FORMS: dict[str, Any] = {"verdict": {"score": 9, "because": "EDITED"}}
FORKED = [
    crews.named(name)
    for name in (
        "sequential", "streaming", "hierarchical", "delegating", "async_tasks", "parallel", "twins", "structured",
        "guarded", "sequential-akickoff", "paying-for_each_async", "flow", "looping", "alone",
        "alone-aask",
    )
]  # fmt: skip


def wanted(lane: str) -> Any:
    return next((form for name, form in _FORMS.items() if lane.endswith(name)), "EDITED")


@pytest.mark.parametrize("kind", FORKED, ids=crews.labelled)
def test_an_edited_answer_is_what_its_asker_got(kind: crews.Kind, provider: Provider) -> None:
    run, _ = runs.recorded(kind)
    for at, effect in [*runs.calls(run, "model"), *runs.calls(run, "tool")]:
        before = provider.requests
        crews.ran.clear()
        step = at.partition(".")[0]
        fork = lockstep.fork(f"{run}:{step}", kind.make, edits={at: wanted(effect.lane)}, live=["*"])
        assert fork.divergence is None, (at, fork.divergence)
        assert (fork.state, fork.edited, fork.unreached) == ("complete", 1, ()), (at, fork.error)
        assert "EDITED" in str(branches.answers(fork.address))
        assert provider.requests - before == fork.live - len(crews.ran)
    branches.is_again(fork, kind)


def test_a_model_may_be_given_calls_of_tools(provider: Provider) -> None:
    kind = crews.named("sequential")
    run, _ = runs.recorded(kind)
    crews.ran.clear()
    edits = {"1.1": [{"name": "look_up", "arguments": {"order": 9}}]}
    fork = lockstep.fork(f"{run}:1", kind.make, edits=edits, live=["look_up"])
    assert (fork.state, crews.ran) == ("complete", ["look_up"])
    assert "order 9" in str(branches.answers(fork.address))
    branches.is_again(fork, kind)


def test_one_place_of_an_answer_may_be_edited(provider: Provider) -> None:
    kind = crews.named("sequential")
    run, _ = runs.recorded(kind)
    fork = lockstep.fork(f"{run}:2", kind.make, edits={"2.1:text": "EDITED"})
    assert fork.result.tasks_output[1].raw == "EDITED"


def test_a_model_that_fails_is_asked_again_as_its_agent_does(provider: Provider) -> None:
    kind = crews.named("sequential")
    run, _ = runs.recorded(kind)
    fork = lockstep.fork(f"{run}:3", kind.make, edits={"3.1": ValueError("429")})
    assert (fork.state, fork.live) == ("complete", 1)

    def once() -> Any:
        crew = kind.make()
        crew.agents[2].max_retry_limit = 0
        return crew

    fork = lockstep.fork(f"{run}:3", once, edits={"3.1": ValueError("429")})
    assert (fork.state, str(fork.error), fork.live) == ("failed", "429", 0)
    replay = lockstep.replay(fork.address, once)
    assert (replay.identical, str(replay.error)) == (True, "429")


def test_a_tool_that_fails_is_told_to_the_model_as_crewai_tells_it(provider: Provider) -> None:
    kind = crews.named("sequential")
    run, _ = runs.recorded(kind)
    ((at, _),) = runs.calls(run, "tool")
    heard: list[str] = []
    script = provider.script
    provider.script = lambda request: heard.append(str(request.json)) or script(request)
    fork = lockstep.fork(f"{run}:1", kind.make, edits={at: ValueError("no such order")}, live=["*"])
    assert fork.state == "complete"
    assert "no such order" in heard[0]


def test_an_edit_that_comes_after_the_step_is_refused(provider: Provider) -> None:
    kind = crews.named("sequential")
    run, _ = runs.recorded(kind)
    for edits in ({"3.1": "no"}, {"3": "no"}):
        with pytest.raises(AddressError, match="is answered only after"):
            lockstep.fork(f"{run}:2", kind.make, edits=edits)


@pytest.mark.parametrize(
    ("edits", "said"),
    [
        ({"1.1": 7}, "a model's answer is a text"),
        ({"1:output.pydantic.score": 1}, "there is no"),
        ({"1:state.total": 1}, "a task has no state"),
        ({"1": ValueError("no")}, "a step that fails has no output"),
        ({"0": {"order": 8}}, "is what was asked"),
    ],
)
def test_an_edit_that_says_nothing_is_refused(edits: dict[str, Any], said: str, provider: Provider) -> None:
    kind = crews.named("sequential")
    run, _ = runs.recorded(kind)
    before = provider.requests
    with pytest.raises(EditError, match=said) as raised:
        lockstep.fork(f"{run}:1", kind.make, edits=edits)
    assert raised.value.code in (Code.UNEDITABLE, Code.NO_PLACE)
    assert provider.requests == before
