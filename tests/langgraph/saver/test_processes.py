"""A thread goes on in another process, two processes use one thread, and a kill loses nothing that was acknowledged."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langgraph.types import Command
from saved_graphs import asking, chat, line, thread

from lockstep_langgraph import LockstepCheckpointer

type Saver = LockstepCheckpointer
type Opened = Callable[..., Saver]

HERE = str(Path(__file__).parent)
PREAMBLE = f"""
import os, sys
sys.path.insert(0, {HERE!r})
from saved_graphs import asking, chat, fan, line, thread
from langgraph.types import Command
from lockstep_langgraph import LockstepCheckpointer
saver = LockstepCheckpointer(sys.argv[1])
"""

KILLED = """
acknowledged = open(sys.argv[2], "w", buffering=1)
plain = LockstepCheckpointer.put, LockstepCheckpointer.put_writes

def put(self, config, checkpoint, *rest):
    found = plain[0](self, config, checkpoint, *rest)
    acknowledged.write(f"step {checkpoint['id']}\\n")
    return found

def put_writes(self, config, writes, task_id, task_path=""):
    plain[1](self, config, writes, task_id, task_path)
    acknowledged.write(f"writes {config['configurable']['checkpoint_id']} {task_id}\\n")

LockstepCheckpointer.put, LockstepCheckpointer.put_writes = put, put_writes
LockstepCheckpointer.aput_writes = lambda self, *told: _now(put_writes, self, *told)

async def _now(plain, *told):
    return plain(*told)

def die(state):
    os.kill(os.getpid(), 9)

graph = line(saver, "a", "b", "c", "die", die=die)
if sys.argv[3] == "async":
    import asyncio
    asyncio.run(graph.ainvoke({"word": "x" * 50_000}, thread()))
else:
    graph.invoke({"word": "x" * 50_000}, thread())
