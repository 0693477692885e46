"""`lockstep log` and `show` say who spoke, why, and why the team stopped, without AutoGen."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import kept
import pytest
import teams

from lockstep.testing import Provider


def lockstep(*words: str) -> str:
    """What a command prints, where AutoGen cannot be imported."""
    hide = "import sys; sys.modules.update(dict.fromkeys(['autogen_core', 'autogen_agentchat'])); "
    done = subprocess.run(
        [sys.executable, "-c", f"{hide}from lockstep.cli import main; main()", *words],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def rows(text: str) -> dict[str, str]:
    """The lines of a log that begin with the number of a step."""
    return {line.split()[0]: line for line in text.splitlines() if line[:1].isdigit()}


def test_the_timeline_says_who_chose_each_speaker_and_why_it_stopped(provider: Provider) -> None:
    recorded = kept.record(teams.named("selector"))
    provider.stop()
    log = lockstep("log", recorded.run)
    told = rows(log)
    assert '● searcher  "order 7: 40.00, look 1"   ← chosen by .1' in told["2"]
    assert "■ Text 'DONE' mentioned" in told["4"]
    assert '→ "searcher"' in log and "manager" in log
    assert "look_up(order=7)" in log
    steps = json.loads(lockstep("log", recorded.run, "--json"))["steps"]
    assert [step["name"] for step in steps] == ["user", "planner", "searcher", "analyst", "planner"]


def test_a_step_shows_what_its_speaker_did_on_the_way(provider: Provider) -> None:
    recorded = kept.record(teams.named("selector"))
    shown = lockstep("show", f"{recorded.run}:2")
    assert "chosen     searcher   by autogen/office:2.1" in shown
    assert "did        searcher → look_up(order=7)" in shown
    assert 'said       searcher "order 7: 40.00, look 1"' in shown
    assert "thread   5 messages  (+3)" in shown
    data: Any = json.loads(lockstep("show", f"{recorded.run}:4", "--json"))
    assert (data["stop"], data["selected"], data["chosen"]) == (
        "Text 'DONE' mentioned", ["planner"], ["autogen/office:4.1"],
    )  # fmt: skip
    assert data["messages"][0]["content"] == "DONE (8)"


@pytest.mark.parametrize("name", ["swarm", "graph", "magentic", "nested"])
def test_speakers_that_nobody_asked_a_model_for_are_shown_too(name: str, provider: Provider) -> None:
    recorded = kept.record(teams.named(name))
    log = lockstep("log", recorded.run)
    expected = {
        "swarm": "→ refunds", "graph": "● critic_", "magentic": "← chosen by .", "nested": "inner",
    }  # fmt: skip
    assert expected[name] in log


def test_a_selectors_whole_request_can_be_read(provider: Provider) -> None:
    recorded = kept.record(teams.named("selector"))
    shown = lockstep("show", f"{recorded.run}:2.1")
    assert "You are selector." in shown and "planner: first search (2)" in shown
    request = json.loads(lockstep("show", f"{recorded.run}:2.2", "--json"))["request"]
    assert [tool["name"] for tool in request["tools"]] == ["look_up"]


PROGRAM = """
import asyncio, sys
sys.path.insert(0, sys.argv[1])
import teams, lockstep_autogen
asyncio.run(teams.running(lockstep_autogen.attach(teams.selector()), "refund order 7"))
"""


def test_a_team_in_a_session_is_shown_as_by_itself(provider: Provider, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    words = [sys.executable, "-m", "lockstep", "record", "--run", "night", "--", sys.executable, str(program)]
    subprocess.run([*words, str(Path(teams.__file__).parent)], check=True, capture_output=True, timeout=100)
    told = rows(lockstep("log", "night/office"))
    assert '● searcher  "order 7: 40.00, look 1"   ← chosen by .1' in told["2"]
    assert "■ Text 'DONE' mentioned" in told["4"]
    assert "chosen     searcher   by night/office:2.1" in lockstep("show", "night/office:2")
