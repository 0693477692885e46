"""Forks of workflows: edits of all kinds of answers, what may run for real, what cannot be, and what is left of it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import changed_order_workflow as changed
import offline_runs
import order_workflows as orders
import pytest
import trying_workflows as trying
from temporalio.exceptions import ActivityError, ApplicationError

import lockstep
from lockstep.errors import AddressError, Code, EditError, TargetError
from lockstep.log.store import open_store
from lockstep.log.timeline import Timeline
from lockstep_temporal import Setup

EVERYTHING = Setup(workflows=orders.WORKFLOWS, activities=orders.ACTIVITIES, sandboxed=False)
RETRYING = Setup(workflows=[trying.Retried], activities=trying.ACTIVITIES, sandboxed=False)


@pytest.fixture
def store(tmp_path: Path) -> str:
    orders.called.clear()
    return str(tmp_path / "s.db")


def recorded(store: str, workflow: type, *args: Any, inbound: Any = (), at_start: Any = ()) -> str:
    """A run of it, of which nobody remembers the calls."""
    run = offline_runs.record(
        store, workflow, *args, workflows=orders.WORKFLOWS, activities=orders.ACTIVITIES, inbound=inbound,
        at_start=at_start, target=EVERYTHING,
    )  # fmt: skip
    orders.called.clear()
    return run


def order(store: str) -> str:
    """look_up 1.1, a note 2.1, the timer 3.1, an amendment 4.1, charge 5.1"""
    inbound = [offline_runs.signal(2, 1, "note", "by phone"), offline_runs.update(4, 4, "amend", "twice", 2)]
    return recorded(store, orders.Order, 7, inbound=inbound)


def effects(store: str, address: str) -> list[tuple[str, str, str]]:
    """Of a branch: each effect's address, kind and how it was answered."""
    run, _, branch = address.partition("@")
    with open_store(store) as opened:
        timeline = Timeline(opened.run(run, branch or "main"))
        return [
            (f"{step.number}.{effect.number}", effect.kind, effect.end.name if effect.end is not None else "open")
            for step in timeline.steps
            for effect in step.effects
        ]


def test_the_run_that_is_forked_here(store: str) -> None:
    run = order(store)
    assert [(at, kind) for at, kind, _ in effects(store, run)] == [
        ("1.1", "activity"), ("2.1", "signal"), ("3.1", "timer"), ("4.1", "update"), ("5.1", "activity"),
    ]  # fmt: skip
    replay = lockstep.replay(run, EVERYTHING, store=store)
    assert replay.identical
    assert replay.result["notes"] == ["by phone", "twice", "twice"]


def test_without_edits_all_is_answered_from_the_record(store: str) -> None:
    run = order(store)
    fork = lockstep.fork(f"{run}:0", EVERYTHING, store=store)
    assert fork.result == lockstep.replay(run, EVERYTHING, store=store).result
    assert (fork.state, fork.live, fork.reused, orders.called) == ("complete", 0, 2, [])


def test_an_activity_is_edited_by_its_name_and_number(store: str) -> None:
    run = order(store)
    by_name = lockstep.fork(f"{run}:look_up#1", EVERYTHING, store=store, edits={"look_up#1:status": "lost"})
    assert effects(store, by_name.address)[0] == ("1.1", "activity", "edited")
    assert by_name.result == lockstep.fork(f"{run}:1", EVERYTHING, store=store, edits={"1.1:status": "lost"}).result
    with pytest.raises(AddressError, match=r"has no charge#2: there are 1"):
        lockstep.fork(f"{run}:5", EVERYTHING, store=store, edits={"charge#2": 1})


def test_an_edited_result_changes_what_follows(store: str) -> None:
    fork = lockstep.fork(f"{order(store)}:1", EVERYTHING, store=store, edits={"1.1:status": "lost"})
    assert fork.result == {"lost": 7, "at": (offline_runs.BEGAN + 3) % 60}
    assert effects(store, fork.address)[0] == ("1.1", "activity", "edited")


def test_a_whole_result_can_be_given_as_an_object(store: str) -> None:
    fork = lockstep.fork(f"{order(store)}:1", EVERYTHING, store=store, edits={"1.1": orders.Found(9, 5, "lost")})
    assert fork.result["lost"] == 9


