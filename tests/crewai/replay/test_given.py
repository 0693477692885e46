"""What a kickoff is given that lies elsewhere: a native checkpoint, a flow's saved state, files."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import crew_runs
import crews
import pytest
import recorded_crews as of
from crewai import Crew
from crewai.events import crewai_event_bus
from crewai.flow import Flow
from crewai.state.checkpoint_config import CheckpointConfig
from crewai_files import File, FileBytes, ImageFile, TextFile

import lockstep
import lockstep_crewai
from lockstep.cli.app import app
from lockstep.errors import LockstepError, TargetError
from lockstep.testing import Provider

_SECRET = "sk-proj-4v3ry5ecretK3yThatN0bodyKnows"
_PICTURE = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c6360000002000001e221bc33"
    "0000000049454e44ae426082"
)


def _checkpoint(place: Path) -> Path:
    """The checkpoint of a crew that has done its first two tasks."""
    crew = crews.sequential()
    crewai_event_bus.flush()
    crew.tasks[1].callback = lambda output: crewai_event_bus.runtime_state.checkpoint(str(place))  # type: ignore[union-attr]
    crew.kickoff(crews.INPUTS)
    (found,) = place.rglob("*.json")
    return found


def _resumed(found: Path) -> Crew:
    crew = lockstep_crewai.wrap(crews.sequential())
    going = CheckpointConfig(location=str(found.parent), restore_from=found)
    crew.kickoff(crews.INPUTS, from_checkpoint=going)
    return crew


def test_a_kickoff_goes_on_from_the_native_checkpoint_that_it_went_on_from(
    provider: Provider, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", _SECRET)
    found = _checkpoint(tmp_path / "native")
    assert _SECRET in found.read_text()
    before = provider.requests
    _resumed(found)
    assert provider.requests == before + 1
    # What CrewAI makes of the checkpoint is the crew that was kicked off.
    assert of.steps("crewai/desk") == ["desk", "desk/check"]
    found.write_text("{}")
    assert not any(_SECRET.encode() in each.read_bytes() for each in Path(".lockstep").glob("store.db*"))

    fork = lockstep.fork("crewai/desk:1", crews.sequential, edits={"1": "EDITED"})
    assert (fork.state, fork.result.raw, fork.live) == ("complete", "EDITED", 0)
    later = lockstep.fork("crewai/desk:0", crews.sequential)
    assert (later.state, later.live, provider.requests) == ("complete", 1, before + 2)
    crew_runs.silence(provider, monkeypatch)
    for run in ("crewai/desk", later.address):
        again = lockstep.replay(run, crews.sequential)
        assert again.identical, again.report
        assert crews.ran == []
    assert [each.raw for each in again.result.tasks_output[:2]] == [
        each.raw for each in later.result.tasks_output[:2]
    ]  # fmt: skip


def test_what_somebody_else_went_on_from_is_made_no_crew_of(
    provider: Provider, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _resumed(_checkpoint(tmp_path / "native"))
    tape = tmp_path / "desk.tape"
    app(["export", "crewai/desk", "--output", str(tape)], standalone_mode=False)
    monkeypatch.setenv("LOCKSTEP_STORE", str(tmp_path / "other.db"))
    app(["import", str(tape)], standalone_mode=False)
    with pytest.raises(LockstepError, match=r"LS302 this run came from .*, and went on from a checkpoint of CrewAI's"):
        lockstep.replay("crewai/desk", crews.sequential)


def test_a_checkpoint_that_is_not_there_is_none_to_go_on_from(provider: Provider, tmp_path: Path) -> None:
    crew = lockstep_crewai.wrap(crews.sequential())
    missing = CheckpointConfig(location=str(tmp_path), restore_from=tmp_path / "none.json")
    with pytest.raises(OSError):
        crew.kickoff(crews.INPUTS, from_checkpoint=missing)
    assert of.turns("crewai/desk")[0][2]["unmade"] == ["from_checkpoint"]
    with pytest.raises(TargetError, match="LS402 the kickoff was given from_checkpoint, which is no data"):
        lockstep.replay("crewai/desk", crews.sequential)


def test_checkpoints_that_are_only_to_be_made_are_nothing_to_go_on_from(
    provider: Provider, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    crew = lockstep_crewai.wrap(crews.sequential())
    made = CheckpointConfig(location=str(tmp_path / "native"), on_events=["crew_kickoff_completed"])
    result = crew.kickoff(crews.INPUTS, from_checkpoint=made)
    (file,) = (tmp_path / "native").rglob("*.json")
    file.unlink()
    crew_runs.silence(provider, monkeypatch)
    crew_runs.is_again(lockstep.replay("crewai/desk", crews.sequential), result)
    assert not list((tmp_path / "native").rglob("*.json"))


def test_a_flow_is_restored_from_the_state_that_it_was_restored_from(
    counting: Callable[[], Flow[Any]], tmp_path: Path
) -> None:
    first = counting()
    first.kickoff()
    flow = lockstep_crewai.wrap(counting(), run="later")
    assert flow.kickoff(restore_from_state_id=first.state["id"]) == 2
    with sqlite3.connect(tmp_path / "flows.db") as database:
        database.execute("delete from flow_states")

    replay = lockstep.replay("crewai/later", counting)
    assert replay.identical, replay.report
    assert replay.result == 2
    with sqlite3.connect(tmp_path / "flows.db") as database:
        assert database.execute("select count(*) from flow_states").fetchone() == (0,)
    assert lockstep.fork("crewai/later:1", counting, edits={"1.1:n": 40}).result == 41


def test_files_are_given_again_by_their_content(
    provider: Provider, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    report = tmp_path / "report.txt"
    report.write_text("it cost 40.00")
    files = {"report": TextFile(source=report), "notes": File(source=FileBytes(data=b"a note", filename="notes.md"))}
    picture = ImageFile(source=FileBytes(data=_PICTURE, filename="scan.png"))
    crew = lockstep_crewai.wrap(crews.sequential())
    result = crew.kickoff(inputs={"order": 7, "scan": picture}, input_files=files)
    asked = crew_runs.timeline("crewai/desk", lambda timeline: timeline.request(timeline.steps[1].effects[0]))
    assert asked["messages"][1]["files"]["report"]["bytes"] == b"it cost 40.00"
    assert str(report) not in str(asked)

    report.write_text("it cost nothing")
    fork = lockstep.fork("crewai/desk:1", crews.sequential)
    assert (fork.state, fork.live) == ("complete", 2)
    report.unlink()
    crew_runs.silence(provider, monkeypatch)
    crew_runs.is_again(lockstep.replay("crewai/desk", crews.sequential), result)


def test_a_secret_among_the_inputs_is_the_same_one_again(provider: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
    inputs = {"order": 7, "api_key": _SECRET, "said": f"the key is {_SECRET}"}
    result = lockstep_crewai.wrap(crews.sequential()).kickoff(inputs=inputs)
    crew_runs.silence(provider, monkeypatch)
    crew_runs.is_again(lockstep.replay("crewai/desk", crews.sequential), result)
    assert not any(_SECRET.encode() in each.read_bytes() for each in Path(".lockstep").glob("store.db*"))


def test_a_stream_from_a_native_checkpoint_is_not_recorded_and_said(
    provider: Provider, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    found = _checkpoint(tmp_path / "native")
    crew = lockstep_crewai.wrap(crews.crew_stream())
    streamed = crew.kickoff(crews.INPUTS, from_checkpoint=CheckpointConfig(location=str(tmp_path), restore_from=found))
    if hasattr(streamed, "get_full_text"):
        list(streamed)
    assert "a stream of a crew that goes on from a native checkpoint is not recorded" in caplog.text
