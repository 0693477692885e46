"""Workers on a real server, whose workflows the plugin records."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import os
import sqlite3
from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import kitchen_sink as sink
import odd_workflows as odd
import pytest
from live_server import Server, Work, run, worked
from lived_executions import effects, recorded, steps
from temporalio.api.common.v1 import Payload
from temporalio.client import WorkflowHistory
from temporalio.common import RetryPolicy
from temporalio.converter import DataConverter, PayloadCodec
from temporalio.plugin import SimplePlugin
from temporalio.worker import Replayer, UnsandboxedWorkflowRunner
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner

import lockstep
from lockstep.log.store import open_store
from lockstep_temporal import LockstepInterceptor, LockstepPlugin, interceptors
from lockstep_temporal.books import Books

ORDER = sink.Order(7, ["lamp", "rug"], rounds=1)
ODD = {"workflows": odd.WORKFLOWS, "activities": odd.ACTIVITIES}
HOW = {"workflows": sink.WORKFLOWS, "activities": sink.ACTIVITIES}


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Activities of these workflows fail on purpose."""
    logger = logging.getLogger("temporalio.activity")
    logger.setLevel(logging.CRITICAL)
    yield
    logger.setLevel(logging.NOTSET)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[str]:
    path = str(tmp_path / "store.db")
    yield path
    Books.of(path).close()


class Framework(SimplePlugin):
    """As plugins of AI frameworks add their modules: to sandboxed runners only."""

    def __init__(self) -> None:
        super().__init__("framework", workflow_runner=self._runner)
        self.met = 0

    def _runner(self, runner: Any) -> Any:
        if isinstance(runner, SandboxedWorkflowRunner):
            self.met += 1
            passed = runner.restrictions.with_passthrough_modules("errands")
            return dataclasses.replace(runner, restrictions=passed)
        return runner


def names(store: str) -> list[str]:
    with open_store(store) as opened:
        return sorted(opened.names())


def all_identical(store: str, **own: Any) -> None:
    for name in names(store):
        replay = lockstep.replay(name, sink, store=store, **own)
        assert replay.identical, f"{name}: {replay.divergence} {replay.coverage}"


@pytest.mark.parametrize("runner", [SandboxedWorkflowRunner(), UnsandboxedWorkflowRunner()])
def test_a_workflow_with_a_bit_of_everything_is_recorded_and_replayed(
    temporal_server: Server, store: str, runner: Any
) -> None:
    ran = run(
        temporal_server, sink.KitchenSink.run, ORDER, drive=lambda handle: sink.serve_kitchen_sink(handle, 1),
        plugins=[LockstepPlugin(store)], workflow_runner=runner, **HOW,
    )  # fmt: skip
    name = f"temporal/{ran.workflow_id}"
    with recorded(store, name) as found:
        assert found.reader.info.incomplete == 0
        assert [(turn.run_id, turn.cause, turn.status) for turn in found.turns] == [
            (ran.run_ids[0], "start", "ok"), (ran.run_ids[1], "continue_as_new", "ok"),
        ]  # fmt: skip
        assert found.record.result(found.record.turns[1]) == ran.result
        kinds = {effect.kind for effect in found.effects}
    assert kinds == {"activity", "local_activity", "timer", "child", "signal", "update"}
    assert len(names(store)) == 5  # and its children
    replay = lockstep.replay(name, sink, store=store)
    assert (replay.identical, replay.divergence, replay.result) == (True, None, ran.result)


@pytest.mark.parametrize("first", [True, False])
def test_it_works_before_and_after_plugins_that_change_the_sandbox(
    temporal_server: Server, store: str, first: bool
) -> None:
    framework, ours = Framework(), LockstepPlugin(store)
    plugins = [ours, framework] if first else [framework, ours]
    ran = run(temporal_server, sink.Steps.run, 2, plugins=plugins, **HOW)
    assert framework.met == 1
    assert steps(store, f"temporal/{ran.workflow_id}") == ["start Steps", "activity add", "activity add"]
    all_identical(store)