def test_the_only_answer_of_a_step_is_named_by_the_step(store: str) -> None:
    fork = lockstep.fork(f"{order(store)}:1", EVERYTHING, store=store, edits={"1:status": "lost"})
    assert fork.result["lost"] == 7


def test_an_edit_of_an_earlier_step_is_served_past_while_nothing_changes(store: str) -> None:
    run = order(store)
    fork = lockstep.fork(f"{run}:5", EVERYTHING, store=store, edits={"1.1:id": 8})
    assert fork.result == lockstep.replay(run, EVERYTHING, store=store).result
    assert [how for _, kind, how in effects(store, fork.address) if kind == "activity"] == ["edited", "served"]


def test_what_an_activity_fails_with_can_be_given(store: str) -> None:
    edits = {"5.1": {"$": "raise", "type": "ValueError", "message": "no such card"}}
    fork = lockstep.fork(f"{order(store)}:5", EVERYTHING, store=store, edits=edits)
    assert fork.result["paid"] == "ValueError: no such card []"


def test_an_exception_keeps_what_it_holds(store: str) -> None:
    error = ApplicationError("declined", {"card": 4711}, type="Declined")
    fork = lockstep.fork(f"{order(store)}:5", EVERYTHING, store=store, edits={"5.1": error})
    assert fork.result["paid"] == "Declined: declined [{'card': 4711}]"


def test_a_failure_that_nobody_catches_fails_the_fork(store: str) -> None:
    fork = lockstep.fork(f"{order(store)}:1", EVERYTHING, store=store, edits={"1.1": RuntimeError("no database")})
    assert fork.state == "failed"
    assert isinstance(fork.error, ActivityError)
    assert "no database" in str(fork.error.cause)
    assert lockstep.replay(fork.address, EVERYTHING, store=store).identical


def test_a_timer_fires_when_an_edit_says(store: str) -> None:
    """So late that the amendment comes before it: it came four seconds after the start."""
    run = order(store)
    fork = lockstep.fork(f"{run}:3", EVERYTHING, store=store, edits={"3.1": 60, "1.1:status": "lost"})
    assert fork.result == {"lost": 7, "at": (offline_runs.BEGAN + 60) % 60}


def test_a_race_is_won_by_what_an_edit_makes_faster(store: str) -> None:
    run = recorded(store, orders.Racing)
    assert lockstep.replay(run, EVERYTHING, store=store).result == "found"
    late = offline_runs.record(
        store,
        orders.Racing,
        workflows=orders.WORKFLOWS,
        target=EVERYTHING,
        decide=lambda actor, ask: offline_runs.never(),
    )
    assert lockstep.replay(late, EVERYTHING, store=store).result == "too late"


def test_a_signal_comes_with_other_arguments(store: str) -> None:
    fork = lockstep.fork(f"{order(store)}:2", EVERYTHING, store=store, edits={"2.1": ["by mail"]})
    assert fork.result["notes"] == ["by mail", "twice", "twice"]


def test_a_signal_or_an_update_can_be_left_out(store: str) -> None:
    run = order(store)
    fork = lockstep.fork(f"{run}:4", EVERYTHING, store=store, edits={"2.1": None, "4.1": None})
    assert fork.result["notes"] == []
    assert [kind for _, kind, _ in effects(store, fork.address)] == ["activity", "timer", "activity"]


def test_one_argument_of_an_update_is_changed_by_its_place(store: str) -> None:
    fork = lockstep.fork(f"{order(store)}:4", EVERYTHING, store=store, edits={"4.1:[1]": 1})
    assert fork.result["notes"] == ["by phone", "twice"]


def test_a_signal_that_came_with_the_start_is_edited(store: str) -> None:
    at_start = [offline_runs.signal(0, 0, "note", "at once")]
    run = recorded(store, orders.Order, 7, at_start=at_start)
    assert lockstep.replay(run, EVERYTHING, store=store).result["notes"] == ["at once"]
    fork = lockstep.fork(f"{run}:0", EVERYTHING, store=store, edits={"0.1": ["never"]})
    assert fork.result["notes"] == ["never"]
    assert lockstep.replay(fork.address, EVERYTHING, store=store).identical


