"""Forks of workflows with children, and of steps with more than one answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import family_workflows as family
import offline_runs
import pytest
from temporalio.converter import default

import lockstep
from lockstep.log.store import open_store
from lockstep.log.timeline import Timeline
from lockstep_temporal import Setup
from lockstep_temporal.actors import Given
from lockstep_temporal.asks import completed

EVERYTHING = Setup(workflows=family.WORKFLOWS, activities=family.ACTIVITIES, sandboxed=False)
ALONE = Setup(workflows=[family.Parent], activities=family.ACTIVITIES, sandboxed=False)


@pytest.fixture
def store(tmp_path: Path) -> str:
    family.ran.clear()
    return str(tmp_path / "s.db")


def recorded(store: str) -> str:
    """Both activities are answered at once: 1.1 and 1.2; the child's answer is 3.1."""

    def decide(actor: Any, ask: Any) -> Given | None:
        if ask.sort != "activity" or actor.lane != "main":
            return None
        what = default().payload_converter.from_payloads(list(ask.command.arguments))[0]
        return Given(completed(default().payload_converter.to_payloads([what.upper()])[0]), 1_000_000)

    run = offline_runs.record(store, family.Parent, workflows=[], target=EVERYTHING, decide=decide)
    family.ran.clear()
    return run


def lanes(store: str, run: str, branch: str) -> list[tuple[str, str]]:
    with open_store(store) as opened:
        timeline = Timeline(opened.run(run, branch))
        return [(effect.lane, effect.kind) for step in timeline.steps for effect in step.effects]


def test_two_answers_that_came_at_once_come_at_once(store: str) -> None:
    run = recorded(store)
    assert lockstep.replay(run, EVERYTHING, store=store).result == ["A", "B", "wrote A"]
    fork = lockstep.fork(f"{run}:0", EVERYTHING, store=store, tail="reuse")
    assert (fork.result, fork.reused, family.ran) == (["A", "B", "wrote A"], 3, [])
    with open_store(store) as opened:
        main, branch = (Timeline(opened.run(run, name)) for name in ("main", fork.branch))
        assert [step.name for step in branch.steps] == [step.name for step in main.steps]


def test_one_of_two_answers_is_edited_and_the_other_is_served(store: str) -> None:
    fork = lockstep.fork(f"{recorded(store)}:1", EVERYTHING, store=store, edits={"1.2": "C"})
    assert (fork.result, family.ran) == (["A", "C", "wrote A"], [])


def test_a_fork_between_two_answers_asks_again_for_what_had_not_come(store: str) -> None:
    fork = lockstep.fork(f"{recorded(store)}:1.1", EVERYTHING, store=store)
    assert (fork.result, fork.live, family.ran) == (["A", "B", "wrote A"], 1, ["reads b"])


def test_a_childs_answer_is_edited(store: str) -> None:
    run = recorded(store)
    assert lockstep.fork(f"{run}:3", ALONE, store=store, edits={"3.1": "no child"}).result[2] == "no child"
    error = {"$": "raise", "type": "ValueError", "message": "no room"}
    failed = lockstep.fork(f"{run}:3", ALONE, store=store, edits={"3.1": error})
    assert failed.result[2] == "failed: ValueError: no room"


def test_a_child_as_recorded_answers_as_recorded(store: str) -> None:
    fork = lockstep.fork(f"{recorded(store)}:1", ALONE, store=store)
    assert (fork.result[2], fork.reused, family.ran) == ("wrote A", 1, [])


def test_another_child_is_driven_and_its_activities_are_asked_for(store: str) -> None:
    run = recorded(store)
    with pytest.raises(lockstep.Refused, match=r"activity writes(?s:.*)it is mutating"):
        lockstep.fork(f"{run}:1", EVERYTHING, store=store, edits={"1.1": "x"})
    fork = lockstep.fork(f"{run}:1", EVERYTHING, store=store, edits={"1.1": "x"}, live=["writes"])
    assert (fork.result, family.ran[-2:]) == (["x", "B", "wrote X"], ["reads x", "writes X"])
    found = lanes(store, run, fork.branch)
    assert ("main/Kid-1", "activity") in found
    assert ("main/Kid-1/Grandchild-2", "activity") in found
    assert lockstep.replay(fork.address, EVERYTHING, store=store).identical


def test_a_child_that_the_target_does_not_have_is_refused(store: str) -> None:
    with pytest.raises(lockstep.Refused, match="child Kid"):
        lockstep.fork(f"{recorded(store)}:1", ALONE, store=store, edits={"1.1": "x"})
