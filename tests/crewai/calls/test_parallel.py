"""Tools that a model calls at once."""

from __future__ import annotations

import threading
import time
from typing import Any

from asked import LANE, Tape
from crewai import Agent, Task
from crewai.tools import tool

from lockstep.testing import Answer, Provider, ToolCall

ran: list[str] = []


def helper(*tools: Any) -> Any:
    agent = Agent(role="helper", goal="help", backstory="You do your work.", llm="openai/gpt-4o", tools=list(tools))
    task = Task(description="look", expected_output="a text", agent=agent)
    return lambda: agent.execute_task(task)


def test_each_of_them_has_a_lane_in_the_order_in_which_the_model_named_them(provider: Provider, tape: Tape) -> None:
    ran.clear()
    threads: set[int] = set()

    @tool("look_up")
    def look_up(order: int) -> str:
        """Looks an order up."""
        threads.add(threading.get_ident())
        time.sleep((3 - order % 3) / 50)  # the last is over first
        ran.append(f"{order}")
        return f"look {len(ran)}"

    provider.script = [
        Answer(calls=tuple(ToolCall("look_up", {"order": 7}, f"call_{n}") for n in range(3))),
        Answer(calls=tuple(ToolCall("look_up", {"order": n}, f"call_{n}") for n in range(2))),
        Answer(calls=(ToolCall("look_up", {"order": 9}, "call_9"),)),
        Answer("done"),
    ]
    assert tape.record(helper(look_up)) == "done"
    assert len(threads) > 1
    tools = [lane for lane, kind, _ in tape.calls() if kind == "tool"]
    assert sorted(tools) == sorted([
        f"{LANE}/tool-1", f"{LANE}/tool-2", f"{LANE}/tool-3", f"{LANE}/tool-1", f"{LANE}/tool-2", LANE,
    ])  # fmt: skip
    before = [*ran]
    provider.stop()
    # The same question three times at once, and three answers: each goes to its own, or the next request differs.
    for _ in range(5):
        assert tape.replay(helper(look_up)) == "done"
    assert ran == before


def test_tools_that_run_one_after_the_other_stay_in_the_lane(provider: Provider, tape: Tape) -> None:
    @tool("once", max_usage_count=2)
    def once(order: int) -> str:
        """Looks an order up, no more than twice."""
        return f"order {order}"

    provider.script = [
        Answer(calls=(ToolCall("once", {"order": 1}), ToolCall("once", {"order": 2}), ToolCall("once", {"order": 3}))),
        Answer("done"),
    ]
    assert tape.record(helper(once)) == "done"
    assert [lane for lane, kind, _ in tape.calls() if kind == "tool"] == [LANE, LANE]
    once.reset_usage_count()
    provider.stop()
    assert tape.replay(helper(once)) == "done"
    assert once.current_usage_count == 2
