"""Where a team's values came from: from one agent's message to the tool of another."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_core import FunctionCall
from autogen_ext.models.replay import ReplayChatCompletionClient

import lockstep
import lockstep_autogen
from lockstep.log.store import open_store
from lockstep.log.timeline import resolve


def get_order(order: int) -> dict[str, Any]:
    """What an order cost."""
    return {"id": order, "total": 4131 if order == 452 else 4132, "status": "delivered"}


def client(*answers: Any) -> Any:
    from autogen_core.models import CreateResult, RequestUsage

    usage = RequestUsage(prompt_tokens=1, completion_tokens=1)
    return ReplayChatCompletionClient(
        [
            one if isinstance(one, str)
            else CreateResult(finish_reason="function_calls", content=one, usage=usage, cached=False)
            for one in answers
        ],
        model_info={"vision": False, "function_calling": True, "json_output": True, "family": "unknown",
                    "structured_output": True},
    )  # fmt: skip


def asks(order: int) -> Sequence[FunctionCall]:
    return [FunctionCall(id=str(order), name="get_order", arguments=f'{{"order": {order}}}')]


@pytest.fixture
def team() -> str:
    clerk = AssistantAgent(
        "clerk", client(asks(453), "Order 453 is 4132.", asks(452), "Order 452 is 4131."), tools=[get_order],
        reflect_on_tool_use=True,
    )  # fmt: skip
    writer = AssistantAgent("writer", client("I see, and the other?", "Dear customer, order 452 was 4131 cents."))
    chat = lockstep_autogen.attach(RoundRobinGroupChat([clerk, writer], name="refund", max_turns=4))
    asyncio.run(chat.run(task="How much were orders 453 and 452?"))
    return "autogen/refund"


def test_a_message_of_one_agent_is_followed_to_the_tool_of_another(team: str) -> None:
    with open_store(None) as store:
        last = [step.number for step in resolve(store, team).timeline.steps if step.name == "writer"][-1]
    found = lockstep.why(f"{team}:{last}", "4131")
    assert found.origins[0].kind == "tool", found
    assert found.origins[0].name == "get_order"
    assert [link.kind for link in found.chain].count("model") >= 2  # the writer's and the clerk's