def test_random_numbers_are_those_of_the_run(store: str) -> None:
    run = order(store)
    fork = lockstep.fork(f"{run}:1", EVERYTHING, store=store, edits={"1.1:total": 5}, live=["charge"])
    assert fork.result["drawn"] == lockstep.replay(run, EVERYTHING, store=store).result["drawn"]
    assert orders.called == [("charge", (7, 5))]


def test_a_call_that_nobody_allowed_is_refused_and_can_be_answered(store: str) -> None:
    with pytest.raises(lockstep.Refused) as refused:
        lockstep.fork(f"{order(store)}:1", EVERYTHING, store=store, edits={"1.1:total": 5})
    assert "activity charge(7, 5) would run for real" in str(refused.value)
    assert "--live charge" in str(refused.value)
    assert orders.called == []
    branch = refused.value.run
    at = next(at for at, _, how in effects(store, branch.address) if how == "open")
    fork = lockstep.fork(f"{branch.address}:{at.partition('.')[0]}", EVERYTHING, store=store, edits={at: "free"})
    assert fork.result["paid"] == "free"


def test_what_the_target_does_not_have_is_refused_by_its_name(store: str) -> None:
    setup = Setup(workflows=orders.WORKFLOWS, activities=[orders.look_up], sandboxed=False)
    with pytest.raises(lockstep.Refused, match="no activity of that name"):
        lockstep.fork(f"{order(store)}:1", setup, store=store, edits={"1.1:total": 5}, live=["*"])


def test_two_activities_are_on_at_once(store: str) -> None:
    run = offline_runs.record(
        store, orders.Meeting, workflows=orders.WORKFLOWS, activities=orders.ACTIVITIES, target=EVERYTHING
    )
    fork = lockstep.fork(f"{run}:1", EVERYTHING, store=store, live=["meets"])
    assert (fork.result, fork.live) == (["one", "two"], 2)


def test_async_activities_run_in_the_callers_loop(store: str) -> None:
    run = order(store)
    loops: list[Any] = []

    async def here() -> Any:
        from temporalio import activity

        @activity.defn(name="look_up")
        async def look(order: int) -> orders.Found:
            loops.append(asyncio.get_running_loop())
            return orders.Found(order, 1, "lost")

        setup = Setup(workflows=orders.WORKFLOWS, activities=[look, orders.charge], sandboxed=False)
        loops.append(asyncio.get_running_loop())
        return await lockstep.afork(f"{run}:0", setup, store=store, live=["look_up"])

    assert asyncio.run(here()).result["lost"] == 7
    assert loops[0] is loops[1]


def test_a_branch_is_replayed_and_forked_like_any_run(store: str) -> None:
    first = lockstep.fork(f"{order(store)}:1", EVERYTHING, store=store, edits={"1.1:total": 5}, live=["charge"])
    assert lockstep.replay(first.address, EVERYTHING, store=store).identical
    second = lockstep.fork(f"{first.address}:4", EVERYTHING, store=store, edits={"4.1": ["once", 1]})
    assert second.result == {**first.result, "notes": ["by phone", "once"]}
    assert (second.live, second.reused) == (0, 1)


def test_changed_code_is_a_divergence_of_what_is_served(store: str) -> None:
    fork = lockstep.fork(f"{order(store)}:1", Setup(workflows=[changed.Order], sandboxed=False), store=store)
    assert (fork.state, fork.live, orders.called) == ("diverged", 0, [])


def test_a_workflow_that_waits_for_what_does_not_come_is_left_waiting(store: str) -> None:
    run = recorded(store, orders.Patient, inbound=[offline_runs.signal(2, 9, "tell", "here")])
    assert lockstep.fork(f"{run}:1", EVERYTHING, store=store).result == "here"
    fork = lockstep.fork(f"{run}:2", EVERYTHING, store=store, edits={"2.1": None})
    assert (fork.state, fork.result) == ("interrupted", None)


