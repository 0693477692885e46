"""Whether the installed CrewAI has what the seams are put into. Some of these places are private: they may move."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import version
from typing import Any

from crewai import Agent, Crew, Task
from crewai.flow.runtime import Flow
from crewai.hooks.contexts import StepContext
from crewai.lite_agent import LiteAgent
from crewai.llms.base_llm import BaseLLM

from lockstep.errors import AdapterError, Code
from lockstep_crewai.adapter import adapter

# By owner: what it has to have, and with which parameters.
_PLACES: Mapping[Any, Mapping[str, tuple[str, ...]]] = {
    Crew: {
        "kickoff": ("inputs", "input_files"), "kickoff_async": ("inputs",), "akickoff": ("inputs",), "copy": (),
        "calculate_usage_metrics": (),
        "kickoff_for_each": ("inputs",), "kickoff_for_each_async": ("inputs",), "akickoff_for_each": ("inputs",),
    },
    Agent: {"kickoff": ("messages",), "kickoff_async": ("messages",), "akickoff": ("messages",)},
    LiteAgent: {"kickoff": ("messages",), "kickoff_async": ("messages",)},
    Flow: {
        "kickoff": ("inputs",), "kickoff_async": ("inputs",), "akickoff": ("inputs",), "resume": ("feedback",),
        "resume_async": ("feedback",), "_execute_method": ("method_name", "method"), "is_crewai_internal": (),
    },
    Task: {
        "execute_sync": ("agent", "context", "tools"), "execute_async": ("agent", "context", "tools"),
        "aexecute_sync": ("agent", "context", "tools"), "_execute_task_async": ("future",),
    },
    BaseLLM: {"call": ("messages", "tools", "available_functions", "response_model"), "acall": ("messages",)},
    import_module("crewai.hooks.dispatch"): {"scoped_hooks": ("hooks",), "get_scoped_hooks": ("point",)},
    StepContext: {"kind": (), "step_name": (), "payload": ()},
}  # fmt: skip


@cache
def probe() -> None:
    """Raises AdapterError LS410 where a place is missing, or takes something else."""
    for owner, places in _PLACES.items():
        for name, parameters in places.items():
            found = inspect.getattr_static(owner, name, None)
            if found is None and name not in getattr(owner, "__dataclass_fields__", {}):
                _unfit(f"{owner.__name__} has no {name!r}")
            missing = [each for each in parameters if each not in _parameters(found)]
            if missing:
                _unfit(f"{owner.__name__}.{name} takes no {missing[0]!r}")


def _parameters(found: Any) -> Mapping[str, Any]:
    try:
        return inspect.signature(found).parameters
    except (TypeError, ValueError):
        return {}


def _unfit(what: str) -> None:
    tested = adapter.tested
    raise AdapterError(
        Code.UNFIT_FRAMEWORK,
        f"{what} in this environment ({adapter.distribution} {version(adapter.distribution)}), so a crew cannot be"
        f" recorded. Lockstep is tested with {tested.oldest} to {tested.newest}: install one of these, or a newer"
        " Lockstep",
    )
