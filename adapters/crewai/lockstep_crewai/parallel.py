"""Tools that a model calls at once run on threads of their own, so each has a lane of its own, in the order in which
the model named them: `research/find/tool-1`, `research/find/tool-2`. So have the steps of a plan, which CrewAI may
carry out at once: `research/find/step-1`.
"""

from __future__ import annotations

from contextvars import ContextVar
from functools import wraps
from typing import Any

from crewai.agents.step_executor import StepExecutor

from lockstep_crewai import classes, current, naming
from lockstep_crewai.executors import AgentExecutor

# The calls of one answer that are about to run at once, in their order. Each thread gets it with its context.
_at_once: ContextVar[tuple[Any, ...]] = ContextVar("lockstep_crewai_at_once", default=())


def install() -> None:
    """Gives those that run at once lanes of their own. Once."""
    classes.wrap(AgentExecutor, "_should_parallelize_native_tool_calls", _deciding)
    classes.wrap(AgentExecutor, "_execute_single_native_tool_call", _executing)
    classes.wrap(StepExecutor, "execute", _stepping)


def _deciding(plain: Any) -> Any:
    @wraps(plain)
    def decide(self: Any, tool_calls: Any) -> Any:
        at_once = plain(self, tool_calls)
        _at_once.set(tuple(tool_calls) if at_once else ())
        return at_once

    return decide


def _executing(plain: Any) -> Any:
    @wraps(plain)
    def execute(self: Any, tool_call: Any) -> Any:
        place = current.place()
        number = next((n for n, each in enumerate(_at_once.get(), 1) if each is tool_call), 0)
        if place is None or not number:
            return plain(self, tool_call)
        with current.within(naming.tool_lane(place.lane, number - 1)):
            return plain(self, tool_call)

    return execute


def _stepping(plain: Any) -> Any:
    @wraps(plain)
    def execute(self: Any, todo: Any, *args: Any, **options: Any) -> Any:
        place = current.place()
        if place is None:
            return plain(self, todo, *args, **options)
        with current.within(f"{place.lane}/step-{todo.step_number}"):
            return plain(self, todo, *args, **options)

    return execute
