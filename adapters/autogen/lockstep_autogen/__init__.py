"""AutoGen with Lockstep: the message hook.

    import lockstep_autogen
    lockstep_autogen.attach(team)        # any AgentChat team or agent, before its first run

Importing this imports nothing of AutoGen; what is attached does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lockstep.adapter import late_names
from lockstep_autogen.adapter import adapter

__all__ = [
    "LockstepInterventionHandler",
    "adapter",
    "attach",
    "load",
    "record_model",
    "record_tool",
    "stop_at",
    "thread",
]

if TYPE_CHECKING:
    from lockstep_autogen.loading import load, thread
    from lockstep_autogen.publishing import LockstepInterventionHandler
    from lockstep_autogen.recording import attach
    from lockstep_autogen.stopping import stop_at
    from lockstep_autogen.unseen import record_model, record_tool
else:
    __getattr__ = late_names(
        adapter, globals(), LockstepInterventionHandler="publishing", attach="recording", load="loading",
        record_model="unseen", record_tool="unseen", stop_at="stopping", thread="loading",
    )  # fmt: skip
