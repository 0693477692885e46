"""A kickoff is a turn: what it was given, its steps, and how it ended."""

from __future__ import annotations

import asyncio
import gc
import logging
import threading
import weakref
from pathlib import Path
from typing import Any

import crew_runs
import crews
import pytest
import recorded_crews as of
from crewai import Crew
from crewai.crews.crew_output import CrewOutput
from crewai.flow import Flow, start
from crewai.tools import tool

import lockstep
import lockstep_crewai
from lockstep.errors import TargetError
from lockstep.testing import Provider
from lockstep_crewai import wrapping


def test_each_kickoff_is_a_turn_of_one_run_with_what_it_was_given(provider: Provider) -> None:
    crew = lockstep_crewai.wrap(crews.sequential())
    crew.kickoff(inputs={"order": 7})
    asyncio.run(crew.kickoff_async(inputs={"order": 8}))
    asyncio.run(crew.akickoff({"order": 9}))
    crew.kickoff_for_each([{"order": 1}])

    assert of.turns("crewai/desk") == [
        ("kickoff", "ok", {"inputs": {"order": 7}}),
        ("kickoff_async", "ok", {"inputs": {"order": 8}}),
        ("akickoff", "ok", {"inputs": {"order": 9}}),
        ("kickoff_for_each", "ok", {"inputs": [{"order": 1}]}),
    ]
    assert of.state("crewai/desk", 0) == {"inputs": {"inputs": {"order": 7}}}
    research, letter = of.state("crewai/desk", 1), of.state("crewai/desk", 2)
    assert research["agent"] == "researcher"
    assert research["output"]["raw"].startswith("order 7 cost")
    assert letter["context"] == research["output"]["raw"]


def test_a_run_is_named_after_the_target_or_as_it_is_told_and_never_twice(provider: Provider) -> None:
    for _ in range(2):
        lockstep_crewai.wrap(crews.alone()).kickoff("refund order 7")
    lockstep_crewai.wrap(crews.alone(), run="till/night").kickoff("refund order 7")
    lockstep_crewai.wrap(crews.alone(), run="crewai/day").kickoff("refund order 7")

    for run, lane in (("clerk", "clerk"), ("clerk-2", "clerk"), ("till%2Fnight", "till%2Fnight"), ("day", "day")):
        assert of.lanes(f"crewai/{run}") == [lane]
        assert of.steps(f"crewai/{run}")[0] == lane


def test_a_kickoff_that_fails_ends_with_its_error_and_the_task_that_failed(provider: Provider) -> None:
    def refuse(output: Any) -> Any:
        raise RuntimeError("no more letters")

    crew = crews.sequential()
    crew.tasks[1].callback = refuse
    crew = lockstep_crewai.wrap(crew)
    with pytest.raises(RuntimeError, match="no more letters"):
        crew.kickoff(crews.INPUTS)

    assert [turn[:2] for turn in of.turns("crewai/desk")] == [("kickoff", "error")]
    # The output of the second was told of before its callback was called.
    assert of.steps("crewai/desk") == ["desk", "desk/research", "desk/letter"]

    class Failing(Flow[dict[str, Any]]):
        @start()
        def look(self) -> None:
            raise LookupError("no such order\nat all")

    with pytest.raises(LookupError):
        lockstep_crewai.wrap(Failing()).kickoff()
    assert of.state("crewai/Failing", 1) == {"error": "LookupError: no such order"}


def test_a_kickoff_that_is_broken_off_has_no_end(provider: Provider) -> None:
    @tool("stop")
    def stop() -> str:
        """Stops it."""
        raise KeyboardInterrupt

    clerk = crews.agent("clerk", tools=[stop, crews.LookUp()])
    crew = lockstep_crewai.wrap(Crew(name="till", agents=[clerk], tasks=[crews.task("refund", clerk)]))
    crew.tasks[0].callback = lambda output: stop.func()  # type: ignore[attr-defined]
    with pytest.raises(KeyboardInterrupt):
        crew.kickoff(crews.INPUTS)

    assert [turn[:2] for turn in of.turns("crewai/till")] == [("kickoff", "")]
    assert of.steps("crewai/till") == ["till", "till/refund"]


def test_a_stream_is_a_turn_once_it_is_read(provider: Provider) -> None:
    crew = lockstep_crewai.wrap(crews.crew_stream())
    streamed = crew.kickoff(inputs=crews.INPUTS)
    with pytest.raises(lockstep.LockstepError):
        of.turns("crewai/shown")
    pieces = list(streamed)

    assert len(pieces) > 3
    assert of.turns("crewai/shown") == [("kickoff", "ok", {"inputs": crews.INPUTS, "stream": True})]


