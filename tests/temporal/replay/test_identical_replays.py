"""A workflow's run, replayed by the code that made it: nothing differs, and what it returned is there again."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import one_workflow
import pytest
import replayed_workflows as flows
from scripted_workflow import Script, resolved, scripted
from temporalio.exceptions import ActivityError

import lockstep
from lockstep_temporal import Setup

CARDS = [4000, -400]


def order(script: Script, order: int = 4711) -> None:
    script.start(order)
    script.resolve(1, {"id": order})
    script.fire(1)
    script.resolve(2, CARDS[0])
    script.resolve(3, CARDS[1])


@pytest.mark.parametrize("target", [flows.Orders, flows.Unsandboxed, Setup(workflows=[flows.Orders], sandboxed=False)])
def test_the_same_code_makes_the_same_run(store: Path, target: Any) -> None:
    with scripted(store, flows.Orders) as script:
        order(script)
    done = lockstep.replay("temporal/order-7", target, store=store)
    assert (done.identical, done.divergence, done.error) == (True, None, None)
    assert done.result == flows.Receipt(4711, 3600)
    assert done.report.steps == 5
    assert done.report.counts == {"activity": 3, "timer": 1}
    assert {entry.how for entry in done.coverage} == {"recorded"}


def test_a_module_and_a_list_are_targets_too(store: Path) -> None:
    with scripted(store, one_workflow.Greets) as script:
        script.start("Ada")
        script.resolve(1, "Hello Ada")
    for target in (one_workflow, "one_workflow", [one_workflow.Greets, one_workflow.greet], "one_workflow:Greets"):
        done = lockstep.replay("temporal/order-7", target, store=store)
        assert (done.identical, done.result) == (True, "Hello Ada, said at 22:13")


def test_the_digest_is_that_of_each_replay_and_of_no_other_run(store: Path) -> None:
    with scripted(store, flows.Orders) as script:
        order(script)
    with scripted(store, flows.Orders, "order-8") as script:
        order(script, 4712)
    same = {lockstep.replay("temporal/order-7", flows.Orders, store=store).report.digest for _ in range(2)}
    assert len(same) == 1
    assert lockstep.replay("temporal/order-8", flows.Orders, store=store).report.digest not in same


@pytest.mark.parametrize("awaited", [True, False])
def test_it_replays_under_a_running_loop(store: Path, awaited: bool) -> None:
    with scripted(store, flows.Orders) as script:
        order(script)

    async def run() -> lockstep.Replay:
        if awaited:
            return await lockstep.areplay("temporal/order-7", flows.Orders, store=store)
        return lockstep.replay("temporal/order-7", flows.Orders, store=store)

    assert asyncio.run(run()).identical


def test_each_execution_of_a_chain_is_a_turn(store: Path) -> None:
    with scripted(store, flows.Rounds) as script:
        for left in (2, 1, 0):
            script.start(left, seed=left)
            script.resolve(1, {})
    done = lockstep.replay("temporal/order-7", flows.Rounds, store=store)
    assert done.identical
    assert done.results == [None, None, "done"]
    assert done.report.steps == 6
    last = lockstep.replay("temporal/order-7", flows.Rounds, store=store, turn=3)
    assert (last.identical, last.results, last.report.steps) == (True, ["done"], 2)


def test_a_replay_stops_after_a_step(store: Path) -> None:
    with scripted(store, flows.Orders) as script:
        order(script)
    done = lockstep.replay("temporal/order-7", flows.Orders, store=store, until=2)
    assert (done.identical, done.report.steps, done.results) == (True, 3, [])
    changed = lockstep.replay("temporal/order-7", flows.OtherResult, store=store, until=3)
    assert changed.identical


def test_a_workflow_that_failed_fails_again(store: Path) -> None:
    with scripted(store, flows.Refused) as script:
        script.start(4711)
        script.fail(1, "card was declined")
    done = lockstep.replay("temporal/order-7", flows.Refused, store=store)
    assert done.identical
    assert done.results == []
    assert isinstance(done.error, ActivityError)
    assert "card was declined" in str(done.error.cause)


def test_places_in_the_code_are_no_part_of_a_failure(store: Path) -> None:
    with scripted(store, flows.Refused) as script:
        script.start(4711)
        script.fail(1, "card was declined")
    assert lockstep.replay("temporal/order-7", flows.RefusedElsewhere, store=store).identical


def test_code_that_says_the_same_in_other_words_is_the_same(store: Path) -> None:
    with scripted(store, flows.Orders) as script:
        order(script)
    assert lockstep.replay("temporal/order-7", flows.SameInOtherWords, store=store).identical


def test_a_run_that_was_cut_off_is_identical_up_to_there(store: Path) -> None:
    with scripted(store, flows.Orders) as script:
        script.start(4711)
        script.resolve(1, {"id": 4711})
    done = lockstep.replay("temporal/order-7", flows.Orders, store=store)
    assert (done.identical, done.report.cut, done.results) == (True, True, [])


def test_local_activities_that_were_open_at_once_are_named(store: Path) -> None:
    with scripted(store, flows.Locals) as script:
        script.start(1)
        script.resolve(2, 20, local=True)
        script.resolve(1, 10, local=True)
    done = lockstep.replay("temporal/order-7", flows.Locals, store=store)
    assert done.identical
    assert done.result == [10, 20]
    (told,) = (entry for entry in done.coverage if entry.source == "local activities")
    assert told.how == "differs"
    assert "2 were open at once (step 0)" in told.detail


def test_signals_come_where_they_came(store: Path) -> None:
    with scripted(store, flows.Listens) as script:
        script.start()
        script.signal("say", "one")
        script.signal("say", "two")
    done = lockstep.replay("temporal/order-7", flows.Listens, store=store)
    assert (done.identical, done.result) == (True, ["one", "two"])
    deaf = lockstep.replay("temporal/order-7", flows.ListensDeaf, store=store)
    difference = deaf.report.difference
    assert difference is not None
    assert (difference.step, difference.path) == (1, "upserted_memo.fields.heard")


def test_several_answers_in_one_workflow_task_come_together(store: Path) -> None:
    with scripted(store, flows.Orders) as script:
        script.start(4711)
        script.resolve(1, {})
        script.fire(1)
        script.several(resolved(3, -400), resolved(2, 4000))
    done = lockstep.replay("temporal/order-7", flows.Orders, store=store)
    assert (done.identical, done.report.steps, done.result) == (True, 4, flows.Receipt(4711, 3600))


def test_a_result_of_another_type_than_it_says_is_what_it_is(store: Path) -> None:
    with scripted(store, flows.SaysOtherType) as script:
        script.start(7)
    done = lockstep.replay("temporal/order-7", flows.SaysOtherType, store=store)
    assert (done.identical, done.result) == (True, "order 7")


@pytest.mark.parametrize("target", [flows.Clings, flows.CleansUp])
def test_code_that_holds_on_to_its_instance_holds_up_no_replay(store: Path, target: Any) -> None:
    with scripted(store, target) as script:
        script.start(7)
    done = lockstep.replay("temporal/order-7", target, store=store, deadline=0.3)
    assert (done.identical, done.report.cut) == (True, True)


def test_replays_at_once_do_not_meet(store: Path) -> None:
    with scripted(store, flows.Orders) as script:
        order(script)

    async def both() -> list[lockstep.Replay]:
        return await asyncio.gather(
            *(
                lockstep.areplay("temporal/order-7", target, store=store)
                for target in (flows.Raises, flows.Orders, flows.OtherArgument, flows.Raises)
            )
        )

    done = asyncio.run(both())
    assert [each.identical for each in done] == [False, True, False, False]
    sources = [each.report.difference.source for each in done if each.report.difference is not None]
    assert [source.rpartition(" in ")[2] for source in sources] == ["Raises.receipt", "both", "Raises.receipt"]