"""


def run(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    program = [sys.executable, "-c", PREAMBLE + code, *arguments]
    return subprocess.run(program, capture_output=True, text=True, timeout=60, check=False)


def start(code: str, *arguments: str) -> subprocess.Popen[str]:
    program = [sys.executable, "-c", PREAMBLE + code, *arguments]
    return subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def _told(stderr: str) -> str:
    """Without what an older LangGraph is warned of by a newer LangChain as it is imported."""
    return re.sub(r"^.*DeprecationWarning: .*\n.*\n?", "", stderr, flags=re.MULTILINE)


@pytest.mark.parametrize("half", ["sync", "async"])
def test_a_kill_loses_no_step_and_no_write_that_was_acknowledged(
    store: str, tmp_path: Path, opened: Opened, half: str
) -> None:
    told = tmp_path / "acknowledged"
    ended = run(KILLED, store, str(told), half)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    saver = opened()
    acknowledged = [line.split() for line in told.read_text().splitlines()]
    kept = {found.checkpoint["id"]: found for found in saver.list(thread())}
    assert {id for kind, id, *_ in acknowledged if kind == "step"} <= kept.keys()
    for kind, id, *task in acknowledged:
        if kind == "writes" and id in kept:
            assert {written for written, _, _ in kept[id].pending_writes or ()} >= set(task)
    # The node that kills runs after four checkpoints (-1 to 2) were put, and before its own.
    assert sorted(found.metadata["step"] for found in kept.values()) == [-1, 0, 1, 2, 3]
    graph = line(saver, "a", "b", "c", "die")
    assert graph.get_state(thread()).next == ("die",)
    assert graph.invoke(None, thread())["seen"] == ["a", "b", "c", "die"]


def test_a_thread_goes_on_in_another_process(store: str, opened: Opened) -> None:
    first = run(
        "chat(saver).invoke({'messages': ['hello'], 'left': 3}, thread())\n"
        "asking(saver).invoke({'seen': []}, thread('ask'))",
        store,
    )
    assert first.returncode == 0, first.stderr
    saver = opened()
    graph = chat(saver)
    assert len(graph.get_state(thread()).values["messages"]) == 4
    graph.invoke({"messages": ["more"], "left": 2}, thread())
    second = run(
        "print(len(chat(saver).get_state(thread()).values['messages']))\n"
        "print(asking(saver).invoke(Command(resume='yes'), thread('ask'))['seen'])",
        store,
    )
    assert (second.stdout, _told(second.stderr)) == ("7\n['plan', 'answered yes', 'act']\n", "")
    assert asking(saver).get_state(thread("ask")).next == ()


def test_what_another_process_writes_is_seen_at_once(store: str, saver: Saver) -> None:
    graph = line(saver, "a")
    graph.invoke({"seen": []}, thread())
    other = start(
        "graph = line(saver, 'a')\n"
        "for turn in sys.stdin:\n"
        "    print(graph.invoke({'seen': [turn.strip()]}, thread())['seen'], flush=True)\n",
        store,
    )
    assert other.stdin is not None and other.stdout is not None
    expected = ["a"]
    for number in range(4):
        other.stdin.write(f"{number}\n")
        other.stdin.flush()
        expected += [str(number), "a"]
        assert other.stdout.readline() == f"{expected}\n"
        assert graph.get_state(thread()).values["seen"] == expected
        expected += ["here", "a"]
        assert graph.invoke({"seen": ["here"]}, thread())["seen"] == expected
    other.stdin.close()
    assert other.wait(20) == 0
    other.stdout.close()
    assert other.stderr is not None
    assert _told(other.stderr.read()) == ""
    other.stderr.close()


def test_turns_of_many_processes_at_once_are_all_reachable(store: str, opened: Opened) -> None:
    turns = (
        "import time\n"
        "graph = line(saver, 'a', 'b', a=lambda state: time.sleep(0.01))\n"
        "sys.stdin.readline()\n"
        "for number in range(5):\n"
        "    graph.invoke({'seen': [f'{sys.argv[2]}.{number}']}, thread())\n"
    )
    running = [start(turns, store, str(number)) for number in range(2)]
    for each in running:
        assert each.stdin is not None
        each.stdin.write("\n")
        each.stdin.flush()
    for each in running:
        _, problems = each.communicate(timeout=60)
        assert each.returncode == 0, problems
    saver = opened()
    reachable = {word for found in saver.list(thread()) for word in found.checkpoint["channel_values"].get("seen", [])}
    assert reachable == {"b"} | {f"{process}.{number}" for process in range(2) for number in range(5)}


def test_a_forked_child_goes_on_with_the_thread(saver: Saver) -> None:
    graph = line(saver, "a")
    graph.invoke({"seen": []}, thread())
    child = os.fork()
    if not child:
        try:
            graph.invoke({"seen": ["child"]}, thread())
            os._exit(0)
        except BaseException:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    assert graph.invoke({"seen": ["parent"]}, thread())["seen"] == ["a", "child", "a", "parent", "a"]


def test_an_interrupt_is_answered_while_another_thread_of_the_program_runs(saver: Saver) -> None:
    graph = asking(saver)
    graph.invoke({"seen": []}, thread("one"))
    graph.invoke({"seen": []}, thread("two"))
    results: list[Any] = [graph.invoke(Command(resume=id), thread(id))["seen"][1] for id in ("one", "two")]
    assert results == ["answered one", "answered two"]


@pytest.mark.parametrize("what", ["prune", "delete", "begin anew", "copy over"])
def test_a_thread_that_somebody_else_replaced_is_read_anew(saver: Saver, opened: Opened, what: str) -> None:
    other = opened()
    here, there = line(saver, "a", "b"), line(other, "a", "b")
    here.invoke({"seen": ["old"]}, thread())
    there.invoke({"seen": ["other"]}, thread("source"))
    assert there.get_state(thread()).values["seen"] == ["old", "a", "b"]
    expected: list[str] = []
    match what:
        case "prune":
            other.prune(["t"])
            expected = ["old", "a", "b"]
        case "copy over":
            other.copy_thread("source", "t")
            expected = ["other", "a", "b"]
        case "begin anew":
            other.delete_thread("t")
            there.invoke({"seen": ["new"]}, thread())
            expected = ["new", "a", "b"]
        case _:
            other.delete_thread("t")
    for graph in (here, there):
        assert graph.get_state(thread()).values.get("seen", []) == expected
        expected = [*expected, "more", "a", "b"]
        assert graph.invoke({"seen": ["more"]}, thread())["seen"] == expected
    assert [found.checkpoint["id"] for found in saver.list(thread())] == [
        found.checkpoint["id"] for found in other.list(thread())
    ]


def test_a_store_that_was_removed_is_made_anew(saver: Saver, store: str) -> None:
    graph = line(saver, "a")
    graph.invoke({"seen": ["old"]}, thread())
    saver.close()
    Path(store).unlink()
    assert graph.get_state(thread()).values == {}
    assert graph.invoke({"seen": ["new"]}, thread())["seen"] == ["new", "a"]
