"""A support agent on LangGraph that decides about a refund. Its checkpointer is Lockstep's: that is all it takes.

    python langgraph_support_agent.py --ticket 4711
    lockstep log langgraph/ticket-4711
    lockstep replay langgraph/ticket-4711 --target langgraph_support_agent:graph

The model is at OPENAI_BASE_URL. Without a key, there is one on loopback whose decisions are scripted (`answer` below):

    python -m lockstep.testing.provider --script langgraph_support_agent.py:answer
"""

import argparse
import json
import os
import sys
import uuid
from pathlib import Path
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AnyMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.prebuilt import ToolNode

import lockstep
from lockstep.testing import Answer, Request, ToolCall
from lockstep_langgraph import LockstepCheckpointer

TICKETS = {
    4711: "Order 452: the kettle arrived broken. I want my money back.",
    4712: "Order 453: the lamp came twice. I want my money for one of them back.",
}
PAID = {452: 4000, 453: 2500}  # cents, by the bank
POLICY = "You decide about support tickets. Approve refunds under 50.00 without asking."


class State(TypedDict):
    """The conversation about a ticket."""

    messages: Annotated[list[AnyMessage], add_messages]


class OverpaidError(Exception):
    """More was refunded than was paid."""


@tool
def get_order(order: int) -> str:
    """What was ordered, and what it cost."""
    shop = Path(os.environ.get("SHOP", os.devnull)).read_text()  # the demonstration lets it be wrong for a while
    return json.dumps({"order": order, "total": json.loads(shop or str(PAID[order])), "status": "delivered"})


@tool
def get_policy(topic: str) -> str:
    """The shop's rules."""
    return f"{topic}: broken or unwanted is refunded in full within 30 days"


@tool
def issue_refund(order: int, cents: int) -> str:
    """Pays money back."""
    return json.dumps({"order": order, "cents": cents, "receipt": str(uuid.uuid4())})


# What may run when a recording is run on from some step, and what never does by accident.
lockstep.mark(get_order, effect="read")
lockstep.mark(get_policy, effect="read")
lockstep.mark(issue_refund, effect="mutating")
TOOLS = [get_order, get_policy, issue_refund]


def agent(state: State) -> State:
    """Asks the model what to do."""
    model = ChatOpenAI(model="gpt-4o").bind_tools(TOOLS)
    return {"messages": [model.invoke([SystemMessage(POLICY), *state["messages"]])]}


def audit(state: State) -> State:
    """Compares what was refunded with what was paid."""
    for message in state["messages"]:
        if isinstance(message, ToolMessage) and message.name == "issue_refund":
            refund = json.loads(message.text)
            if refund["cents"] > PAID[refund["order"]]:
                raise OverpaidError(f"{refund['cents']} cents were refunded, and {PAID[refund['order']]} paid")
    return {"messages": []}


def wants_tools(state: State) -> str:
    """Where to go on after an answer of the model."""
    return "tools" if state["messages"][-1].tool_calls else "audit"


builder = StateGraph(State)
builder.add_node(agent)
builder.add_node("tools", ToolNode(TOOLS))
builder.add_node(audit)
builder.add_edge(START, "agent")
builder.add_conditional_edges("agent", wants_tools, ["tools", "audit"])
builder.add_edge("tools", "agent")
builder.add_edge("audit", END)
graph = builder.compile(checkpointer=LockstepCheckpointer(types=[OverpaidError]))


def solve(number: int) -> str:
    """Works on a ticket, in a thread of its own."""
    asked = {"messages": [HumanMessage(TICKETS[number])]}
    found = graph.invoke(asked, {"configurable": {"thread_id": f"ticket-{number}"}})
    return found["messages"][-1].text


def answer(request: Request) -> Answer:
    """What the model on loopback answers: the next tools to use, by what was used so far; then a summary."""
    messages: list[dict[str, Any]] = request.json["messages"]
    order = int(messages[1]["content"].split(":")[0].split()[1])
    told = [json.loads(each["content"]) for each in messages if each["role"] == "tool" and each["content"][0] == "{"]
    total = next((each["total"] for each in told if "total" in each), None)
    if total is None:
        return Answer(calls=(ToolCall("get_order", {"order": order}), ToolCall("get_policy", {"topic": "refunds"})))
    if not any("receipt" in each or "cents" in each for each in told):
        return Answer(calls=(ToolCall("issue_refund", {"order": order, "cents": total}),))
    return Answer(f"Refunded {total / 100:.2f} (note {request.number}).")


def main() -> None:
    parser = argparse.ArgumentParser(description="Decides about a refund.")
    parser.add_argument("--ticket", type=int, choices=TICKETS, default=4711)
    try:
        print(solve(parser.parse_args().ticket))
    except OverpaidError as error:
        sys.exit(f"audit: {error}")


if __name__ == "__main__":
    main()