def test_a_workflow_that_polls_for_what_does_not_come_is_left_in_the_end(store: str) -> None:
    run = recorded(store, orders.Polling, inbound=[offline_runs.signal(3, 2.5, "tell", "enough")])
    assert lockstep.fork(f"{run}:1", EVERYTHING, store=store).result == "enough"
    fork = lockstep.fork(f"{run}:3", EVERYTHING, store=store, edits={"3.1": None})
    assert (fork.state, fork.result) == ("interrupted", None)


def test_the_next_run_of_a_chain_is_driven_too(store: str) -> None:
    run = recorded(store, orders.Rounds, 2, [])
    assert lockstep.replay(run, EVERYTHING, store=store).result == [200, 200, 200]
    fork = lockstep.fork(f"{run}:1", EVERYTHING, store=store, edits={"1.1:total": 1})
    assert (fork.result, fork.reused) == ([1, 200, 200], 2)
    assert lockstep.replay(fork.address, EVERYTHING, store=store).identical
    alone = lockstep.fork(f"{run}:1", EVERYTHING, store=store, edits={"1.1:total": 1}, turn=1)
    assert alone.reused == 0


def test_a_fork_in_a_later_run_of_a_chain_leaves_the_earlier_ones_alone(store: str) -> None:
    run = recorded(store, orders.Rounds, 2, [])
    fork = lockstep.fork(f"{run}:3", EVERYTHING, store=store, edits={"3.1:total": 1})
    assert fork.result == [200, 1, 200]


def test_calls_are_found_by_their_place_where_a_framework_fills_in_clocks(store: str) -> None:
    run = recorded(store, orders.Stamping, "a letter")
    fork = lockstep.fork(f"{run}:1", EVERYTHING, store=store, edits={"1.1:total": 1}, tail="reuse")
    assert (fork.result, fork.reused, orders.called) == (["wrote a letter"], 1, [])


def test_what_cannot_be_emulated_is_refused_by_name(store: str) -> None:
    run = recorded(store, orders.Nexus)
    with pytest.raises(lockstep.Refused, match="Nexus"):
        lockstep.fork(f"{run}:1", EVERYTHING, store=store, edits={"1.1:total": 1})


def test_a_workflow_cannot_go_on_as_another(store: str) -> None:
    with pytest.raises(TargetError) as error:
        lockstep.fork(f"{order(store)}:1", EVERYTHING, store=store, thread="other")
    assert error.value.code is Code.BAD_TARGET


@pytest.mark.parametrize(
    ("at", "edits", "code"),
    [
        ("1", {"5.1": "free"}, Code.NO_ADDRESS),
        ("1", {"1.2": 1}, Code.NO_ADDRESS),
        ("1", {"other:1.1": 1}, Code.NO_ADDRESS),
        ("0", {"0": 1}, Code.NO_ADDRESS),
        ("1", {"1.1:nothing.there": 1}, Code.NO_PLACE),
        ("3", {"3.1": "soon"}, Code.UNEDITABLE),
        ("2", {"2.1": "by mail"}, Code.UNEDITABLE),
    ],
)
def test_edits_that_mean_nothing_are_said_to(store: str, at: str, edits: dict[str, Any], code: Code) -> None:
    with pytest.raises((AddressError, EditError)) as error:
        lockstep.fork(f"{order(store)}:{at}", EVERYTHING, store=store, edits=edits)
    assert error.value.code is code


def test_attempts_that_run_for_real_stand_inside_their_call(store: str) -> None:
    run = offline_runs.record(
        store, trying.Retried, workflows=[trying.Retried], activities=trying.ACTIVITIES, target=RETRYING
    )
    fork = lockstep.fork(f"{run}:0", RETRYING, store=store, live=["*"])
    assert fork.result == "attempt 3 after 2"
    with open_store(store) as opened:
        timeline = Timeline(opened.run(run, fork.branch))
        (effect,) = timeline.step(1).effects
        attempts = [(each.begin.name, str(each.status), len(each.parts)) for each in effect.children]
    assert attempts == [("counts#1", "error", 1), ("counts#2", "error", 1), ("counts#3", "ok", 0)]
    assert lockstep.replay(fork.address, RETRYING, store=store).identical
