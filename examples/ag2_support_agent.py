"""A support agent on AG2 that asks a researcher and decides about a refund. Attaching is all it takes.

    python ag2_support_agent.py --ticket 4711
    lockstep log ag2/support
    lockstep replay ag2/support --target ag2_support_agent:make_agent

The model is at OPENAI_BASE_URL. Without a key, there is one on loopback whose decisions are scripted (`answer` below):

    python -m lockstep.testing.provider --script ag2_support_agent.py:answer
"""

import argparse
import asyncio
import json
from typing import Any

from ag2 import Agent
from ag2.config import OpenAIConfig
from ag2.tools import tool

import lockstep
import lockstep_ag2
from lockstep.testing import Answer, Request, ToolCall

TICKETS = {4711: "Order 452: the kettle arrived broken. I want my money back."}
PAID = {452: 4000}  # cents, by the bank


@tool
def get_order(order: int) -> str:
    """What was ordered, and what it cost."""
    return json.dumps({"order": order, "total": PAID[order], "status": "delivered"})


@tool
def issue_refund(order: int, cents: int) -> str:
    """Pays money back."""
    return json.dumps({"order": order, "refunded": cents})


lockstep.mark(get_order, effect="read")
lockstep.mark(issue_refund, effect="mutating")


def make_agent() -> Agent:
    config = OpenAIConfig(model="gpt-4o")
    researcher = Agent("researcher", "You look orders up.", config=config, tools=[get_order])
    tools = [researcher.as_tool(description="Knows what was ordered."), issue_refund]
    return Agent("support", "You decide about support tickets.", config=config, tools=tools)


async def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--ticket", type=int, default=4711)
    agent = lockstep_ag2.attach(make_agent())
    reply = await agent.ask(TICKETS[arguments.parse_args().ticket])
    print(reply.body)


def answer(request: Request) -> Answer:
    """What the scripted model says."""
    messages: list[dict[str, Any]] = request.json["messages"]
    told = [str(each["content"]) for each in messages if each["role"] == "tool"]
    if "look orders up" in str(messages[0]["content"]):
        return Answer(f"It was {told[-1]}") if told else Answer(calls=(ToolCall("get_order", {"order": 452}),))
    if not told:
        return Answer(calls=(ToolCall("task_researcher", {"objective": "What did order 452 cost?"}),))
    if "refunded" not in told[-1]:
        return Answer(calls=(ToolCall("issue_refund", {"order": 452, "cents": 4000}),))
    return Answer("I have refunded 40.00.")


if __name__ == "__main__":
    asyncio.run(main())
