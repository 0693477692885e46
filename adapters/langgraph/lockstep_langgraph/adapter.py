"""What Lockstep knows of LangGraph before anything of it is imported."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

from lockstep.adapter.contract import Adapter, Steps, Target, Versions, Way
from lockstep.adapter.late import Later
from lockstep.adapter.native import Native
from lockstep.errors import Code, TargetError
from lockstep.log.model import Value

_RUNS = "langgraph.pregel"


def _is_graph(target: Any) -> bool:
    return any(cls.__module__ == "langgraph.pregel.main" and cls.__name__ == "Pregel" for cls in type(target).__mro__)


def _program(target: Any, given: Value) -> Callable[[], Any]:
    raise TargetError(Code.BAD_TARGET, "a graph is the target of a thread's own run, as in langgraph/thread-1")


def _attach(module: ModuleType) -> None:
    """In a program that is recorded or replayed: once it has loaded what runs graphs. `langgraph` itself is a
    namespace, which nobody loads."""
    if module.__name__ == _RUNS:
        from lockstep_langgraph import insession

        insession.attach()


def _alike(one: Value, other: Value) -> bool:
    from lockstep_langgraph import compare

    return compare.values(one, other) is None


adapter = Adapter(
    name="langgraph",
    title="LangGraph",
    distribution="langgraph",
    extra="langgraph",
    modules=("langgraph", _RUNS),
    instrument=_attach,
    in_code=True,
    tested=Versions("1.1", "1.2.24"),
    steps=Steps(kind="checkpoint", what="each checkpoint of a thread, subgraphs' included"),
    restore=Way(exact=True),
    re_execute=Way(exact=True),
    target=Target(
        what="compiled graph, or module:graph", inputs="recorded, per turn", accepts=_is_graph, program=_program
    ),
    subject="lockstep_langgraph.subject:subject",
    native=Native(
        replay=Later("lockstep_langgraph.replaying:replay"),
        areplay=Later("lockstep_langgraph.replaying:areplay"),
        fork=Later("lockstep_langgraph.forking:fork"),
        afork=Later("lockstep_langgraph.forking:afork"),
        alike=_alike,
    ),
)
