"""Output files of tasks: written when they are recorded, compared when they are served."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from asked import LANE, Tape
from crewai import Agent, Crew, Task
from pydantic import BaseModel

from lockstep.errors import Divergence
from lockstep.testing import Answer, Provider


class Verdict(BaseModel):
    score: int


def crew(path: str, **more: Any) -> Crew:
    agent = Agent(role="writer", goal="write", backstory="You do your work.", llm="openai/gpt-4o")
    task = Task(description="write", expected_output="a text", agent=agent, output_file=path, **more)
    return Crew(agents=[agent], tasks=[task])


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LOCKSTEP_STORE", str(tmp_path / "store.db"))
    monkeypatch.chdir(tmp_path)


def test_a_file_is_not_written_again(provider: Provider, tape: Tape) -> None:
    provider.script = [Answer("a text")]
    tape.record(lambda: crew("out/text.txt").kickoff())
    file = Path("out/text.txt")
    assert file.read_text() == "a text"
    assert tape.calls()[-1] == (f"{LANE}/crew/write", "write", "output_file")
    assert tape.request(-1) == {"path": "out/text.txt", "content": "a text"}
    file.write_text("mine now")
    provider.stop()
    assert tape.replay(lambda: crew("out/text.txt").kickoff().raw) == "a text"
    assert file.read_text() == "mine now"


def test_another_file_is_a_difference(provider: Provider, tape: Tape) -> None:
    provider.script = [Answer("a text")]
    tape.record(lambda: crew("text.txt").kickoff())
    found = tape.serve(lambda: crew("other.txt").kickoff())
    assert isinstance(found, Divergence)
    assert (found.difference.path, found.difference.actual) == ("path", '"other.txt"')
    assert not Path("other.txt").exists()


def test_data_is_compared_as_data(provider: Provider, tape: Tape) -> None:
    provider.script = [Answer('{"score": 3}')]
    tape.record(lambda: crew("score.json", output_json=Verdict).kickoff())
    assert Path("score.json").exists()
    assert tape.request(-1)["content"] == {"score": 3}
    provider.stop()
    tape.replay(lambda: crew("score.json", output_json=Verdict).kickoff())


def test_a_file_that_could_not_be_written_cannot_be_again(provider: Provider, tape: Tape) -> None:
    provider.script = [Answer("a text")]

    def run() -> Any:
        return crew("no/text.txt", create_directory=False).kickoff()

    first = tape.record(run)
    assert isinstance(first, RuntimeError) and "does not exist" in str(first)
    provider.stop()
    again = tape.replay(run)
    assert type(again) is RuntimeError and str(again) == str(first)
