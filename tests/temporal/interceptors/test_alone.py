"""LockstepInterceptor without the plugin: what a worker records of its workflows."""

from __future__ import annotations

import asyncio
import inspect
import logging
import random
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import kitchen_sink as sink
import observed
import observed_workflows as own
import pytest
from kitchen_sink import Edges, KitchenSink, Order, serve_kitchen_sink
from live_server import Server, Work, events, run, unique, worked, working
from observed import effects, recorded, steps
from one_file import OneFile
from temporalio.client import WorkflowFailureError
from temporalio.worker import ExecuteWorkflowInput, WorkflowInboundInterceptor

from lockstep.log.store import open_store
from lockstep_temporal import LockstepInterceptor
from lockstep_temporal.inside import Inbound
from lockstep_temporal.scribe import scribe

OWN: dict[str, Any] = {"workflows": own.WORKFLOWS, "activities": own.ACTIVITIES}
SINK: dict[str, Any] = {"workflows": sink.WORKFLOWS, "activities": sink.ACTIVITIES}


pytestmark = pytest.mark.usefixtures("no_faults")


def test_activities_children_signals_and_updates_are_recorded_with_what_was_asked_and_answered(
    temporal_server: Server, store: Path, recwarn: pytest.WarningsRecorder
) -> None:
    ran = run(
        temporal_server, KitchenSink.run, Order(7, ["jam", "bread"]), drive=serve_kitchen_sink,
        interceptors=[LockstepInterceptor(store)], **SINK,
    )  # fmt: skip
    assert scribe.flush()
    read = recorded(store, ran.workflow_id)
    assert read.origin == "interceptor"
    (turn,) = read.turns
    assert (turn.workflow_type, turn.run_id, turn.cause, turn.status) == ("KitchenSink", ran.run_ids[0], "start", "ok")
    assert turn.arguments == [{"id": 7, "items": ["jam", "bread"], "rounds": 0}]
    assert read.body(turn.end_seq) == ran.result
    found = {(kind, name): (asked, answer) for kind, name, asked, answer in effects(read)}
    assert found["activity", "look_up"] == ({"arguments": [7]}, {"id": 7, "total": 700, "status": "open"})
    assert [answer for kind, name, _, answer in effects(read) if name == "price"] == [300, 500]
    assert found["local_activity", "local_sum"] == ({"arguments": [[300, 500]]}, 800)
    asked, answer = found["child", "Packing"]
    assert (asked["arguments"], answer) == (["jam"], "jam packed for 300")
    assert found["signal", "pay"] == ({}, [2500, "round 0"])
    assert found["update", "close"] == ({}, ["closed 0"])
    declined = found["activity", "declined"][1]
    assert "card 4711 was declined" in str(declined)
    assert [name for kind, name, _, _ in effects(read) if kind == "update"] == ["close"]  # one was rejected
    assert steps(read)[0] == ("start", "KitchenSink")
    assert [str(each.message) for each in recwarn if "imported after" in str(each.message)] == []  # in the sandbox
    assert read.reader.info.incomplete == 0


def test_continue_as_new_makes_turns_of_one_run(temporal_server: Server, store: Path) -> None:
    ran = run(temporal_server, Edges.run, 1, interceptors=[LockstepInterceptor(store)], **SINK)
    assert scribe.flush()
    read = recorded(store, ran.workflow_id)
    assert [(turn.run_id, turn.cause, turn.arguments) for turn in read.turns] == [
        (ran.run_ids[0], "start", [1]), (ran.run_ids[1], "continue_as_new", [0]),
    ]  # fmt: skip
    first, last = read.turns
    assert read.body(first.end_seq) == {"continue_as_new": {"workflow_type": "Edges", "arguments": [0]}}
    assert read.body(last.end_seq) == ran.result
    kinds = [effect.kind for effect in read.effects if effect.run_id == last.run_id]
    assert "signal_external" in kinds and "child" in kinds
    cancelled = [effect for effect in read.effects if effect.name == "until_cancelled"]
    assert [str(effect.end.what) for effect in cancelled if effect.end] == ["cancelled", "ok"] * 2


def test_arguments_are_those_of_the_time_of_the_call(temporal_server: Server, store: Path) -> None:
    ran = run(temporal_server, own.Grows.run, 3, interceptors=[LockstepInterceptor(store)], **OWN)
    assert scribe.flush()
    asked = [each[2]["arguments"] for each in effects(recorded(store, ran.workflow_id))]
    assert asked == [[[f"round {number}" for number in range(upto)]] for upto in (1, 2, 3)]


