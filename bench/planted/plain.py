"""The agent in plain Python: a program that asks its model and its tools in process, a round of five things over and
over. Its system prompt is what it read last from outside, and every later question to the model has it.

It says its total at the end, which no answer has said before. Quoting, it says beside it what it read at five of its
steps, of which the one with the fault is one: so much of an outcome can be followed to where it came from.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from bench.planted import faults
from bench.planted.faults import INBOX, MODEL, PROMPT, SEARCH, TOOL, Case
from bench.planted.provider import Provider

import lockstep
from lockstep.debugger.view import View

provider = Provider()
_case = Case("", (), "", 0)
_QUOTED = 5


@lockstep.tool(effect="read", name=TOOL)
def look_up(step: int, order: int, total: int) -> str:
    return provider.answer(step, order, total)


@lockstep.tool(effect="read", name=SEARCH)
def search(step: int, order: int, total: int) -> str:
    return provider.answer(step, order, total)


@lockstep.tool(effect="read", name=INBOX)
def inbox(step: int, order: int, total: int) -> str:
    return provider.answer(step, order, total)


@lockstep.tool(effect="read", name=PROMPT)
def instructions(step: int, order: int, total: int) -> str:
    return provider.answer(step, order, total)


@lockstep.tool(effect="read", name=MODEL)
def model(step: int, order: int, total: int, system: str) -> str:
    return provider.answer(step, order, total)


_TOOLS: dict[str, Any] = {TOOL: look_up, SEARCH: search, INBOX: inbox, PROMPT: instructions}


def agent() -> int:
    """The whole run; its control total."""
    return _run()[0]


def quoting() -> str:
    """The whole run; its control total, and what was read at some steps."""
    total, read = _run()
    return f"{total} in all, of this {', '.join(str(read[step - 1]) for step in _quoted(_case))}"


def _quoted(case: Case) -> list[int]:
    others = [step for step in range(1, case.steps + 1) if step != case.at]
    return sorted([case.at, *random.Random(f"{case.seed} quoted").sample(others, _QUOTED - 1)])


def _run() -> tuple[int, list[int]]:
    total, system, wanted = 0, "", 0
    read: list[int] = []
    for step, role in enumerate(_case.roles, 1):
        if role == MODEL:
            text = model(step, _case.order(step), total, system)
            wanted = faults.found(MODEL, text)
        else:
            text = _TOOLS[role](step, wanted if _case.told(step) else _case.order(step), total)
            system = text if role == PROMPT else system
        read.append(faults.found(role, text))
        total = faults.counted(total, role, text)
    return total, read


def record(case: Case, store: str, target: Callable[[], Any]) -> str:
    """Records the run; its address."""
    global _case
    _case = case
    provider.record(case)
    lockstep.record("clerk", store=store)(target)()
    return "clerk"


def total_of(view: View) -> int | None:
    """What a run came to, None where it broke down."""
    return int(str(view.result).partition(" ")[0]) if view.state == "complete" else None
