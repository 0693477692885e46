"""What runs an agent in CrewAI: its executor, a flow of CrewAI's own, which was in another module before 1.15.29."""

from __future__ import annotations

try:
    from crewai.agents.agent_executor import AgentExecutor
except ImportError:
    from crewai.experimental.agent_executor import AgentExecutor

__all__ = ["AgentExecutor", "is_internal"]


def is_internal(flow: type) -> bool:
    """Whether a class of flows is CrewAI's own, and no program's. Before 1.15.16 only its name told."""
    return bool(getattr(flow, "is_crewai_internal", issubclass(flow, AgentExecutor)))
