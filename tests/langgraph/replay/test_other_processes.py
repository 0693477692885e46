"""A thread that one process left behind is replayed in another, whose sets come in another order."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

AGENT = """
    import operator
    from typing import Annotated, TypedDict

    from langgraph.graph import START, StateGraph

    from lockstep_langgraph import LockstepCheckpointer

    class State(TypedDict):
        seen: Annotated[list[str], operator.add]

    builder = StateGraph(State)
    for name in "abcdef":
        builder.add_node(name, lambda state, name=name: {"seen": [name]})
        builder.add_edge(START, name)
    builder.add_node("last", lambda state: {"seen": ["last"]})
    builder.add_edge(list("abcdef"), "last")
    graph = builder.compile(checkpointer=LockstepCheckpointer("s.db"))
    if __name__ == "__main__":
        graph.invoke({"seen": []}, {"configurable": {"thread_id": "t"}})
"""


def test_another_hash_seed_makes_no_difference(tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text(textwrap.dedent(AGENT))

    def run(seed: int, *words: str) -> subprocess.CompletedProcess[str]:
        environ = {**os.environ, "PYTHONHASHSEED": str(seed)}
        return subprocess.run(
            [sys.executable, *words], cwd=tmp_path, env=environ, capture_output=True, text=True, check=False, timeout=60
        )

    assert run(1, "agent.py").returncode == 0
    for seed in (1, 2, 3):
        done = run(
            seed, "-m", "lockstep", "replay", "langgraph/t", "--target", "agent:graph", "--store", "s.db", "--json"
        )
        assert json.loads(done.stdout)["identical"], done.stdout + done.stderr
