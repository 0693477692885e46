"""What people and files are in a fork: past its cut they are there again, but for what they have said and what was
written before."""

from __future__ import annotations

import builtins
from pathlib import Path
from typing import Any

import crew_runs as runs
import pytest
from crewai import LLM, Agent, Crew, Task

import lockstep
import lockstep_crewai
from lockstep.testing import Answer, Provider


def crew() -> Crew:
    writer = Agent(role="writer", goal="write", backstory="You do your work.", llm=LLM(model="openai/gpt-4o"))
    tasks = [
        Task(name=name, description=name, expected_output="a text", agent=writer, output_file=f"{name}.txt",
             human_input=name == "second")
        for name in ("first", "second")
    ]  # fmt: skip
    return Crew(name="desk", agents=[writer], tasks=tasks)


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The prompts that somebody was shown who only presses Enter."""
    shown: list[str] = []

    def type_(prompt: object = "") -> str:
        shown.append(str(prompt))
        return ""

    monkeypatch.setattr(builtins, "input", type_)
    return shown


@pytest.fixture(autouse=True)
def written(provider: Provider, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """The texts of the files, by name."""
    monkeypatch.chdir(tmp_path)
    provider.script = lambda request: Answer(f"text {request.number}")
    return lambda: {path.name: path.read_text() for path in tmp_path.glob("*.txt")}


def model(number: int) -> str:
    """The address of a model's answer."""
    return runs.calls("crewai/desk", "model")[number][0]


def test_a_replay_writes_nothing_and_asks_nobody(typed: list[str], written: Any, provider: Provider) -> None:
    lockstep_crewai.wrap(crew()).kickoff()
    assert written() == {"first.txt": "text 1", "second.txt": "text 2"} and len(typed) == 1
    Path("first.txt").write_text("mine")
    Path("second.txt").unlink()
    provider.stop()
    replay = lockstep.replay("crewai/desk", crew)
    assert replay.identical, replay.divergence
    assert written() == {"first.txt": "mine"} and len(typed) == 1


def test_only_what_a_fork_changes_is_written(typed: list[str], written: Any) -> None:
    lockstep_crewai.wrap(crew()).kickoff()
    Path("first.txt").write_text("mine")
    fork = lockstep.fork("crewai/desk:2", crew, edits={model(1): "another text"})
    assert fork.state == "complete", fork.error
    assert written() == {"first.txt": "mine", "second.txt": "another text"}
    assert len(typed) == 1  # who has said that it is fine is not asked once more


def test_what_is_asked_and_written_only_in_a_fork_is(typed: list[str], written: Any) -> None:
    lockstep_crewai.wrap(crew()).kickoff()
    fork = lockstep.fork("crewai/desk:1", crew, edits={model(0): "a beginning"})
    assert fork.state == "complete", fork.error
    found = written()
    assert found["first.txt"] == "a beginning" and found["second.txt"] not in ("text 2", "a beginning")
