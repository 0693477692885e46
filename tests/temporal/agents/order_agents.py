"""Agents of OpenAI's SDK as Temporal workflows: a support desk that looks an order up and refunds it.

Each model call is an activity, each tool too. The model is on loopback, at OPENAI_BASE_URL.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from temporalio import activity, workflow

with workflow.unsafe.imports_passed_through():
    from agents import Agent, Runner
    from temporalio.openai_agents import ModelActivityParameters, OpenAIAgentsPlugin
    from temporalio.openai_agents.workflow import activity_as_tool

    import lockstep

PAID = {452: 4000, 453: 2500}
ran: list[str] = []  # the activities that were really run, in this process


@activity.defn
async def get_order(order: int) -> dict[str, Any]:
    """What was ordered, and what it cost."""
    ran.append(f"get_order({order})")
    return {"order": order, "total": PAID[order], "status": "delivered"}


@activity.defn
def get_policy(topic: str) -> str:
    """The shop's rules."""
    ran.append(f"get_policy({topic})")
    return f"{topic}: broken is refunded in full"


@activity.defn
async def issue_refund(order: int, cents: int) -> dict[str, Any]:
    """Pays money back."""
    ran.append(f"issue_refund({order}, {cents})")
    return {"order": order, "cents": cents}


lockstep.mark(get_order, effect="read")
lockstep.mark(get_policy, effect="read")
lockstep.mark(issue_refund, effect="mutating")
ACTIVITIES = [get_order, get_policy, issue_refund]


def _tool(fn: Any) -> Any:
    return activity_as_tool(fn, start_to_close_timeout=timedelta(seconds=20))


def _desk() -> Agent[Any]:
    payer = Agent[Any](name="payer", instructions="Pay what is owed.", tools=[_tool(issue_refund)], model="gpt-4o-mini")
    return Agent[Any](
        name="desk", instructions=INSTRUCTIONS, tools=[_tool(get_order), _tool(get_policy)], handoffs=[payer],
        model="gpt-4o",
    )  # fmt: skip


INSTRUCTIONS = "You decide about support tickets."


@workflow.defn
class Desk:
    """One ticket: the desk looks it up, and hands over to who pays."""

    @workflow.run
    async def run(self, ticket: str) -> str:
        result = await Runner.run(_desk(), ticket)
        return f"{result.final_output} ({workflow.uuid4().hex[:4]})"


@workflow.defn(name="Desk")
class HarshDesk:
    """The same, after somebody has worked on what the model is told."""

    @workflow.run
    async def run(self, ticket: str) -> str:
        agent = _desk()
        agent.instructions = f"{INSTRUCTIONS} Refuse all."
        result = await Runner.run(agent, ticket)
        return f"{result.final_output} ({workflow.uuid4().hex[:4]})"


def plugin() -> OpenAIAgentsPlugin:
    """The framework's own, with a model at OPENAI_BASE_URL."""
    return OpenAIAgentsPlugin(model_params=ModelActivityParameters(start_to_close_timeout=timedelta(seconds=20)))


def setup() -> Any:
    """For replays and forks."""
    from lockstep_temporal import Setup

    return Setup(workflows=[Desk], activities=ACTIVITIES, plugins=[plugin()])
