"""The agents that faults are planted in, by the name of what they are made with."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from bench.planted import faults
from bench.planted.faults import Case
from bench.planted.framed import FRAMEWORKS, Framed
from bench.planted.provider import Provider
from bench.planted.trial import Agent

from lockstep.debugger.view import View


class Plain:
    """Plain Python, all in process. `quoting`: its outcome says some of what it stands on."""

    def __init__(self, *, quoting: bool = False) -> None:
        from bench.planted import plain

        self.name = "plain-quoting" if quoting else "plain"
        self._plain = plain
        self._target: Callable[[], Any] = plain.quoting if quoting else plain.agent
        self.provider: Provider = plain.provider

    def places(self, steps: int, kind: str) -> Sequence[int]:
        return range(1, steps + 1)

    def case(self, steps: int, kind: str, at: int, seed: str) -> Case:
        return faults.by_program(steps, kind, at, seed)

    def record(self, case: Case, store: str) -> str:
        return self._plain.record(case, store, self._target)

    def target(self, store: str) -> Any:
        return self._target

    def total(self, view: View) -> int | None:
        return self._plain.total_of(view)


class Graphed:
    """A LangGraph graph."""

    name = "langgraph"

    def __init__(self) -> None:
        from bench.planted import graphed

        self._graphed = graphed
        self.provider: Provider = graphed.provider
        self._case = Case("", (), "", 0)

    def places(self, steps: int, kind: str) -> Sequence[int]:
        return range(1, steps + 1)

    def case(self, steps: int, kind: str, at: int, seed: str) -> Case:
        return faults.by_program(steps, kind, at, seed)

    def record(self, case: Case, store: str) -> str:
        from lockstep_langgraph import LockstepCheckpointer

        self._case = case
        self.provider.record(case)
        saver = LockstepCheckpointer(store)
        try:
            graph = self._graphed.graph(case, saver)
            graph.invoke(
                self._graphed.begin(), {"configurable": {"thread_id": "clerk"}, "recursion_limit": case.steps + 2}
            )
        finally:
            saver.close()
        return "langgraph/clerk"

    def target(self, store: str) -> Any:
        return self._graphed.graph(self._case, None)

    def total(self, view: View) -> int | None:
        return int(view.result["total"]) if view.state == "complete" else None


class Flowed:
    """A Temporal workflow. It is recorded on a development server; its probes need none."""

    name = "temporal"

    def __init__(self) -> None:
        from bench.planted import flowed

        self._flowed = flowed
        self.provider: Provider = flowed.provider

    def places(self, steps: int, kind: str) -> Sequence[int]:
        return range(1, steps + 1)

    def case(self, steps: int, kind: str, at: int, seed: str) -> Case:
        return faults.by_program(steps, kind, at, seed)

    def record(self, case: Case, store: str) -> str:
        self.provider.record(case)
        name = f"clerk-{uuid.uuid4().hex}"
        asyncio.run(self._flowed.run(case, name, store))
        return f"temporal/{name}"

    def target(self, store: str) -> Any:
        from lockstep_temporal import Setup

        return Setup(**self._flowed.worker())

    def total(self, view: View) -> int | None:
        return int(view.result) if view.state == "complete" else None


AGENTS: dict[str, Callable[[], Agent]] = {
    "plain": Plain,
    "plain-quoting": partial(Plain, quoting=True),
    "langgraph": Graphed,
    "temporal": Flowed,
    **{name: partial(Framed, name) for name in FRAMEWORKS},
}