def test_streams_of_inputs_are_one_turn_that_is_over_with_the_last(
    provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    crew = lockstep_crewai.wrap(crews.crew_stream())
    streams: Any = crew.kickoff_for_each(inputs=[{"order": 7}, {"order": 8}])
    for stream in reversed(streams):
        list(stream)
    turns = of.turns("crewai/shown")
    assert [turn[:2] for turn in turns] == [("kickoff_for_each", "ok")]
    # The second has been read first.
    assert of.steps("crewai/shown")[1:4] == [f"shown/input-2/{name}" for name in ("research", "letter", "check")]
    raws = [stream.result.raw for stream in streams]

    crew_runs.silence(provider, monkeypatch)
    # Here they are read in their order, so nothing says who is first: the calls still have their lanes.
    again = lockstep.replay("crewai/shown", crews.crew_stream)
    assert again.divergence is None, again.divergence
    assert [each.raw for each in again.result] == raws


def test_a_stream_that_nobody_reads_to_its_end_is_no_end_of_the_turn(provider: Provider) -> None:
    crew = lockstep_crewai.wrap(crews.crew_stream())
    first, _ = crew.kickoff_for_each(inputs=[{"order": 7}, {"order": 8}])
    list(first)
    crew.stream = False
    crew.kickoff(inputs={"order": 9})
    assert [turn[:2] for turn in of.turns("crewai/shown")] == [("kickoff_for_each", "closed"), ("kickoff", "ok")]


def test_what_is_no_kickoff_is_not_recorded_and_said(provider: Provider, caplog: pytest.LogCaptureFixture) -> None:
    crew = lockstep_crewai.wrap(crews.sequential())
    crew.kickoff(crews.INPUTS)
    with caplog.at_level(logging.WARNING, "lockstep"), pytest.raises(ZeroDivisionError):  # the mean of no tests
        crew.test(0, crews.model())
    assert "lockstep does not record test() of a crew, only kickoffs and replay(): desk" in caplog.text
    assert len(of.turns("crewai/desk")) == 1


class Streamed(Flow[dict[str, Any]]):
    """A flow that is read as a stream."""

    stream: bool = True

    @start()
    def look(self) -> str:
        return str(crews.paying().kickoff(inputs={"order": 7}))


async def _aread() -> Any:
    streamed = await lockstep_crewai.wrap(Streamed()).kickoff_async()
    async for _ in streamed:
        pass
    return streamed.result


def _read() -> Any:
    streamed = lockstep_crewai.wrap(Streamed()).kickoff()
    for _ in streamed:
        pass
    return streamed.result


@pytest.mark.parametrize("read", [_read, lambda: asyncio.run(_aread())], ids=["read", "aread"])
def test_a_flow_that_is_read_as_a_stream(read: Any, provider: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
    result = read()
    assert [turn[1:] for turn in of.turns("crewai/Streamed")] == [("ok", {"stream": True})]
    assert of.steps("crewai/Streamed") == ["Streamed", "Streamed/look/till/refund", "Streamed/look"]
    crew_runs.silence(provider, monkeypatch)
    crew_runs.is_again(lockstep.replay("crewai/Streamed", Streamed), result)


def test_two_kickoffs_of_one_at_once_are_not_mixed_and_it_is_said(
    provider: Provider, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside, goes_on = threading.Event(), threading.Event()

    class Waits(Flow[dict[str, Any]]):
        @start()
        def look(self) -> str:
            inside.set()
            goes_on.wait(10)
            return crews.model().call("look?")

    flow = lockstep_crewai.wrap(Waits())
    other = threading.Thread(target=flow.kickoff)
    other.start()
    assert inside.wait(10)
    goes_on.set()
    with caplog.at_level(logging.WARNING, "lockstep"):
        flow.kickoff()
    other.join()

    assert len(of.turns("crewai/Waits")) == 1
    assert "another one is on" in caplog.text
    assert [fault for fault in of.faults("crewai/Waits") if "another one is on" in fault]
    # So what is recorded is not all that was done, and no replay of it is called identical.
    crew_runs.silence(provider, monkeypatch)
    again = lockstep.replay("crewai/Waits", Waits)
    assert not again.identical
    assert "another one is on" in str(again.report.faults)


def test_a_store_that_cannot_be_written_is_said_and_the_crew_works_on(
    provider: Provider, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("no folder")
    crew = lockstep_crewai.wrap(crews.sequential(), store=tmp_path / "file" / "store.db")
    with caplog.at_level(logging.WARNING, "lockstep"):
        result = crew.kickoff(crews.INPUTS)
    assert isinstance(result, CrewOutput)
    assert result.raw.startswith("approved")
    assert caplog.text.count("lockstep could not record") == 1


@pytest.mark.parametrize("other", [object(), Crew, crews.sequential, 7])
def test_what_is_nothing_of_crewai_s_is_refused(other: Any) -> None:
    with pytest.raises(TargetError, match="LS402 wrap takes a crew, an agent or a flow of crewai"):
        lockstep_crewai.wrap(other)


def test_it_is_wrapped_once(provider: Provider) -> None:
    crew = crews.sequential()
    assert lockstep_crewai.wrap(crew) is crew
    with pytest.raises(TargetError, match="LS402 crew desk is wrapped already"):
        lockstep_crewai.wrap(crew)


def test_nothing_is_kept_of_a_crew_that_is_gone(provider: Provider) -> None:
    gc.collect()
    before = {*wrapping._roots, *wrapping._copies}
    crew = lockstep_crewai.wrap(crews.sequential())
    crew.kickoff(crews.INPUTS)
    crew.kickoff_for_each([crews.INPUTS])
    gone = weakref.ref(crew)
    del crew
    for _ in range(5):
        gc.collect()
    assert gone() is None, [type(each) for each in gc.get_referrers(gone())]
    assert {*wrapping._roots, *wrapping._copies} <= before
