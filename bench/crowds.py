"""How exactly teams whose agents speak at once replay: records n of them with random latencies, and replays each.

    python bench/crowds.py --n 100

Six agents speak at once, of whom three ask a model, one of these uses a tool and puts it into words, and three ask
nobody. Each takes another time in each recording and in each replay. All must be identical, and no request be made.
"""

from __future__ import annotations

import argparse
import asyncio
import collections
import os
import random
import re
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from autogen_agentchat.agents import AssistantAgent, BaseChatAgent
from autogen_agentchat.base import Response
from autogen_agentchat.messages import BaseChatMessage, TextMessage
from autogen_agentchat.teams import DiGraphBuilder, GraphFlow
from autogen_ext.models.openai import OpenAIChatCompletionClient

import lockstep
import lockstep_autogen
from lockstep.testing import Answer, Provider, Request, ToolCall

_LATENCIES = (0, 0, 0.0005, 0.001, 0.002, 0.004)  # seconds


class Musing(BaseChatAgent):
    """Asks nobody, and takes its time."""

    @property
    def produced_message_types(self) -> Sequence[type[BaseChatMessage]]:
        return (TextMessage,)

    async def on_messages(self, messages: Any, cancellation_token: Any) -> Response:
        await asyncio.sleep(random.choice(_LATENCIES))
        return Response(chat_message=TextMessage(content=f"{self.name} muses", source=self.name))

    async def on_reset(self, cancellation_token: Any) -> None: ...


async def look_up(order: int) -> str:
    """Looks an order up."""
    await asyncio.sleep(random.choice(_LATENCIES))
    return f"order {order}"


def agent(name: str, **more: Any) -> AssistantAgent:
    client = OpenAIChatCompletionClient(model="gpt-4o-2024-08-06", max_retries=0)
    return AssistantAgent(name, client, system_message=f"You are {name}.", **more)


def crowd() -> GraphFlow:
    first, last = agent("first"), agent("last")
    musing = [Musing(f"musing_{number}", "muses") for number in range(3)]
    asking = [agent("asker_0"), agent("asker_1", tools=[look_up], reflect_on_tool_use=True), agent("asker_2")]
    built = DiGraphBuilder()
    for node in (first, *musing, *asking, last):
        built.add_node(node)
    for one in (*musing, *asking):
        built.add_edge(first, one).add_edge(one, last)
    return GraphFlow(built.get_participants(), built.build(), name="crowd")


def said(request: Request) -> Answer | None:
    if not isinstance(request.json, dict) or "messages" not in request.json:
        return None
    time.sleep(random.choice(_LATENCIES))
    name = re.sub(r"You are (\w+)\.", r"\1", request.json["messages"][0]["content"])
    if name == "asker_1" and not any(message["role"] == "tool" for message in request.json["messages"]):
        return Answer(calls=(ToolCall("look_up", {"order": 7}, f"call_{request.number}"),))
    return Answer(f"{name} ({request.number})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=100, help="recordings")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    random.seed(asked.seed)
    orders: collections.Counter[tuple[str, ...]] = collections.Counter()
    with tempfile.TemporaryDirectory() as folder, Provider(said) as provider:
        os.environ.update(provider.environ, LOCKSTEP_STORE=str(Path(folder, "store.db")))
        for _ in range(asked.n):
            result = asyncio.run(lockstep_autogen.attach(crowd(), run="crowd").run(task="go"))
            orders[tuple(message.source for message in result.messages)] += 1
        requests, same = provider.requests, 0
        for number in range(1, asked.n + 1):
            replay = lockstep.replay(f"autogen/crowd{f'-{number}' if number > 1 else ''}", crowd)
            same += replay.identical
            if replay.divergence is not None:
                print(replay.divergence)
        live = provider.requests - requests
    print(f"{len(orders)} orders in {asked.n} recordings: {same} replays identical, {live} requests")
    sys.exit(0 if (same, live) == (asked.n, 0) else 1)


if __name__ == "__main__":
    main()
