"""A team of AutoGen's that believes a wrong price and pays too much back: recorded, replayed with its model gone,
searched for the answer that made it wrong, and run on with that answer mended.

    python examples/autogen_refund.py

Needs `pip install "lockstep-replay[autogen]" "autogen-ext[openai]"`. The model is part of this file, on loopback.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from pathlib import Path
from typing import Any

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.conditions import TextMentionTermination
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_core.tools import FunctionTool
from autogen_ext.models.openai import OpenAIChatCompletionClient

import lockstep
import lockstep_autogen
from lockstep.testing import Answer, Provider, Request, ToolCall

looked: list[int] = []
paid: list[int] = []


async def get_order(order: int) -> str:
    """The shop's prices are wrong once."""
    looked.append(order)
    return "total 40000" if len(looked) == 1 else "total 4000"


async def issue_refund(order: int, cents: int) -> str:
    paid.append(cents)
    return f"refunded {cents}"


def make_team() -> RoundRobinGroupChat:
    model = OpenAIChatCompletionClient(model="gpt-4o-2024-08-06")
    look = FunctionTool(get_order, description="What an order cost.")
    pay = FunctionTool(issue_refund, description="Pays money back.")
    lockstep.mark(look, effect="read")
    lockstep.mark(pay, effect="mutating")
    clerk = AssistantAgent("clerk", model, system_message="You are a clerk.", tools=[look, pay])
    checker = AssistantAgent("checker", model, system_message="You are a checker.")
    return RoundRobinGroupChat([clerk, checker], name="refund", termination_condition=TextMentionTermination("DONE"))


def answer(request: Request) -> Answer:
    """The model: the clerk looks the order up and pays what it cost; the checker waits for that."""
    messages: list[dict[str, Any]] = request.json["messages"]
    if messages[0]["content"] == "You are a checker.":
        said = next((each["content"] for each in reversed(messages) if "refunded" in str(each["content"])), "")
        return Answer(f"DONE, {said}" if said else "go on")
    told = [str(each["content"]) for each in messages if each["role"] == "tool"]
    if not told:
        return Answer(calls=(ToolCall("get_order", {"order": 452}),))
    return Answer(calls=(ToolCall("issue_refund", {"order": 452, "cents": int(told[-1].split()[1])}),))


def last(result: Any) -> str:
    """What was said last."""
    return str(result.messages[-1].content)


def main() -> None:
    with Provider(answer) as model:
        os.environ |= model.environ
        team = lockstep_autogen.attach(make_team())
        print("recorded ", last(asyncio.run(team.run(task="Refund order 452"))))

    replay = lockstep.replay("autogen/refund", make_team)
    print("replayed ", last(replay.result), "/ identical" if replay.identical else replay.divergence, f"/ paid {paid}")

    with Provider(answer) as model:
        os.environ |= model.environ
        verdict = lockstep.bisect(
            "autogen/refund", make_team, bad=lambda run: "40000" in str(run.result), live=["issue_refund"]
        )
        print("bisected ", verdict.verdict, verdict.effect)

        del paid[:]
        run = lockstep.fork(
            f"autogen/refund:{verdict.step}", make_team, edits={verdict.effect: "total 4000"}, live=["issue_refund"]
        )
        print("mended   ", last(run.result), f"/ paid {paid}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.environ["LOCKSTEP_STORE"] = str(Path(folder, "store.db"))
        main()
