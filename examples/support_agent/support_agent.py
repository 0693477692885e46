"""A support agent that decides about a refund, on the OpenAI SDK.

    python support_agent.py --ticket 4711

It asks models in turn and three side by side, reads from a shop's systems at the same time, pays and
writes to the customer. What Lockstep sees of it without help: model calls, clock, random numbers and
ids. The decorators tell it which functions are tools, and which of them must never run by accident.
"""

import argparse
import asyncio
import datetime
import inspect
import json
import os
import random
import sys
import uuid

from openai import AsyncOpenAI

import lockstep

TICKETS = {
    4711: {
        "customer": "kim@example.com",
        "order": 452,
        "paid": 4000,
        "text": "The kettle arrived broken. I want my money back.",
    },
    4712: {
        "customer": "lee@example.com",
        "order": 453,
        "paid": 2500,
        "text": "Where is my order? It should be here by now.",
    },
}
POLICIES = {
    "standard": "You decide about support tickets. Approve refunds under 50.00 without asking.",
    "generous": "You decide about support tickets. Approve refunds under 500.00 without asking.",
}
REVIEWERS = {
    "fraud": "You estimate the risk of fraud in a refund.",
    "tone": "You describe the mood of a customer in a few words.",
    "rules": "You check a refund against the shop's rules.",
}


def shop_total() -> int:
    """What the shop's system says that an order cost: the demonstration lets it be wrong for a while."""
    with open(os.environ["SHOP"]) if "SHOP" in os.environ else open(os.devnull) as file:
        return json.loads(file.read() or "4000")


@lockstep.tool(effect="read")
async def get_order(order: int) -> dict:
    await asyncio.sleep(random.uniform(0.0, 0.03))
    return {"order": order, "item": "kettle", "total": shop_total(), "status": "delivered", "card": "1881"}


@lockstep.tool(effect="read")
async def get_customer(email: str) -> dict:
    await asyncio.sleep(random.uniform(0.0, 0.03))
    return {"email": email, "since": 2019, "refunds": random.randint(0, 3)}


@lockstep.tool(effect="read")
def get_policy(topic: str) -> str:
    return f"{topic}: broken on arrival is refunded in full within 30 days"


@lockstep.tool(effect="mutating")
async def issue_refund(order: int, cents: int) -> dict:
    await asyncio.sleep(0.02)
    return {"order": order, "cents": cents, "receipt": str(uuid.uuid4())}


@lockstep.tool(effect="mutating")
async def send_mail(to: str, text: str) -> str:
    await asyncio.sleep(0.01)
    return f"sent {len(text)} characters to {to}"


TOOLS = {tool.__name__: tool for tool in (get_order, get_customer, get_policy, issue_refund, send_mail)}


def described(name: str) -> dict:
    """A tool as the model gets to know it."""
    kinds = {int: "integer", str: "string"}
    parameters = inspect.signature(TOOLS[name]).parameters
    properties = {key: {"type": kinds[parameter.annotation]} for key, parameter in parameters.items()}
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return {"type": "function", "function": {"name": name, "parameters": schema}}


class Overpaid(Exception):
    """More was refunded than was paid."""


class Agent:
    """Works on one ticket at a time, by a policy."""

    def __init__(self, policy: str) -> None:
        self.model = AsyncOpenAI()
        self.policy = policy
        self.refunded = 0

    async def solve(self, number: int) -> str:
        ticket = TICKETS[number]
        case = uuid.uuid4()
        self.say(f"ticket {number}, case {case}")
        topic = await self.ask("You sort support tickets. Answer with one word.", ticket["text"])
        self.say(f"sorted as {topic}")

        talk = [{"role": "system", "content": self.policy}, {"role": "user", "content": json.dumps(ticket)}]
        await self.turn(talk)

        known = json.dumps([message for message in talk if message["role"] == "tool"])
        opinions = await asyncio.gather(*(self.ask(role, known) for role in REVIEWERS.values()))
        for name, opinion in zip(REVIEWERS, opinions, strict=True):
            self.say(f"{name}: {opinion}")
        talk.append({"role": "user", "content": " ".join(opinions)})

        while await self.turn(talk):
            pass
        summary = await self.sum_up(talk)
        self.audit(ticket["paid"])
        return summary

    async def turn(self, talk: list) -> bool:
        """One answer of the model, and the tools it asks for, all at once; whether there were any."""
        tools = [described(name) for name in TOOLS]
        answer = await self.model.chat.completions.create(model="gpt-4o", messages=talk, tools=tools)
        message = answer.choices[0].message
        talk.append(message.model_dump(exclude_none=True))
        calls = message.tool_calls or []
        results = await asyncio.gather(*(self.use(call.function.name, call.function.arguments) for call in calls))
        for call, result in zip(calls, results, strict=True):
            talk.append({"role": "tool", "tool_call_id": call.id, "content": json.dumps(result)})
        return bool(calls)

    def audit(self, paid: int) -> None:
        if self.refunded > paid:
            raise Overpaid(f"{self.refunded} cents were refunded, and {paid} paid")

    async def use(self, name: str, arguments: str) -> object:
        result = TOOLS[name](**json.loads(arguments))
        result = await result if inspect.isawaitable(result) else result
        if name == "issue_refund":
            self.refunded += json.loads(arguments)["cents"]
        self.say(f"{name}({arguments}) gave {json.dumps(result)}")
        return result

    async def ask(self, role: str, question: str) -> str:
        messages = [{"role": "system", "content": role}, {"role": "user", "content": question}]
        answer = await self.model.chat.completions.create(model="gpt-4o-mini", messages=messages)
        return answer.choices[0].message.content

    async def sum_up(self, talk: list) -> str:
        request = [*talk, {"role": "user", "content": "Sum up for the record."}]
        stream = await self.model.chat.completions.create(model="gpt-4o-mini", messages=request, stream=True)
        words = [chunk.choices[0].delta.content or "" async for chunk in stream]
        return "".join(words)

    def say(self, what: str) -> None:
        now = datetime.datetime.now()
        print(f"{now:%H:%M:%S.%f}  {what}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="Decides about a refund.")
    parser.add_argument("--ticket", type=int, choices=TICKETS, default=4711)
    parser.add_argument("--policy", choices=POLICIES, default="standard")
    asked = parser.parse_args()
    try:
        print(asyncio.run(Agent(POLICIES[asked.policy]).solve(asked.ticket)))
    except Overpaid as error:
        sys.exit(f"audit: {error}")


if __name__ == "__main__":
    main()
