"""AG2 (1.x, `import ag2`) with Lockstep: an agent that can be replayed.

    import lockstep_ag2
    lockstep_ag2.attach(agent)            # the only line that is added, before the agent is asked for the first time

Importing this imports nothing of AG2; `attach` does. The classic API (`import autogen`, `ConversableAgent`) and AG2's
Network (hub, channels) come later; until then the core's own taps record such programs: `lockstep record`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lockstep.adapter import late_names
from lockstep_ag2.adapter import adapter

__all__ = ["LockstepMiddleware", "adapter", "attach"]

if TYPE_CHECKING:
    from lockstep_ag2.attaching import attach
    from lockstep_ag2.middleware import LockstepMiddleware
else:
    __getattr__ = late_names(adapter, globals(), LockstepMiddleware="middleware", attach="attaching")
