"""Graphs whose nodes and tools say that they ran, and forks of their threads."""

from __future__ import annotations

import operator
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypedDict

import lockstep
from lockstep.inprocess import Run
from lockstep_langgraph import LockstepCheckpointer


class State(TypedDict, total=False):
    said: Annotated[list[str], operator.add]
    total: int


class Bench:
    """A store, with threads that are forked.

    ran  names of the nodes that have run since it was cleared
    """

    def __init__(self, path: Path) -> None:
        self.store = str(path / "s.db")
        self.ran: list[str] = []
        self._savers: list[LockstepCheckpointer] = []

    def saver(self, **options: Any) -> LockstepCheckpointer:
        self._savers.append(LockstepCheckpointer(self.store, **options))
        return self._savers[-1]

    def close(self) -> None:
        for saver in self._savers:
            saver.close()

    def node(self, name: str) -> Callable[[Any], dict[str, Any]]:
        def run(state: Any) -> dict[str, Any]:
            self.ran.append(name)
            return {"said": [name]}

        run.__name__ = name
        return run

    def fork(self, address: str, graph: Any, **options: Any) -> Run:
        """Forks `langgraph/<address>`; `ran` has what ran for it."""
        self.ran.clear()
        return lockstep.fork(f"langgraph/{address}", graph, store=self.store, **options)


def on(thread: str) -> dict[str, Any]:
    return {"configurable": {"thread_id": thread}}
