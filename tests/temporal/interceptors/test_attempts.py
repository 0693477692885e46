"""Attempts of activities, as they stand inside the effects of a recorded workflow."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import kitchen_sink as sink
import observed_workflows as own
import pytest
from live_server import Server, Work, run, unique, worked, working
from observed import CODED, attempts, recorded, whole

from lockstep.debugger import commanded, listing, render_commanded
from lockstep.debugger.lines import plain
from lockstep.log.store import open_store
from lockstep.log.timeline import Timeline, resolve
from lockstep_temporal import LockstepInterceptor, LockstepPlugin
from lockstep_temporal.layout import run_name
from lockstep_temporal.recorded import Recorded
from lockstep_temporal.scribe import scribe

OWN: dict[str, Any] = {"workflows": own.WORKFLOWS, "activities": own.ACTIVITIES}
SINK: dict[str, Any] = {"workflows": sink.WORKFLOWS, "activities": sink.ACTIVITIES}


def plugin(store: Path) -> dict[str, Any]:
    return {"plugins": [LockstepPlugin(store)]}


def alone(store: Path) -> dict[str, Any]:
    return {"interceptors": [LockstepInterceptor(store)]}


both = pytest.mark.parametrize("recording", [plugin, alone])


pytestmark = pytest.mark.usefixtures("no_faults")


def tried(read: Recorded, name: str) -> list[dict[str, Any]]:
    return [each for effect in read.effects if effect.name == name for each in attempts(read, effect)]


@both
def test_each_attempt_is_there_with_its_heartbeats_from_all_threads(
    temporal_server: Server, store: Path, recording: Any
) -> None:
    ran = run(temporal_server, own.Beats.run, 2, **recording(store), **OWN)
    read = recorded(store, ran.workflow_id)
    first, second = tried(read, "beats")
    assert (first["name"], first["status"], second["name"], second["status"]) == ("beats#1", "error", "beats#2", "ok")
    assert first["beats"] == [["own", 0], ["own", 1], ["other", 0], ["other", 1]] == second["beats"]
    assert first["request"] == {"attempt": 1, "given": ["int"]}
    assert second["request"] == {"attempt": 2, "heartbeat": ["other", 1], "given": ["int"]}
    assert second["end"] == {"returned": "int"}
    assert first["end"]["args"] == ["Once: once"]
    # The attempts are in the log before the answer that they led to.
    (effect,) = read.effects
    events = [event for event in read.reader.events(read.reader.main) if event.of == effect.begin.pos]
    assert [event.name for event in events] == ["beats#1", "beats#2", ""]


def test_show_tells_the_types_of_what_an_activity_was_given_and_returned(temporal_server: Server, store: Path) -> None:
    """A message of a class of its own that no hint names is a dict to who gets it."""
    ran = run(temporal_server, own.Talks.run, **plugin(store), **OWN)
    with open_store(str(store)) as opened:
        name = run_name(ran.workflow_id)
        shown = [listing.show(resolve(opened, f"{name}:{call}#1")) for call in ("say", "hear")]
        (said,), (heard,) = (each.attempts or () for each in shown)
        message = f"{own.Message.__module__}.Message"
        assert (said.given, said.returned) == (("str",), message)
        assert (heard.given, heard.returned) == (("list[dict[str, str]]", message), "str")
        lines = "\n".join(plain(line) for line in render_commanded.tried(shown[1].attempts or (), 120))
        assert "(list[dict[str, str]], Message) → str" in lines


@both
def test_the_edges_of_activities_are_told(temporal_server: Server, store: Path, recording: Any) -> None:
    ran = run(temporal_server, sink.Edges.run, 0, **recording(store), **SINK)
    read = recorded(store, ran.workflow_id)
    (approved,) = tried(read, "approved_elsewhere")
    assert approved["status"] == "pending"  # somebody else has completed it
    first, second = tried(read, "resumes")
    assert [page["page"] for [page] in first["beats"]] == [0, 1, 2, 3]
    assert (first["status"], second["request"]["heartbeat"], second["status"]) == ("error", [{"page": 3}], "ok")
    assert [each["status"] for each in tried(read, "flaky_local")] == ["error", "error", "ok"]
    assert [each["request"]["attempt"] for each in tried(read, "flaky_local")] == [1, 2, 3]
    # One is cancelled and ends so, later than its workflow waits for; the other one answers all the same.
    assert scribe.flush()
    read = recorded(store, ran.workflow_id)
    assert sorted(each["status"] for each in tried(read, "until_cancelled")) == ["cancelled", "ok"]
    timeline = Timeline(read.reader)
    shown = [
        attempt.status
        for step in timeline.steps
        for effect in step.effects
        if effect.name == "until_cancelled"
        for attempt in commanded.attempts(timeline, effect, "")
    ]
    assert sorted(shown) == ["cancelled", "ok"]
    assert all(
        set(map(str, each["beats"])) <= {"['leaves']", "['swallows']"} for each in tried(read, "until_cancelled")
    )


def test_attempts_in_a_process_that_only_runs_activities_are_told_in_the_workflows_run(
    temporal_server: Server, store: Path
) -> None:
    queue = unique("queue")
    program = [sys.executable, str(Path(__file__).parent / "activity_worker.py"), temporal_server.address, queue]

    async def about() -> str:
        async with working(
            temporal_server, plugins=[LockstepPlugin(store)], workflows=own.WORKFLOWS, task_queue=queue
        ) as work:
            handle = await work.start(own.Beats.run, 1)
            await handle.result()
            return handle.id

    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with subprocess.Popen([*program, str(store)], stdin=subprocess.PIPE, env=environment) as process:
        workflow_id = asyncio.run(about())
        process.communicate()
    assert process.returncode == 0
    read = recorded(store, workflow_id)
    assert [(each["name"], each["status"], len(each["beats"])) for each in tried(read, "beats")] == [
        ("beats#1", "error", 2), ("beats#2", "ok", 2),
    ]  # fmt: skip
    (effect,) = read.effects
    last = [event for event in read.reader.events(read.reader.main) if event.of == effect.begin.pos][-1]
    assert last.body == 1  # the activity's answer comes after all of its attempts


def test_activities_of_a_workflow_that_nobody_records_are_missed_once_and_run(
    temporal_server: Server, store: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lockstep_temporal.scribe.PATIENCE", 0.1)
    monkeypatch.setattr("lockstep_temporal.attempts._missed", set())  # it is told once in a process
    caplog.set_level(logging.WARNING, "lockstep")
    queue = unique("queue")

    async def about() -> list[Any]:
        async with (
            working(temporal_server, workflows=own.WORKFLOWS, task_queue=queue) as work,
            working(
                temporal_server, activities=own.ACTIVITIES, task_queue=queue, workflows=[],
                interceptors=[LockstepInterceptor(store)],
            ),
        ):  # fmt: skip
            results = [await (await work.start(own.Grows.run, 2)).result() for _ in range(2)]
            await asyncio.sleep(0.3)
            return results

    assert asyncio.run(about()) == [["round 0", "round 1"]] * 2
    assert scribe.flush()
    missed = [record.getMessage() for record in caplog.records if "are not recorded" in record.getMessage()]
    assert len(missed) == 1 and "Grows" in missed[0]
    assert not store.exists()


@both
def test_heartbeats_and_failures_that_a_codec_encrypts_are_not_in_clear(
    temporal_server: Server, store: Path, recording: Any
) -> None:
    async def about(work: Work) -> str:
        for workflow, argument in ((own.Fails.run, "4711-0815"), (own.Waits.run, "4711-0815")):
            handle = await work.start(workflow, argument)
            if workflow is own.Waits.run:
                await handle.signal(own.Waits.say, "0815-4711")
                assert await handle.result() == ["4711-0815", "0815-4711", "4711-0815 again"] or True
        resumed = await work.start(sink.Edges.run, 0)
        await resumed.result()
        return resumed.id

    options = {"workflows": [*own.WORKFLOWS, *sink.WORKFLOWS], "activities": [*own.ACTIVITIES, *sink.ACTIVITIES]}
    workflow_id = worked(temporal_server, about, data_converter=CODED, **recording(store), **options)
    assert scribe.flush()
    said = whole(store)
    assert "4711-0815" not in said and "0815-4711" not in said and "swallows" not in said
    read = recorded(store, workflow_id)
    first, second = tried(read, "resumes")
    assert all(beat[0]["$"] == "encoded" for beat in first["beats"])
    assert second["request"]["heartbeat"][0]["$"] == "encoded"


def test_a_plugin_and_an_interceptor_beside_it_tell_each_attempt_once(
    temporal_server: Server, store: Path, tmp_path: Path
) -> None:
    ran = run(
        temporal_server, own.Beats.run, 1, plugins=[LockstepPlugin(store)],
        interceptors=[LockstepInterceptor(str(tmp_path / "another.db"))], **OWN,
    )  # fmt: skip
    assert scribe.flush()
    read = recorded(store, ran.workflow_id)
    assert read.origin == "worker"
    assert [each["name"] for each in tried(read, "beats")] == ["beats#1", "beats#2"]
    assert not (tmp_path / "another.db").exists()
    assert json.loads(ran.history)["events"]
