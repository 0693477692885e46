"""What a flow keeps outside of itself: its states, and what it waits for a person to say."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import crew_runs
import crews
import pytest
import recorded_crews as of
from crewai import Crew
from crewai.events import crewai_event_bus
from crewai.flow import Flow, human_feedback, listen, start
from crewai.flow.async_feedback.types import HumanFeedbackPending
from crewai.flow.persistence import SQLiteFlowPersistence
from crewai.memory.storage.kickoff_task_outputs_storage import KickoffTaskOutputsSQLiteStorage
from crewai.state.checkpoint_config import CheckpointConfig
from crewai.state.provider.json_provider import JsonProvider

import lockstep
import lockstep_crewai
from lockstep.testing import Provider
from lockstep_crewai import classes


def rows(path: Path) -> list[tuple[Any, ...]]:
    with sqlite3.connect(path) as database:
        return database.execute("select flow_uuid, method_name, state_json from flow_states").fetchall()


def test_a_state_that_was_loaded_is_loaded_again_and_none_is_saved(
    counting: Callable[[], Flow[Any]], tmp_path: Path
) -> None:
    first = counting()
    first.kickoff()
    flow = lockstep_crewai.wrap(counting(), run="later")
    assert flow.kickoff(inputs={"id": first.state["id"]}) == 2
    kept = rows(tmp_path / "flows.db")
    assert len(kept) == 2

    calls = [(event.name, body["request"]) for event, body in of.events("crewai/later", of.Kind.BEGIN)][1:]
    assert calls == [
        ("load_state", {"flow": first.state["id"]}), ("save_state", {"method": "more", "state": {"n": 2}}),
    ]  # fmt: skip
    # Somebody has gone on with it meanwhile: what is replayed is what was.
    counting().kickoff(inputs={"id": first.state["id"]})
    kept = rows(tmp_path / "flows.db")
    replay = lockstep.replay("crewai/later", counting)
    assert replay.identical, replay.report
    assert replay.result == 2
    assert rows(tmp_path / "flows.db") == kept


def test_a_replay_leaves_what_crewai_s_own_replay_goes_by(provider: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
    lockstep_crewai.wrap(crews.sequential()).kickoff(crews.INPUTS)
    crews.paying().kickoff({"order": 9})
    kept = KickoffTaskOutputsSQLiteStorage().load()
    assert [row["inputs"] for row in kept] == [{"order": 9}]
    crew_runs.silence(provider, monkeypatch)

    assert lockstep.replay("crewai/desk", crews.sequential).identical
    assert KickoffTaskOutputsSQLiteStorage().load() == kept


class Later:
    """Asks a person somewhere else, who answers another day."""

    def request_feedback(self, context: Any, flow: Any) -> Any:
        raise HumanFeedbackPending(context=context)


class Review(Flow[dict[str, Any]]):
    @start()
    @human_feedback(message="Is it good?", provider=Later())
    def draft(self) -> str:
        self.state["draft"] = crews.model().call("draft?")
        return str(self.state["draft"])

    @listen(draft)
    def sent(self, feedback: Any) -> str:
        return f"{self.state['draft']}: {feedback.feedback}: {crews.model().call('send?')}"


def test_a_flow_that_pauses_and_one_that_is_resumed_are_runs_of_their_own(
    provider: Provider, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    store = str(tmp_path / "flows.db")
    flow = lockstep_crewai.wrap(Review(persistence=SQLiteFlowPersistence(store)), run="draft")
    paused = flow.kickoff()
    assert isinstance(paused, HumanFeedbackPending)
    resumed = lockstep_crewai.wrap(Review.from_pending(flow.flow_id, SQLiteFlowPersistence(store)), run="sent")
    result = resumed.resume("It is.")
    assert "It is." in result
    assert of.state("crewai/draft", 1) == {"paused": {"message": "Is it good?", "emit": None}}
    crew_runs.silence(provider, monkeypatch)

    def make() -> Flow[Any]:
        return Review(persistence=SQLiteFlowPersistence(store))

    again = lockstep.replay("crewai/draft", make)
    assert again.identical, again.report
    assert isinstance(again.result, HumanFeedbackPending)
    later = lockstep.replay("crewai/sent", make)
    assert later.identical, later.report
    assert later.result == result


def test_native_checkpoints_are_noted_with_their_steps_and_made_by_no_replay(
    provider: Provider, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, command: crew_runs.Command
) -> None:
    place = tmp_path / "checkpoints"
    # At the end, when nothing goes on beside it: those of tasks CrewAI now and then fails to make.

    def make() -> Crew:
        writer = crews.agent("writer")
        tasks = [crews.task("letter", writer), crews.task("another", writer)]
        native = CheckpointConfig(location=str(place), on_events=["crew_kickoff_completed"])
        return Crew(name="desk", agents=[writer], tasks=tasks, checkpoint=native)

    plain = classes.plain(JsonProvider.checkpoint)

    def slowly(self: Any, *args: Any, **options: Any) -> str:
        time.sleep(0.2)  # on CrewAI's thread: the kickoff is over by then
        return plain(self, *args, **options)

    with pytest.MonkeyPatch.context() as slow:
        slow.setattr(JsonProvider, "checkpoint", slowly)
        result = lockstep_crewai.wrap(make()).kickoff(crews.INPUTS)
    files = sorted(place.rglob("*.json"))
    assert len(files) == 1
    # It was made of the last step, before the turn was over.
    (step,) = [step for step in crew_runs.steps("crewai/desk") if step.name == "another"]
    (shown,) = json.loads(command("show", f"crewai/desk:{step.number}", "--json"))["kept"]
    assert (shown["name"], shown["content"]["location"]) == ("checkpoint", str(files[0]))
    assert files[0].stem.startswith(shown["content"]["id"])
    kept = f'kept       checkpoint   {{"id": "{shown["content"]["id"]}"'
    assert kept in command("show", f"crewai/desk:{step.number}")
    assert "kept" not in json.loads(command("show", f"crewai/desk:{step.number - 1}", "--json"))
    (row,) = [row for row in command("log", "crewai/desk").splitlines() if "● another" in row]
    assert row.split()[-1] == "checkpoint"
    ((note, _),) = of.events("crewai/desk", of.Kind.WRITES)
    assert note.pos < max(event.pos for event, _ in of.events("crewai/desk", of.Kind.END))
    crew_runs.silence(provider, monkeypatch)

    replay = lockstep.replay("crewai/desk", make)
    crewai_event_bus.flush()
    assert replay.identical, replay.report
    assert replay.result.raw == result.raw
    assert sorted(place.rglob("*.json")) == files


def test_crewai_s_own_replay_is_a_turn_that_goes_on_from_what_was_kept_then(
    provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    crew = lockstep_crewai.wrap(crews.sequential())
    crew.kickoff(crews.INPUTS)
    before = provider.requests
    result = crew.replay(str(crew.tasks[1].id))
    assert provider.requests == before + 2
    assert [turn[:2] for turn in of.turns("crewai/desk")] == [("kickoff", "ok"), ("replay", "ok")]
    assert of.steps("crewai/desk")[4:] == ["desk", "desk/letter", "desk/check"]
    # Another crew's outputs are there now.
    crews.paying().kickoff({"order": 9})
    kept = KickoffTaskOutputsSQLiteStorage().load()

    fork = lockstep.fork("crewai/desk:5", crews.sequential)
    assert (fork.state, fork.live, fork.result.tasks_output[1].raw) == ("complete", 1, result.tasks_output[1].raw)
    crew_runs.silence(provider, monkeypatch)
    crew_runs.is_again(lockstep.replay("crewai/desk", crews.sequential), result)
    assert KickoffTaskOutputsSQLiteStorage().load() == kept
