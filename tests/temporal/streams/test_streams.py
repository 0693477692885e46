"""Activities that stream into their workflow: what they published is replayed in its pieces, comes in a fork with the
answer that was recorded with it, and anew with one that is given for real."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import offline_runs
import pytest
import stream_workflows as streams
from live_server import Server, Work, worked
from scripted_workflow import resolved, scripted
from temporalio.bridge.proto.workflow_activation import WorkflowActivationJob
from temporalio.contrib.workflow_streams import WorkflowStreamClient
from temporalio.converter import DataConverter, default
from turned_codec import Turned

import lockstep
from lockstep.log.store import open_store
from lockstep.log.timeline import resolve
from lockstep_temporal import LockstepPlugin, Setup
from lockstep_temporal.actors import Given
from lockstep_temporal.asks import completed
from lockstep_temporal.history import imports
from lockstep_temporal.streaming import PUBLISH

TARGET = Setup(workflows=streams.WORKFLOWS, activities=streams.ACTIVITIES)
PUBLISHED = ["about", "cats", "0", "about", "about", "cats", "0", "1"]
TOLD = ["about about cats 0 1", *PUBLISHED]
DOGS = ["about dogs", "1"]
AFTER_AN_EDIT = ["about about dogs 1", "about", "cats", "0", "about", "about", "dogs", "1"]


@pytest.fixture
def store(tmp_path: Path) -> str:
    streams.asked.clear()
    streams.lies.clear()
    return str(tmp_path / "store.db")


def recorded(store: str, workflow: type, *args: Any) -> str:
    run = offline_runs.record(store, workflow, *args, workflows=(), target=TARGET)
    streams.asked.clear()
    return run


def step_of(store: str, run: str, nth: int) -> int:
    """The step that the answer of the nth activity came with, from 1."""
    from lockstep_temporal.recorded import Recorded

    with open_store(store) as opened:
        effects = [each for each in Recorded(opened.run(run)).effects if not each.inbound]
        return effects[nth - 1].answered


def listened(
    server: Server, store: str, workflow: type, *args: Any, data_converter: Any = None
) -> tuple[str, list[str], str]:
    """On a real server, with a subscriber: its run, what that one heard, and the history."""

    async def about(work: Work) -> tuple[str, list[str], str]:
        handle = await work.start(workflow, *args)
        stream = WorkflowStreamClient.create(work.client, handle.id)
        topic = stream.topic("words", type=str)
        heard = [item.data async for item in topic.subscribe(poll_cooldown=streams.MOMENT)]
        ran = await work.ran(handle)
        return f"temporal/{handle.id}", heard, ran.history

    given: dict[str, Any] = {"workflows": streams.WORKFLOWS, "activities": streams.ACTIVITIES}
    return worked(server, about, plugins=[LockstepPlugin(store)], data_converter=data_converter, **given)


def newest(store: str, run: str) -> str:
    """The branch that it went on in, where the server did not take a task of it."""
    from lockstep.debugger import newest

    with open_store(store) as opened:
        return f"{run}@{newest.branch(opened.run(run)) or 'main'}"


def test_a_subscribers_pieces_are_in_the_replayed_workflow(store: str, temporal_server: Server) -> None:
    run, heard, _ = listened(temporal_server, store, streams.Tale, "cats")
    # With 1.27 a subscriber may miss the last piece of a workflow that is over.
    assert heard in (PUBLISHED, PUBLISHED[:-1])
    replay = lockstep.replay(newest(store, run), TARGET, store=store)
    assert (replay.identical, replay.result) == (True, TOLD), replay.divergence
    assert streams.asked == ["cats 0", "about cats 0 1"]  # both when it was recorded


def test_a_history_is_forked_with_what_was_streamed(store: str, tmp_path: Path, temporal_server: Server) -> None:
    _, _, history = listened(temporal_server, str(tmp_path / "other.db"), streams.Tale, "cats")
    with open_store(store, create=True) as opened:
        imports(opened, history.encode(), "tale")
    at = step_of(store, "tale", 1)
    assert lockstep.fork(f"tale:{at}", TARGET, store=store).result == TOLD
    edited = lockstep.fork(f"tale:{at}", TARGET, edits={f"{at}.1": "about dogs"}, live=["tell"], store=store)
    assert edited.result == AFTER_AN_EDIT


def test_what_was_streamed_comes_with_the_recorded_answer(store: str) -> None:
    """At each step. How many there are is for the server to say: what comes together is one."""
    run = recorded(store, streams.Tale, "cats")
    with open_store(store) as opened:
        last = resolve(opened, run).timeline.steps[-1].number
    assert last > 4
    for step in range(last + 1):
        fork = lockstep.fork(f"{run}:{step}", TARGET, store=store)
        assert (fork.state, fork.result, fork.live, streams.asked) == ("complete", TOLD, 0, [])
        assert lockstep.replay(fork.address, TARGET, store=store).identical


def test_an_activity_that_runs_for_real_streams_anew_and_only_that_comes(store: str) -> None:
    run = recorded(store, streams.Tale, "cats")
    at = step_of(store, run, 1)
    fork = lockstep.fork(f"{run}:{at}", TARGET, edits={f"{at}.1": "about dogs"}, live=["tell"], store=store)
    assert (fork.result, streams.asked) == (AFTER_AN_EDIT, ["about dogs 1"])
    replay = lockstep.replay(fork.address, TARGET, store=store)
    assert (replay.identical, replay.result) == (True, AFTER_AN_EDIT), replay.divergence


def test_it_streams_the_same_on_a_server(store: str, temporal_server: Server) -> None:
    run = recorded(store, streams.Tale, "cats")
    at = step_of(store, run, 1)
    given: dict[str, Any] = {"edits": {f"{at}.1": "about dogs"}, "live": ["tell"], "store": store}
    edited = lockstep.fork(f"{run}:{at}", TARGET, server=temporal_server.address, **given)
    assert edited.result == AFTER_AN_EDIT
    assert lockstep.replay(edited.address, TARGET, store=store).identical
    served = lockstep.fork(f"{run}:{at}", TARGET, server=temporal_server.address, store=store)
    assert (served.result, served.live) == (TOLD, 0)


def test_bisect_finds_the_answer_with_which_something_bad_was_published(store: str) -> None:
    things = ["cats", "dogs", "birds", "fish"]
    streams.lies.add("birds")
    run = recorded(store, streams.Notes, things)
    streams.lies.clear()

    def bad(view: Any) -> bool:
        return "lie" in view.result

    verdict = lockstep.bisect(run, TARGET, bad=bad, live=["tell"], store=store)
    assert (verdict.verdict, verdict.step) == ("culprit", step_of(store, run, 3))
    assert streams.asked


def test_a_piece_that_comes_with_an_answer_is_no_difference_of_a_fork(store: str) -> None:
    """Both in one workflow task, as from a server that had them both: the edited answer is all that differs."""
    with scripted(Path(store), [streams.Tale], "tale") as script:
        script.start("cats", 2)
        script.several(piece("first", 1, "about"))
        script.several(piece("first", 2, "cats"), resolved(1, "about cats 0"))
        script.several(piece("second", 1, "about"), resolved(2, "about about cats 0 1"))
    for address in ("2.1", "3.1"):
        step = address.partition(".")[0]
        fork = lockstep.fork(f"temporal/tale:{step}", TARGET, edits={address: "about dogs"}, live=["tell"], store=store)
        first = lockstep.diff("temporal/tale", fork.address, store=store).first
        assert (first.kind, first.address_a, first.effect) == ("changed", f"temporal/tale:{address}", "activity")


def piece(publisher: str, sequence: int, word: str) -> WorkflowActivationJob:
    """The signal with which an activity publishes a word."""
    convert = default().payload_converter.to_payloads
    data = base64.b64encode(convert([word])[0].SerializeToString()).decode()
    said = {"items": [{"topic": "words", "data": data}], "publisher_id": publisher, "sequence": sequence}
    job = WorkflowActivationJob()
    job.signal_workflow.signal_name = PUBLISH
    job.signal_workflow.input.extend(convert([said]))
    return job


@pytest.mark.parametrize("voices", [["do", "re mi fa"], ["sol la ti", "do"]])
def test_of_several_that_speak_at_once_each_has_its_own(store: str, voices: list[str]) -> None:
    run = recorded(store, streams.Choir, voices)
    whole = lockstep.replay(run, TARGET, store=store)
    assert whole.identical
    served = lockstep.fork(f"{run}:1", TARGET, store=store)
    assert (served.result, served.live) == (whole.result, 0)
    real = lockstep.fork(f"{run}:1", TARGET, live=["tell"], store=store)
    assert sorted(streams.asked) == sorted([*voices, " and ".join(f"about {voice}" for voice in voices)])
    assert real.result[0] == whole.result[0]


@pytest.mark.parametrize(("words", "timeout", "heard"), [(3, 20.0, True), (10_000, 0.2, False)])
def test_who_streams_to_a_workflow_that_waits_no_longer_holds_nothing_up(
    store: str, words: int, timeout: float, heard: bool
) -> None:
    run = recorded(store, streams.Impatient, words, timeout)
    for step in (0, 1):
        fork = lockstep.fork(f"{run}:{step}", TARGET, live=["linger"], tail="live", store=store)
        assert (fork.state, fork.result) == ("complete", heard)
        assert lockstep.replay(fork.address, TARGET, store=store).identical


def test_what_is_streamed_is_forked_under_a_codec(store: str, temporal_server: Server) -> None:
    converter = DataConverter(payload_codec=Turned())
    run, heard, _ = listened(temporal_server, store, streams.Tale, "cats", data_converter=converter)
    assert heard == PUBLISHED
    coded = Setup(workflows=streams.WORKFLOWS, activities=streams.ACTIVITIES, data_converter=converter)
    run = newest(store, run)
    streams.asked.clear()
    served = lockstep.fork(f"{run}:1", coded, store=store)
    assert (served.result, served.live, streams.asked) == (TOLD, 0, [])
    edited = lockstep.fork(f"{run}:tell#1", coded, edits={"tell#1": "about dogs"}, live=["tell"], store=store)
    assert edited.result == AFTER_AN_EDIT


def test_local_activities_stream_too(store: str) -> None:
    run = recorded(store, streams.Near, "cats")
    whole = lockstep.replay(run, TARGET, store=store)
    assert (whole.identical, whole.result) == (True, TOLD)
    for step in range(3):
        fork = lockstep.fork(f"{run}:{step}", TARGET, store=store)
        assert (fork.result, fork.live) == (TOLD, 0)


def test_local_activities_stream_on_a_server(store: str, temporal_server: Server) -> None:
    run, heard, _ = listened(temporal_server, store, streams.Near, "cats")
    assert heard
    assert heard == PUBLISHED[: len(heard)]  # clients of older versions leave what came last
    replay = lockstep.replay(newest(store, run), TARGET, store=store)
    assert (replay.identical, replay.result) == (True, TOLD), replay.divergence


def test_an_activity_may_signal_its_workflow_and_that_the_recorded_signals_come_too_is_said(store: str) -> None:
    run = recorded(store, streams.Door)
    assert lockstep.replay(run, TARGET, store=store).result == [0, 1, 0, 1]
    served = lockstep.fork(f"{run}:0", TARGET, store=store)
    assert (served.result, served.live) == ([0, 1, 0, 1], 0)
    assert not any("knocked" in told.detail for told in served.report.coverage)
    at = step_of(store, run, 1)
    real = lockstep.fork(f"{run}:{at}", TARGET, edits={f"{at}.1": 1}, live=["knock"], store=store)
    assert sorted(real.result) == [0, 0, 0, 1, 1]
    assert any("knocked" in told.detail for told in real.report.coverage)


def test_another_workflow_is_out_of_reach(store: str) -> None:
    run = offline_runs.record(store, streams.Door, "elsewhere", workflows=(), target=TARGET, decide=_rung)
    with pytest.raises(lockstep.Refused, match=r"signal 'knocked' of workflow 'elsewhere'.*--server local"):
        lockstep.fork(f"{run}:0", TARGET, live=["ring"], store=store)


def _rung(actor: Any, ask: Any) -> Given | None:
    """Where it was recorded, the other workflow was there."""
    return Given(completed(None)) if ask.command.activity_type == "ring" else None
