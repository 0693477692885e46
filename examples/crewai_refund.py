"""A crew that believes a wrong price and pays too much back: recorded, replayed with its model gone, searched for the
answer that made it wrong, and run on with that answer mended.

    python examples/crewai_refund.py

Needs `pip install "lockstep-replay[crewai]"`. The model is part of this file, on loopback; nothing else is asked, and
CrewAI's own reports are off.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

# Before CrewAI is imported, which looks at them then.
os.environ |= {"CREWAI_DISABLE_TELEMETRY": "true", "CREWAI_TRACING_ENABLED": "false"}

from crewai import LLM, Agent, Crew, Task
from crewai.tools import tool

import lockstep
import lockstep_crewai
from lockstep.testing import Answer, Provider, Request, ToolCall

looked: list[int] = []
paid: list[int] = []


@tool("get_order")
def get_order(order: int) -> str:
    """What an order cost."""
    looked.append(order)
    return "total 40000" if len(looked) == 1 else "total 4000"  # the shop's prices are wrong once


@tool("issue_refund")
def issue_refund(order: int, cents: int) -> str:
    """Pays money back."""
    paid.append(cents)
    return f"refunded {cents}"


lockstep.mark(get_order, effect="read")
lockstep.mark(issue_refund, effect="mutating")


def make_crew() -> Crew:
    model = LLM(model="openai/gpt-4o")
    searcher = Agent(role="searcher", goal="Know orders.", backstory="You search.", llm=model, tools=[get_order])
    clerk = Agent(role="clerk", goal="Pay back.", backstory="You pay.", llm=model, tools=[issue_refund])
    look = Task(name="look", description="What did order {order} cost?", expected_output="a total", agent=searcher)
    pay = Task(name="pay", description="Refund order {order}.", expected_output="what was paid", agent=clerk)
    return Crew(name="refund", agents=[searcher, clerk], tasks=[look, pay])


def answer(request: Request) -> Answer:
    """The model: the searcher looks the order up, the clerk pays what it cost."""
    messages: list[dict[str, Any]] = request.json["messages"]
    told = [str(each["content"]) for each in messages if each["role"] == "tool"]
    if told:
        return Answer(told[-1])
    if "You are searcher" in messages[0]["content"]:
        return Answer(calls=(ToolCall("get_order", {"order": 452}),))
    total = messages[-1]["content"].partition("total ")[2].split()[0]
    return Answer(calls=(ToolCall("issue_refund", {"order": 452, "cents": int(total)}),))


def main() -> None:
    with Provider(answer) as model:
        os.environ |= model.environ
        crew = lockstep_crewai.wrap(make_crew())
        print("recorded ", crew.kickoff(inputs={"order": 452}))

    replay = lockstep.replay("crewai/refund", make_crew)
    print("replayed ", replay.result, "/ identical" if replay.identical else replay.divergence, f"/ paid {paid}")

    with Provider(answer) as model:
        os.environ |= model.environ
        verdict = lockstep.bisect(
            "crewai/refund", make_crew, bad=lambda run: "40000" in str(run.result), live=["issue_refund"]
        )
        print("bisected ", verdict.verdict, verdict.effect)

        del paid[:]
        run = lockstep.fork(
            f"crewai/refund:{verdict.step}", make_crew, edits={verdict.effect: "total 4000"}, live=["issue_refund"]
        )
        print("mended   ", run.result, f"/ paid {paid}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"LOCKSTEP_STORE": str(Path(folder, "store.db")), "CREWAI_STORAGE_DIR": folder}
        main()
