"""An agent to bisect, with its recordings, and workers that make probes of it."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import DEVNULL, PIPE, CompletedProcess
from typing import Any

from live_server import Server, unique
from tests.warm import command

PYTHON = sys.executable
STEPS, PLANTED = 64, 41
GRAPHS = "graph:graph"

# Every answer is another one, and goes into the next question. Each call is counted, in one write.
AGENT = """
import hashlib, os, sys, time, uuid
import lockstep

class Overcharged(Exception):
    pass

@lockstep.tool(effect="read")
def look(number, known):
    time.sleep(float(os.environ.get("TAKES", "0")))
    with open(os.environ["MADE"], "a") as file:
        file.write("x")
    bad = os.environ.get("PLANTED") == str(number)
    return {"note": uuid.uuid4().hex, "owed": 4000 if bad else 450}

def settle(owed):
    if owed > 1000:
        raise Overcharged(owed)

def main(steps):
    known, owed = "", 0
    for number in range(1, steps + 1):
        found = look(number, known)
        known = hashlib.sha256((known + found["note"]).encode()).hexdigest()[:16]
        owed = max(owed, found["owed"])
    print("owed", owed)
    settle(owed)

main(int(sys.argv[1]))
"""


GRAPH = """
import contextlib, operator, os
from typing import Annotated, TypedDict
from langgraph.graph import START, StateGraph
from lockstep_langgraph import LockstepCheckpointer

class State(TypedDict):
    said: Annotated[list[str], operator.add]

def node(number):
    def run(state):
        with open(os.environ["MADE"], "a") as file:
            file.write("x")
        if number == 8 and "fault" in state["said"]:
            raise ValueError("believed it")
        return {"said": ["fault" if os.environ.get("PLANTED") == str(number) else f"n{number}"]}
    return run

built = StateGraph(State)
for number in range(1, 9):
    built.add_node(f"n{number}", node(number))
    built.add_edge(f"n{number - 1}" if number > 1 else START, f"n{number}")
graph = built.compile(checkpointer=LockstepCheckpointer())

if __name__ == "__main__":
    for name in ("t", "own"):
        with contextlib.suppress(ValueError):
            graph.invoke({"said": []}, {"configurable": {"thread_id": name}})
"""


class Site:
    """A directory with the agent, a store and workers."""

    def __init__(self, folder: Path, server: Server) -> None:
        self.folder, self.server, self.queue = folder, server, unique("probes")
        self.agent = (PYTHON, "agent.py", str(STEPS))
        (folder / "agent.py").write_text(AGENT)
        (folder / "graph.py").write_text(GRAPH)
        (folder / "made").touch()

    @property
    def where(self) -> str:
        return f"{self.server.address}/{self.queue}"

    @property
    def store(self) -> str:
        return str(self.folder / "store.db")

    @property
    def made(self) -> int:
        """How many calls have really happened."""
        return (self.folder / "made").stat().st_size

    def env(self, **more: str) -> dict[str, str]:
        return {**os.environ, "LOCKSTEP_STORE": self.store, "MADE": str(self.folder / "made"), **more}

    def lockstep(self, *words: str, **env: str) -> CompletedProcess[str]:
        return command.run(*words, cwd=self.folder, env=self.env(**env), timeout=120)

    def run(self, *words: str, **env: str) -> None:
        """A program of its own, which may fail."""
        subprocess.run([PYTHON, *words], check=False, cwd=self.folder, env=self.env(**env), stderr=DEVNULL)

    def record(self, name: str) -> None:
        self.lockstep("record", "--run", name, "--", *self.agent, PLANTED=str(PLANTED))

    @contextmanager
    def worker(self, name: str, **env: str) -> Iterator[Any]:
        """A worker of the agents, which has said that it waits."""
        words = (
            "temporal",
            "worker",
            self.queue,
            "--address",
            self.server.address,
            "--folder",
            name,
            "--target",
            GRAPHS,
        )
        process = command.start(
            *words, "--", *self.agent, cwd=self.folder, env=self.env(**env), stdin=DEVNULL, stdout=DEVNULL, stderr=PIPE,
            text=True,
        )  # fmt: skip
        try:
            assert process.stderr is not None
            assert process.stderr.readline().startswith("● waiting for probes"), process.stderr.read()
            yield process
        finally:
            process.terminate()
            process.communicate(timeout=30)


def until(true: Callable[[], bool], seconds: float = 60.0) -> None:
    """Waits for something to come true."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.01)
