"""A fork at each message of a team of each kind: the first message that differs is the edited one, and only what comes
after it is asked for."""

from __future__ import annotations

from typing import Any

import pytest
import runs
import teams

import lockstep
from lockstep.testing import Provider

# What a text in the place of an answer says, where an agent or the team wants a form.
_EDITED: dict[str, Any] = {"structured": {"score": 9, "because": "it was edited"}}


def said_in(run: str) -> list[tuple[int, str]]:
    """What was answered and then said, in each step by whoever spoke: step, and address of the call."""
    found: dict[tuple[int, str], str] = {}
    for step in runs.steps(run):
        for effect in step.effects:
            speaker = effect.lane.rpartition("/")[2]
            if (effect.kind == "model" or effect.name == "input") and speaker in step.name.split(", "):
                found[step.number, speaker] = f"{step.number}.{effect.number}"
    return [(step, address) for (step, _), address in found.items()]


@pytest.mark.parametrize("kind", teams.KINDS[:-1], ids=teams.labelled)
def test_the_edited_message_is_the_first_that_differs(kind: teams.Kind, provider: Provider) -> None:
    run, result = runs.recorded(kind)
    for step, address in said_in(run):
        before = provider.requests
        teams.ran.clear()
        fork = lockstep.fork(f"{run}:{step}", kind.make, edits={address: _EDITED.get(kind.name, "EDITED")}, live=["*"])
        assert fork.divergence is None
        assert (fork.edited, fork.unreached) == (1, ())
        first = runs.first_other(result, fork.result)
        assert "EDITED" in str(fork.result.messages[first]).upper()
        assert provider.requests - before == len(asked_past(fork.address, "model"))
        assert len(teams.ran) == len([*asked_past(fork.address, "tool"), *asked_past(fork.address, "human", "input")])
    runs.is_again(lockstep.replay(fork.address, kind.make), fork.result)


def asked_past(address: str, kind: str, name: str = "") -> list[str]:
    """The calls of a branch that ran for real."""
    left = runs.timeline(address, lambda timeline: timeline.reader.branches[-1].pos)
    return [
        at for at, effect in runs.calls(address, kind)
        if effect.begin.pos > left and effect.end is not None and not effect.end.name and name in ("", effect.name)
    ]  # fmt: skip


@pytest.mark.parametrize("kind", teams.KINDS[:-1], ids=teams.labelled)
def test_without_an_edit_only_the_tail_is_asked_anew(kind: teams.Kind, provider: Provider) -> None:
    run, result = runs.recorded(kind)
    steps = runs.steps(run)
    middle = steps[len(steps) // 2].number
    before = provider.requests
    fork = lockstep.fork(f"{run}:{middle}", kind.make, live=["look_up", "issue_refund", "slowly", "Inline"])
    assert fork.state == "complete"
    assert provider.requests - before == len(asked_past(fork.address, "model")) < kind.requests
    assert teams.speakers(fork.result) == teams.speakers(result)


def test_a_fork_of_the_beginning_asks_everything_anew_and_one_of_the_end_nothing(provider: Provider) -> None:
    kind = teams.named("round_robin")
    run, result = runs.recorded(kind)
    before = provider.requests
    whole = lockstep.fork(f"{run}:0", kind.make)
    assert (provider.requests - before, whole.live, whole.reused) == (4, 4, 1)
    assert runs.first_other(result, whole.result) == 1
    last = lockstep.fork(f"{run}:4", kind.make)
    assert (provider.requests - before, last.live) == (4, 0)
    assert teams.messages(last.result) == teams.messages(result)
