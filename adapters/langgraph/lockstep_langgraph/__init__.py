"""LangGraph with Lockstep: the checkpointer that can replay.

    from lockstep_langgraph import LockstepCheckpointer
    graph = builder.compile(checkpointer=LockstepCheckpointer())     # the only line that changes

Importing this imports nothing of LangGraph; `LockstepCheckpointer` does.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from lockstep.adapter import require
from lockstep_langgraph.adapter import adapter

__all__ = ["ConflictError", "LockstepCheckpointer", "adapter"]

_HOMES = {"ConflictError": "conflicts", "LockstepCheckpointer": "checkpointer"}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'lockstep_langgraph' has no attribute {name!r}")
    try:
        module = import_module(f"lockstep_langgraph.{home}")
    except ModuleNotFoundError:
        require(adapter)  # says how to install it, where it is LangGraph that is missing
        raise
    found = globals()[name] = getattr(module, name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