@pytest.mark.parametrize("sandboxed", [True, False], ids=["sandboxed", "unsandboxed"])
def test_random_numbers_are_those_that_the_workflow_draws_without_us(
    temporal_server: Server, store: Path, sandboxed: bool
) -> None:
    shuffled = random.Random(7)
    programs = [
        [shuffled.choice(["activity", "local", "child", "signal", "timer"]) for _ in range(6)] for _ in range(6)
    ]

    async def about(work: Work) -> list[dict[str, Any]]:
        handles = [await work.start(own.Draws.run, program) for program in programs]
        for handle, program in zip(handles, programs, strict=True):
            for _ in range(program.count("signal")):
                await handle.signal(own.Draws.tell)
            await handle.query(own.Draws.waits)
        return [await handle.result() for handle in handles]

    results = worked(
        temporal_server, about, interceptors=[LockstepInterceptor(store)], sandboxed=sandboxed, **OWN
    )  # fmt: skip
    for program, result in zip(programs, results, strict=True):
        drawn = random.Random(result["seed"])
        assert result["drawn"] == [drawn.random() for _ in range(len(program) + 1)]


def test_a_signal_that_starts_a_workflow_comes_after_its_start(temporal_server: Server, store: Path) -> None:
    ran = run(
        temporal_server, own.Waits.run, "ada", start={"start_signal": "say", "start_signal_args": ["at once"]},
        interceptors=[LockstepInterceptor(store)], **OWN,
    )  # fmt: skip
    assert scribe.flush()
    read = recorded(store, ran.workflow_id)
    assert (steps(read)[0], read.turns[0].arguments) == (("start", "Waits, say"), ["ada"])
    assert effects(read)[0] == ("signal", "say", {}, ["at once"])


def test_what_dynamic_code_is_given_is_recorded_as_of_any_other(temporal_server: Server, store: Path) -> None:
    async def about(work: Work) -> str:
        handle = await work.start("Unheard", "at", "first")
        await handle.signal("whatever", args=["one", "two"])
        assert set(await handle.result()) == {"unheard of of 2", "whatever with 2"}
        return handle.id

    name = worked(temporal_server, about, interceptors=[LockstepInterceptor(store)], **OWN)
    assert scribe.flush()
    read = recorded(store, name)
    assert (read.turns[0].workflow_type, read.turns[0].arguments) == ("Unheard", ["at", "first"])
    found = {what: (asked, answer) for _, what, asked, answer in effects(read)}
    assert found["unheard of"] == ({"arguments": ["a", 2]}, "unheard of of 2")
    assert found["whatever"] == ({}, ["one", "two"])


def test_workflows_may_be_in_the_file_that_imports_the_interceptor(temporal_server: Server, store: Path) -> None:
    ran = run(temporal_server, OneFile.run, "ada", workflows=[OneFile], interceptors=[LockstepInterceptor(store)])
    assert ran.result == "ada lockstep_temporal.interceptors"
    assert scribe.flush()
    assert steps(recorded(store, ran.workflow_id)) == [("start", "OneFile")]


def test_a_workflow_that_the_collector_ends_tells_nothing() -> None:
    class Ends(WorkflowInboundInterceptor):
        def __init__(self) -> None:
            pass

        async def execute_workflow(self, input: Any) -> Any:
            await asyncio.sleep(0)

    inbound = Inbound(Ends())
    inbound._on = True
    running = inbound.execute_workflow(ExecuteWorkflowInput(own.Waits, own.Waits.run, ["ada"], {}))
    running.send(None)
    running.close()  # outside of any workflow's loop
    assert inspect.getcoroutinestate(running) == inspect.CORO_CLOSED


def test_a_task_that_fails_and_is_tried_again_is_recorded_once(temporal_server: Server, store: Path) -> None:
    name = unique("stumbles")
    ran = run(temporal_server, own.Stumbles.run, name, id=name, interceptors=[LockstepInterceptor(store)], **OWN)
    assert ran.result == f"{name} 1, {name} 2"
    assert scribe.flush()
    read = recorded(store, name)
    assert [(kind, asked["arguments"]) for kind, _, asked, _ in effects(read)] == [
        ("activity", [f"{name} 1"]), ("activity", [f"{name} 2"]),
    ]  # fmt: skip
    assert [turn.status for turn in read.turns] == ["ok"]


def test_a_worker_that_keeps_no_workflow_records_each_thing_once_and_no_queries(
    temporal_server: Server, store: Path
) -> None:
    async def about(work: Work) -> tuple[str, Any]:
        handle = await work.start(own.Waits.run, "ada")
        while await handle.query(own.Waits.heard) != ["ada"]:
            await asyncio.sleep(0.01)
        await handle.signal(own.Waits.say, "go on")
        result = await handle.result()
        assert await handle.query(own.Waits.heard) == result  # of a workflow that is over
        return handle.id, result

    name, _ = worked(
        temporal_server, about, interceptors=[LockstepInterceptor(store)], max_cached_workflows=0, **OWN
    )  # fmt: skip
    assert scribe.flush()
    read = recorded(store, name)
    assert [(kind, what, answer) for kind, what, _, answer in effects(read)] == [
        ("activity", "echo", "ada"), ("signal", "say", ["go on"]), ("activity", "echo", "ada again"),
    ]  # fmt: skip
    assert [step[0] for step in steps(read)] == ["start", "activity", "signal", "activity"]
    assert len(read.turns) == 1


