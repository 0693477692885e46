"""CrewAI with Lockstep: the agent wrapper.

    import lockstep_crewai
    crew = lockstep_crewai.wrap(crew)        # Crew, Agent, LiteAgent or Flow: the only line that changes

Importing this imports nothing of CrewAI; what is wrapped does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lockstep.adapter import late_names
from lockstep_crewai.adapter import adapter

__all__ = ["adapter", "wrap"]

if TYPE_CHECKING:
    from lockstep_crewai.entry import wrap
else:
    __getattr__ = late_names(adapter, globals(), wrap="entry")
