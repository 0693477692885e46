"""Under `lockstep record` a program's graphs are recorded with no line of it changed, whatever they compile with."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from tests.warm import command

from lockstep.testing import Answer, Provider, Request, ToolCall

# The oldest AsyncSqliteSaver wants what aiosqlite has no more since 0.22 (langgraph #6583).
WAITING = [] if version("langgraph-checkpoint-sqlite").startswith("3.0.") else ["waiting"]
PRICE = {"cents": 7}  # what the model wants to pay

PROGRAM = '''
import asyncio, operator, os, sys
from typing import Annotated, TypedDict
from langchain_core.messages import AnyMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.graph import START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.prebuilt import ToolNode, tools_condition
import lockstep

class State(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]

@tool
def pay(cents: int) -> str:
    """Pays."""
    with open("paid.txt", "a") as file:
        file.write(f"{cents}\\n")
    return f"paid {cents}"

lockstep.mark(pay, effect="mutating")
model = ChatOpenAI(model="gpt-4o", max_retries=0).bind_tools([pay])

async def think(state):
    return {"messages": [await model.ainvoke(state["messages"])]}

def built(saver, node):
    builder = StateGraph(State)
    builder.add_node("agent", node)
    builder.add_node("tools", ToolNode([pay]))
    builder.add_edge(START, "agent")
    builder.add_conditional_edges("agent", tools_condition)
    builder.add_edge("tools", "agent")
    return builder.compile(checkpointer=saver)

thread = {"configurable": {"thread_id": "t-1"}}
asked = {"messages": [HumanMessage("pay")]}

def told(found):
    print(len(found["messages"]), found["messages"][-1].content, found["messages"][-1].id)

def sync(saver):
    told(built(saver, lambda state: {"messages": [model.invoke(state["messages"])]}).invoke(asked, thread))

async def main(saver):
    told(await built(saver, think).ainvoke(asked, thread))

async def waiting():
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
    async with AsyncSqliteSaver.from_conn_string("chat.db") as saver:
        await main(saver)

kind = sys.argv[1]
if kind == "none":
    sync(None)
elif kind == "memory":
    from langgraph.checkpoint.memory import InMemorySaver
    asyncio.run(main(InMemorySaver()))
elif kind == "sqlite":
    import sqlite3
    from langgraph.checkpoint.sqlite import SqliteSaver
    sync(SqliteSaver(sqlite3.connect("chat.db", check_same_thread=False)))
elif kind == "lockstep":
    from lockstep_langgraph import LockstepCheckpointer
    sync(LockstepCheckpointer("threads.db"))
else:
    asyncio.run(waiting())
'''


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "program.py").write_text(PROGRAM)
    return tmp_path


def run(place: Path, *words: str, url: str = "", status: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, *words],
        cwd=place,
        env=_environment(place, url),
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == status, f"{words}\n{done.stdout}\n{done.stderr}"
    return done


def lockstep(place: Path, *words: str, url: str = "", status: int = 0) -> subprocess.CompletedProcess[str]:
    done = command.run(*words, cwd=place, env=_environment(place, url), timeout=100)
    assert done.returncode == status, f"{words}\n{done.stdout}\n{done.stderr}"
    return done


def _environment(place: Path, url: str) -> dict[str, str]:
    return {
        **os.environ, "LOCKSTEP_STORE": str(place / "store.db"), "OPENAI_API_KEY": "sk-test",
        "OPENAI_BASE_URL": f"{url or 'http://127.0.0.1:9'}/v1",
    }  # fmt: skip


def _rows(path: Path) -> int:
    with sqlite3.connect(path) as database:
        return int(database.execute("select count(*) from checkpoints").fetchone()[0])


def answers(*cents: int) -> list[Answer | str]:
    return [each for n in cents for each in (Answer(calls=(ToolCall("pay", {"cents": n}),)), f"done {n}")]


@pytest.mark.parametrize("kind", ["none", "memory", "lockstep"])
def test_a_program_replays_offline_with_its_steps(kind: str, place: Path) -> None:
    with Provider(answers(7)) as provider:
        recorded = lockstep(
            place, "record", "--run", "chat", "--", sys.executable, "program.py", kind, url=provider.url
        )
    replayed = lockstep(place, "replay", "chat")
    assert (replayed.stdout, "identical" in replayed.stderr) == (recorded.stdout, True)
    assert (place / "paid.txt").read_text() == "7\n", "a replay pays nothing"
    steps = json.loads(lockstep(place, "log", "chat/t-1", "--json").stdout)["steps"]
    assert [step["name"] for step in steps] == ["input", "input", "agent", "tools", "agent"]
    assert [effect["name"] for step in steps for effect in step["effects"]] == ["gpt-4o", "pay", "gpt-4o"]


@pytest.mark.parametrize("kind", ["sqlite", *WAITING])
def test_another_saver_s_state_is_served_and_its_database_left_alone(kind: str, place: Path) -> None:
    with Provider(answers(1, 2)) as provider:
        run(place, "program.py", kind, url=provider.url)
        recorded = lockstep(
            place, "record", "--run", "chat", "--", sys.executable, "program.py", kind, url=provider.url
        )
    assert recorded.stdout.startswith("8 done 2"), "the thread went on from before"
    held = _rows(place / "chat.db")
    replayed = lockstep(place, "replay", "chat")
    assert (replayed.stdout, "identical" in replayed.stderr) == (recorded.stdout, True)
    assert _rows(place / "chat.db") == held
    for file in place.glob("chat.db*"):
        file.unlink()
    assert lockstep(place, "replay", "chat").stdout == recorded.stdout
    assert not (place / "chat.db").exists() or not (place / "chat.db").stat().st_size


def says(request: Request) -> Answer:
    """Pays what it is told to, and repeats what was paid."""
    messages: list[dict[str, Any]] = request.json["messages"]
    paid = [each["content"] for each in messages if each["role"] == "tool"]
    return Answer(paid[-1]) if paid else Answer(calls=(ToolCall("pay", {"cents": PRICE["cents"]}),))


def test_a_fork_gives_an_edited_message_to_the_agent_and_pays_nothing(place: Path) -> None:
    PRICE["cents"] = 7
    edited = ("fork", "chat/t-1:2", "--set", "2.1:tool_calls[0].args.cents=9")
    with Provider(says) as provider:
        lockstep(place, "record", "--run", "chat", "--", sys.executable, "program.py", "memory", url=provider.url)
        refused = lockstep(place, *edited, "--branch", "more", status=1)
        assert "LS301 refused: tool pay(cents=9)" in refused.stderr
        assert (place / "paid.txt").read_text() == "7\n"
        forked = lockstep(place, *edited, "--live", "pay", "--branch", "paid")
    assert forked.stdout.startswith("4 paid 9")
    assert (place / "paid.txt").read_text() == "7\n9\n"


def test_bisect_finds_the_answer_that_made_a_graph_fail(place: Path) -> None:
    told = "    print(len(found"
    source = PROGRAM.replace(told, f"    if '13' in found['messages'][-1].content: sys.exit('unlucky')\n{told}")
    (place / "program.py").write_text(source)
    with Provider(says) as provider:
        PRICE["cents"] = 13
        command = (sys.executable, "program.py", "memory")
        lockstep(place, "record", "--run", "bad", "--", *command, url=provider.url, status=1)
        PRICE["cents"] = 1
        found = lockstep(place, "bisect", "bad", "--live", "pay", "--json")
    verdict = json.loads(found.stdout)
    steps = json.loads(lockstep(place, "log", "bad", "--json").stdout)["steps"]
    assert verdict["verdict"] == "culprit", verdict
    assert [effect["name"] for effect in steps[verdict["step"]]["effects"]] == ["gpt-4o"]