def test_another_worker_goes_on_with_the_run(temporal_server: Server, store: Path) -> None:
    queue, name = unique("queue"), unique("waits")

    async def first() -> None:
        async with working(temporal_server, interceptors=[LockstepInterceptor(store)], task_queue=queue, **OWN) as work:
            handle = await work.start(own.Waits.run, "ada", id=name)
            while await handle.query(own.Waits.heard) != ["ada"]:
                await asyncio.sleep(0.01)

    async def second() -> Any:
        async with working(temporal_server, interceptors=[LockstepInterceptor(store)], task_queue=queue, **OWN) as work:
            handle = work.client.get_workflow_handle_for(own.Waits.run, name)
            await handle.signal(own.Waits.say, "go on")
            return await handle.result()

    asyncio.run(first())
    assert asyncio.run(second()) == ["ada", "go on", "ada again"]
    assert scribe.flush()
    read = recorded(store, name)
    assert [(kind, what, answer) for kind, what, _, answer in effects(read)] == [
        ("activity", "echo", "ada"), ("signal", "say", ["go on"]), ("activity", "echo", "ada again"),
    ]  # fmt: skip
    assert [turn.status for turn in read.turns] == ["ok"]


def test_registered_on_client_and_worker_it_records_once_and_says_so_once(
    temporal_server: Server, store: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "lockstep")
    ran = run(
        temporal_server, own.Beats.run, 2, client_interceptors=[LockstepInterceptor(store)],
        interceptors=[LockstepInterceptor(store)], **OWN,
    )  # fmt: skip
    assert scribe.flush()
    read = recorded(store, ran.workflow_id)
    (effect,) = read.effects
    assert [each["name"] for each in observed.attempts(read, effect)] == ["beats#1", "beats#2"]
    told = [record.message for record in caplog.records if "registered twice" in record.message]
    assert len(told) == 1


def test_what_a_codec_encrypts_is_not_written_in_clear(temporal_server: Server, store: Path) -> None:
    ran = run(
        temporal_server, own.Fails.run, "4711-0815", interceptors=[LockstepInterceptor(store)],
        data_converter=observed.CODED, **OWN,
    )  # fmt: skip
    assert isinstance(ran.error, WorkflowFailureError)
    assert scribe.flush()
    read = recorded(store, ran.workflow_id)
    assert [effect.name for effect in read.effects] == ["fails"]
    (tried,) = observed.attempts(read, read.effects[0])
    assert tried["status"] == "error" and "it was declined" in str(tried["end"])
    said = observed.whole(store)
    assert "it was declined" in said and "4711-0815" not in said


def test_the_sdks_replayer_records_nothing(temporal_server: Server, store: Path, tmp_path: Path) -> None:
    import json

    from temporalio.client import WorkflowHistory
    from temporalio.worker import Replayer

    ran = run(temporal_server, own.Grows.run, 2, **OWN)
    cut = json.loads(ran.history)
    cut["events"] = cut["events"][:-2]  # its code goes on, as if it were new

    async def about() -> None:
        replayer = Replayer(workflows=own.WORKFLOWS, interceptors=[LockstepInterceptor(store)])
        await replayer.replay_workflow(WorkflowHistory.from_json(ran.workflow_id, cut))

    asyncio.run(about())
    assert scribe.flush()
    assert not store.exists()


def test_a_store_that_is_locked_for_a_while_holds_up_no_workflow_and_gets_all_of_it(
    temporal_server: Server, store: Path
) -> None:
    open_store(str(store), create=True).close()

    async def about(work: Work) -> Any:
        with closing(sqlite3.connect(store, isolation_level=None)) as other:
            other.execute("BEGIN EXCLUSIVE")
            handle = await work.start(own.Grows.run, 3)
            result = await handle.result()
            await asyncio.sleep(0.1)
            other.execute("ROLLBACK")
        return result, handle.id, (await handle.fetch_history()).to_json()

    result, name, history = worked(temporal_server, about, interceptors=[LockstepInterceptor(store)], **OWN)
    assert result == ["round 0", "round 1", "round 2"]
    assert "WORKFLOW_TASK_FAILED" not in events(history)
    assert scribe.flush()
    read = recorded(store, name)
    assert [len(observed.attempts(read, effect)) for effect in read.effects] == [1, 1, 1]
    assert [turn.status for turn in read.turns] == ["ok"]


def test_a_store_that_cannot_be_written_stops_no_workflow(
    temporal_server: Server, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lockstep_temporal.scribe.PATIENCE", 0.05)
    caplog.set_level(logging.WARNING, "lockstep")
    (tmp_path / "taken").mkdir()
    ran = run(
        temporal_server, own.Grows.run, 1, interceptors=[LockstepInterceptor(str(tmp_path / "taken"))], **OWN
    )  # fmt: skip
    assert ran.result == ["round 0"]
    while not (scribe.flush() and scribe.idle):
        time.sleep(0.01)
    assert scribe.faults and "taken" in scribe.faults[0]
    scribe.faults.clear()
    assert "lockstep could not record" in caplog.text
