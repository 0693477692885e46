"""LangGraph with Lockstep: the checkpointer that can replay.

    from lockstep_langgraph import LockstepCheckpointer
    graph = builder.compile(checkpointer=LockstepCheckpointer())     # the only line that changes

Importing this imports nothing of LangGraph; `LockstepCheckpointer` does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lockstep.adapter import late_names
from lockstep_langgraph.adapter import adapter

__all__ = ["ConflictError", "LockstepCheckpointer", "adapter"]

if TYPE_CHECKING:
    from lockstep_langgraph.checkpointer import LockstepCheckpointer
    from lockstep_langgraph.conflicts import ConflictError
else:
    __getattr__ = late_names(adapter, globals(), ConflictError="conflicts", LockstepCheckpointer="checkpointer")