@pytest.mark.filterwarnings("ignore:The same plugin type")
def test_it_records_once_however_often_it_is_registered(
    temporal_server: Server, store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(interceptors, "_warned", True)  # it is said once in a process, and another test waits for that
    ran = run(
        temporal_server, sink.Steps.run, 2, plugins=[LockstepPlugin(store)], worker_plugins=[LockstepPlugin(store)],
        client_interceptors=[LockstepInterceptor(store)], interceptors=[LockstepInterceptor(store)], **HOW,
    )  # fmt: skip
    assert names(store) == [f"temporal/{ran.workflow_id}"]
    with recorded(store, f"temporal/{ran.workflow_id}") as found:
        assert found.origin == "worker"
        assert [event.name for _, event in found.record.heads if event.what == "attempt"] == ["add#1", "add#1"]
    assert steps(store, f"temporal/{ran.workflow_id}") == ["start Steps", "activity add", "activity add"]
    all_identical(store)


def test_workers_that_keep_no_workflow_in_memory_write_each_task_once(temporal_server: Server, store: str) -> None:
    ran = run(
        temporal_server, sink.Steps.run, 4, plugins=[LockstepPlugin(store)], max_cached_workflows=0,
        max_concurrent_workflow_task_polls=1, **HOW,
    )  # fmt: skip
    assert steps(store, f"temporal/{ran.workflow_id}") == ["start Steps", *["activity add"] * 4]
    all_identical(store)


def test_heartbeats_async_completion_and_cancellation_are_recorded(temporal_server: Server, store: str) -> None:
    ran = run(temporal_server, sink.Edges.run, 0, plugins=[LockstepPlugin(store)], **HOW)
    assert ran.error is None
    found = dict(effects(store, f"temporal/{ran.workflow_id}"))
    assert (found["approved_elsewhere"], found["resumes"], found["60m"]) == ("ok", "ok", "cancelled")
    all_identical(store)


def test_a_cancelled_workflow_ends_as_such(temporal_server: Server, store: str) -> None:
    ran = run(temporal_server, sink.Unwinds.run, "it", drive=sink.serve_unwinds, plugins=[LockstepPlugin(store)], **HOW)
    with recorded(store, f"temporal/{ran.workflow_id}") as found:
        assert found.turns[0].status == "cancelled"
    all_identical(store)


def test_replayers_record_nothing(temporal_server: Server, store: str) -> None:
    async def about(work: Work) -> Any:
        ran = await work.ran(await work.start(sink.Steps.run, 2))
        replayer = Replayer(workflows=sink.WORKFLOWS, plugins=[LockstepPlugin(store)])
        await replayer.replay_workflow(WorkflowHistory.from_json(ran.workflow_id, ran.history))

    worked(temporal_server, about, **HOW)
    assert not os.path.exists(store)


def test_what_is_cancelled_at_once_let_go_of_or_tried_again_later_is_recorded(
    temporal_server: Server, store: str
) -> None:
    ran = run(temporal_server, odd.Odd.run, plugins=[LockstepPlugin(store)], **ODD)
    name = f"temporal/{ran.workflow_id}"
    with recorded(store, name) as found:
        told = [(each.kind, each.name, each.asked, each.answered) for each in found.effects]
        commands = found.steps[0].field("commands")
    # The server was never told of what was begun and cancelled in one task: it is no effect.
    assert told[:3] == [("activity", "slow", 0, 1), ("timer", "0.02s", 0, 1), ("child", "Waits", 1, 2)]
    assert {"cancel timer", "child Waits"} <= set(commands)  # type: ignore[arg-type]
    # Local activities run at once, all else of the workflow task begins with its end.
    assert told[3:6] == [
        ("local_activity", "quick", 2, 2),
        ("local_activity", "quick", 2, 2),
        ("activity", "quick", 2, 3),
    ]
    # However often it is tried, with timers in between, it is one call.
    assert [end for each, end in effects(store, name) if each == "third_time"] == ["ok"]
    assert [end for each, end in effects(store, name) if each in ("hurry", f"{ran.workflow_id}-other")] == ["error"] * 2
    replay = lockstep.replay(name, odd, store=store)
    assert (replay.identical, replay.result) == (True, ran.result)


def test_a_retried_workflow_is_one_run_with_a_turn_for_each_attempt(temporal_server: Server, store: str) -> None:
    policy = RetryPolicy(initial_interval=timedelta(milliseconds=10))
    plugins = [LockstepPlugin(store)]
    ran = run(temporal_server, odd.Stumbles.run, plugins=plugins, start={"retry_policy": policy}, **ODD)
    name = f"temporal/{ran.workflow_id}"
    with recorded(store, name) as found:
        assert [(turn.cause, turn.status) for turn in found.turns] == [
            ("start", "error"), ("retry", "error"), ("retry", "ok"),
        ]  # fmt: skip
        assert [turn.continued_from for turn in found.turns] == ["", *ran.run_ids[:2]]
        assert found.reader.info.state == "complete"
    replay = lockstep.replay(name, odd, store=store)
    assert (replay.identical, replay.results[-1]) == (True, "attempt 3")


# Secrets and codecs.


class Xor(PayloadCodec):
    """Another cipher text each time, as real ones have."""

    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return [
            Payload(
                metadata={"encoding": b"binary/xor"},
                data=os.urandom(4) + bytes(byte ^ 42 for byte in payload.SerializeToString()),
            )
            for payload in payloads
        ]

    async def decode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return [
            Payload.FromString(bytes(byte ^ 42 for byte in payload.data[4:]))
            if payload.metadata.get("encoding") == b"binary/xor"
            else payload
            for payload in payloads
        ]


CODED = dataclasses.replace(DataConverter.default, payload_codec=Xor())
# With spaces, which no cipher text has, written as it is.
SPACED = sink.Order(7, ["an oak lamp", "a red rug"], rounds=1)
WORDS = ("an oak lamp", "a red rug", "packed for", "attempt 3", "round 1", "closed 1", "undone")
FAILURES = ("card 4711 was declined", "no box is left")


def told(store: str) -> str:
    """All that a store says, its rows unpacked, and its files."""
    found = []
    with open_store(store) as opened:
        for name in opened.names():
            reader = opened.run(name)
            for branch in reader.branches:
                on = reader.on(branch.name)
                found += [repr(event) for event in on.events(on.main)]
    for path in Path(store).parent.rglob("*"):
        if path.is_file():
            found.append(path.read_bytes().decode("latin-1"))
    return "\n".join(found)


@pytest.mark.parametrize("converter", [CODED, DataConverter.default])
def test_what_a_codec_encrypts_is_written_nowhere_in_clear(
    temporal_server: Server, store: str, converter: DataConverter
) -> None:
    coded = converter is CODED
    ran = run(
        temporal_server, sink.KitchenSink.run, SPACED, drive=lambda handle: sink.serve_kitchen_sink(handle, 1),
        plugins=[LockstepPlugin(store)], data_converter=converter, **HOW,
    )  # fmt: skip
    name = f"temporal/{ran.workflow_id}"
    if coded:
        fork = lockstep.fork(
            f"{name}:1.1", sink, store=store, data_converter=CODED, edits={"1.1": {"id": 8, "status": "undone"}},
            live=["price", "undo"],
        )  # fmt: skip
        assert lockstep.replay(fork.address, sink, store=store, data_converter=CODED).identical
    Books.of(store).close()
    said = told(store)
    # What a failure says in words, the server has in clear too.
    clear = FAILURES if coded else WORDS + FAILURES
    assert [word for word in WORDS + FAILURES if word in said] == list(clear)
    if coded:
        assert all(word in "".join(ran.histories) for word in FAILURES)
        all_identical(store, data_converter=CODED)
        with pytest.raises(lockstep.LockstepError, match="LS402"):
            lockstep.replay(name, sink, store=store)


def test_equal_calls_have_equal_keys_though_their_cipher_texts_differ(temporal_server: Server, store: str) -> None:
    keys = []
    for _ in range(2):
        ran = run(temporal_server, sink.Steps.run, 2, plugins=[LockstepPlugin(store)], data_converter=CODED, **HOW)
        with recorded(store, f"temporal/{ran.workflow_id}") as found:
            keys.append([effect.begin.key for effect in found.effects])
            assert len(set(keys[-1])) == 2
    assert keys[0] != keys[1]  # the key that they are made with is the run's own


SECRET = "sk-proj-abcdefghijklmnop0123456789"


def test_secrets_are_in_the_vault_and_nowhere_else(temporal_server: Server, store: str) -> None:
    ran = run(
        temporal_server, sink.Unwinds.run, SECRET, drive=sink.serve_unwinds, plugins=[LockstepPlugin(store)], **HOW
    )
    Books.of(store).close()
    vaults = [path for path in Path(f"{store}.vault").iterdir() if SECRET in path.read_text()]
    assert len(vaults) == 1
    vaults[0].rename(Path(store).parent.parent / "elsewhere")
    assert SECRET not in told(store)
    (Path(store).parent.parent / "elsewhere").rename(vaults[0])
    assert lockstep.replay(f"temporal/{ran.workflow_id}", sink, store=store).identical


# What goes wrong with us.


def test_a_store_that_cannot_be_written_stops_no_workflow(
    temporal_server: Server, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "store.db"
    path.write_text("this is no store")
    ran = run(temporal_server, sink.Steps.run, 3, plugins=[LockstepPlugin(str(path))], **HOW)
    assert ran.result == [1, 3, 6]
    assert "lockstep could not record" in caplog.text
    assert path.read_text() == "this is no store"


def test_while_somebody_else_keeps_the_store_workflows_go_on_and_what_was_missed_is_written_later(
    temporal_server: Server, store: str
) -> None:
    plugin = LockstepPlugin(store)

    async def about(work: Work) -> Any:
        await (await work.start(sink.Steps.run, 1)).result()
        blocker = sqlite3.connect(store, isolation_level=None)
        blocker.execute("BEGIN IMMEDIATE")
        handle = await work.start(sink.KitchenSink.run, sink.Order(7, ["lamp"]))
        while not (await handle.query(sink.KitchenSink.state))["waiting"]:
            await asyncio.sleep(0.01)
        blocker.execute("ROLLBACK")
        blocker.close()
        await sink.serve_kitchen_sink(handle, 0)
        return await work.ran(handle)

    ran = worked(temporal_server, about, plugins=[plugin], **HOW)
    assert ran.error is None
    assert Books.of(store).settle(30)
    name = f"temporal/{ran.workflow_id}"
    assert steps(store, name)[0] == "start KitchenSink"
    assert lockstep.replay(name, sink, store=store).divergence is None
    with recorded(store, name) as found:
        assert found.reader.info.incomplete == 0  # late, and whole


def test_a_store_that_the_server_of_another_run_writes_has_the_workflow_of_its_own_name(
    temporal_server: Server, store: str
) -> None:
    first = run(temporal_server, sink.Steps.run, 1, id="order", plugins=[LockstepPlugin(store)], **HOW)
    second = run(temporal_server, sink.Steps.run, 2, id="order", plugins=[LockstepPlugin(store)], **HOW)
    assert names(store) == ["temporal/order", "temporal/order-2"]
    with recorded(store, "temporal/order-2") as found:
        assert found.native["first_run_id"] == second.run_ids[0] != first.run_ids[0]
