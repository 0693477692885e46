"""A support agent as a Temporal workflow: the model, the shop and the bank are activities.

What came of it in production on a bad day is beside this file, as its history was downloaded: overpaid.json. With it,
and without a server:

    lockstep import overpaid.json
    lockstep replay temporal/ticket-4712 --target refund_workflow

The model is at OPENAI_BASE_URL. Without a key, there is one on loopback whose decisions are scripted:

    python -m lockstep.testing.provider --script shop_model.py:answer

`python refund_workflow.py --ticket 4711` runs it for real, on a server at TEMPORAL_ADDRESS
(`temporal server start-dev`).
"""

import argparse
import asyncio
import json
import os
from datetime import timedelta
from pathlib import Path
from typing import Any

from temporalio import activity, workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ApplicationError

with workflow.unsafe.imports_passed_through():
    from openai import AsyncOpenAI

    import lockstep

TICKETS = {
    4711: "Order 452: the kettle arrived broken. I want my money back.",
    4712: "Order 453: the lamp came twice. I want my money for one of them back.",
}
PAID = {452: 4000, 453: 2500}  # cents, by the bank
POLICY = "You decide about support tickets. Approve refunds under 50.00 without asking."
TOOLS = {"get_order": ["order"], "issue_refund": ["order", "cents"]}  # whole numbers, all of them


@activity.defn
async def ask_model(messages: list[dict[str, Any]]) -> dict[str, Any]:
    """What the model says to a conversation."""
    tools: Any = [{"type": "function", "function": _schema(name, takes)} for name, takes in TOOLS.items()]
    given: Any = messages
    async with AsyncOpenAI(max_retries=0) as client:  # Temporal tries again
        said = await client.chat.completions.create(model="gpt-4o", messages=given, tools=tools)
    return said.choices[0].message.model_dump(exclude_none=True)


def _schema(name: str, takes: list[str]) -> dict[str, Any]:
    properties = {each: {"type": "integer"} for each in takes}
    return {"name": name, "parameters": {"type": "object", "properties": properties, "required": takes}}


@activity.defn
def get_order(order: int) -> dict[str, Any]:
    """What was ordered, and what it cost."""
    shop = Path(os.environ.get("SHOP", os.devnull)).read_text()  # the shop's system can be wrong for a while
    return {"order": order, "total": json.loads(shop or str(PAID[order])), "status": "delivered"}


@activity.defn
def issue_refund(order: int, cents: int) -> dict[str, Any]:
    """Pays money back."""
    return {"order": order, "cents": cents, "receipt": activity.info().activity_id}


@activity.defn
def audit(order: int, cents: int) -> None:
    """Compares what was refunded with what was paid."""
    if cents > PAID[order]:
        raise ApplicationError(
            f"{cents} cents were refunded, and {PAID[order]} paid", type="Overpaid", non_retryable=True
        )


# What may run when a recording is run on from some step, and what never does by accident.
lockstep.mark(ask_model, effect="inference")
lockstep.mark(get_order, effect="read")
lockstep.mark(audit, effect="read")
lockstep.mark(issue_refund, effect="mutating")
ACTIVITIES = [ask_model, get_order, issue_refund, audit]

_OPTIONS: Any = {"start_to_close_timeout": timedelta(seconds=30), "retry_policy": RetryPolicy(maximum_attempts=3)}


@workflow.defn
class Refund:
    """Works on one ticket."""

    @workflow.run
    async def run(self, ticket: str) -> str:
        """Asks the model and does what it wants, until it has said its last word."""
        messages: list[dict[str, Any]] = [
            {"role": "system", "content": POLICY},
            {"role": "user", "content": ticket},
        ]
        while True:
            said = await workflow.execute_activity(ask_model, messages, **_OPTIONS)
            messages.append(said)
            if "tool_calls" not in said:
                return str(said["content"])
            for call in said["tool_calls"]:
                name, takes = call["function"]["name"], json.loads(call["function"]["arguments"])
                answer = await workflow.execute_activity(name, args=[takes[each] for each in TOOLS[name]], **_OPTIONS)
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": json.dumps(answer)})
                if name == "issue_refund":
                    # The customer has a few minutes to think better of it.
                    await workflow.sleep(timedelta(minutes=5))
                    await workflow.execute_activity(audit, args=[takes["order"], takes["cents"]], **_OPTIONS)


async def solve(number: int) -> str:
    """Works on a ticket on a real server; recorded, in one run for the workflow."""
    from concurrent.futures import ThreadPoolExecutor

    from temporalio.client import Client
    from temporalio.worker import Worker

    from lockstep_temporal import LockstepPlugin

    client = await Client.connect(os.environ.get("TEMPORAL_ADDRESS", "localhost:7233"), plugins=[LockstepPlugin()])
    with ThreadPoolExecutor() as pool:
        async with Worker(
            client, task_queue="refunds", workflows=[Refund], activities=ACTIVITIES, activity_executor=pool
        ):
            return await client.execute_workflow(
                Refund.run, TICKETS[number], id=f"ticket-{number}", task_queue="refunds"
            )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Decides about a refund.")
    parser.add_argument("--ticket", type=int, choices=TICKETS, default=4711)
    print(asyncio.run(solve(parser.parse_args().ticket)))
