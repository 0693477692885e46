"""A session that is begun in code sees graphs whatever savers there are, were, or are being collected."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import gc
import lockstep
from langgraph.graph import START, MessagesState, StateGraph

builder = StateGraph(MessagesState)
builder.add_node("greet", lambda state: {"messages": ["hi"]})
builder.add_edge(START, "greet")
graph = builder.compile()

def leaves_a_saver():
    from lockstep_langgraph import LockstepCheckpointer
    saver = LockstepCheckpointer()
    saver._core.itself = saver._core  # only the collector frees it

def collects():
    return gc.collect() > 0

def program(before=lambda: None):
    before()
    return [message.content for message in graph.invoke({"messages": ["hello"]})["messages"]]

def told(replay):
    print(replay.identical, replay.divergence, replay.result)

gc.disable()
"""

WAYS = {
    "a saver of before is collected in the replay": """
leaves_a_saver()
with lockstep.record("run") as session:
    program()
told(lockstep.replay("run", lambda: program(collects)))
""",
    "a saver of before is collected in the recording": """
leaves_a_saver()
with lockstep.record("run") as session:
    program(collects)
told(lockstep.replay("run", program))
""",
    "the first saver is made between the two": """
with lockstep.record("run") as session:
    program()
leaves_a_saver()
told(lockstep.replay("run", program))
""",
    "there is never a saver": """
with lockstep.record("run") as session:
    program()
told(lockstep.replay("run", program))
""",
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_a_graph_is_seen_alike_in_the_recording_and_the_replay(way: str, tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(f"{PROGRAM}{way}print([kind for kind in session.report.counts], session.report.counts['step'])\n")
    ran = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == "True None ['hello', 'hi']\n['step'] 3\n"


def test_a_target_on_the_command_line_is_seen_as_it_was_in_code(tmp_path: Path) -> None:
    (tmp_path / "greeting.py").write_text(PROGRAM)
    recorded = "import lockstep, greeting\nwith lockstep.record('run'): greeting.program()\n"
    for command in (["-c", recorded], ["-m", "lockstep", "replay", "run", "--target", "greeting:program"]):
        ran = subprocess.run([sys.executable, *command], capture_output=True, text=True, check=False, cwd=tmp_path)
        assert ran.returncode == 0, ran.stderr
    assert "identical" in ran.stderr
