"""A program with agents under a session: no line is changed, and all of it is one run."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import lockstep
from lockstep.debugger import listing
from lockstep.log.store import open_store
from lockstep.log.timeline import resolve
from lockstep.testing import Answer, Provider, Request, ToolCall

PROGRAM = """
import asyncio, random
from ag2 import Agent, Context
from ag2.config import OpenAIConfig
from ag2.tools import tool

@tool
def draw(context: Context, what: str) -> str:
    "Draws a number."
    context.variables["drawn"] = what
    return f"{what} {random.random()}"

def agent(name, *tools, streaming=False):
    return Agent(name, f"You are {name}.", config=OpenAIConfig(model="gpt-4o", streaming=streaming), tools=tools)

async def main():
    researcher = agent("researcher", draw, streaming=True)
    boss = agent("boss", draw, researcher.as_tool(description="Asks the researcher."))
    reply = await boss.ask("Draw.")
    print(reply.body)
    print((await reply.ask("Again?")).body)

asyncio.run(main())
"""


def answer(request: Request) -> Answer:
    messages: list[Any] = request.json["messages"]
    told = [each for each in messages if each["role"] == "tool"]
    researching = "researcher" in messages[0]["content"]
    if len(told) == 1 and not researching:
        return Answer(calls=(ToolCall("task_researcher", {"objective": "draw"}),))
    if told:
        return Answer(f"Drawn: {len(messages)} {told[-1]['content']}")
    if researching:
        return Answer(calls=(ToolCall("draw", {"what": "a card"}),))
    return Answer(calls=(ToolCall("draw", {"what": "a lot"}),))


def lockstep_command(place: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "lockstep", *words], cwd=place, env={**os.environ, **variables}, capture_output=True,
        text=True, check=False,
    )  # fmt: skip


@pytest.mark.timeout(300)
def test_a_program_is_one_run_and_its_conversations_are_lanes(tmp_path: Path) -> None:
    (tmp_path / "draws.py").write_text(PROGRAM)
    with Provider(answer) as provider:
        recorded = lockstep_command(
            tmp_path, "record", "--run", "draws", "--", sys.executable, "draws.py", **provider.environ
        )  # fmt: skip
    assert recorded.returncode == 0, recorded.stderr
    assert "incomplete" not in recorded.stderr and "not covered: nothing" in recorded.stderr
    with open_store(None) as store:
        whole = listing.log("draws", resolve(store, "draws").timeline)
        lane = listing.log("draws/boss", resolve(store, "draws/boss").timeline)
    kinds = [effect.kind for step in whole.steps for effect in step.effects]
    assert kinds.count("model") == 6 and kinds.count("tool") == 2
    assert [step.name for step in lane.steps if step.kind != "end"] == [
        "boss", "boss", "draw", "boss", "task_researcher", "boss", "boss", "boss",
    ]  # fmt: skip
    replayed = lockstep_command(
        tmp_path, "replay", "draws", OPENAI_API_KEY="sk-other", OPENAI_BASE_URL="http://127.0.0.1:9/v1"
    )
    assert replayed.returncode == 0, replayed.stderr
    assert replayed.stdout == recorded.stdout


def test_agents_are_seen_in_sessions_in_code_too() -> None:
    import agents

    async def talk(live: bool) -> str:
        return str((await agents.tools(live).ask("Go on.")).body)

    with lockstep.record("talk"):
        said = asyncio.run(talk(True))
    agents.ran.clear()
    replay = lockstep.replay("talk", lambda: asyncio.run(talk(False)))
    assert replay.identical, replay.divergence
    assert replay.result == said and not agents.ran
