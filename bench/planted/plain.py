"""The agent in plain Python: a program that asks its model and its tools in process, a round of five things over and
over. Its system prompt is what it read last from outside, and every later question to the model has it.
"""

from __future__ import annotations

from typing import Any

from bench.planted import faults
from bench.planted.faults import INBOX, MODEL, PROMPT, SEARCH, TOOL, Case
from bench.planted.provider import Provider

import lockstep
from lockstep.debugger.view import View

provider = Provider()
_case = Case("", (), "", 0)


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
    total, system, wanted = 0, "", 0
    for step, role in enumerate(_case.roles, 1):
        if role == MODEL:
            text = model(step, _case.order(step), total, system)
            wanted = faults.found(MODEL, text)
        else:
            text = _TOOLS[role](step, wanted if _case.told(step) else _case.order(step), total)
            system = text if role == PROMPT else system
        total = faults.counted(total, role, text)
    return total


def record(case: Case, store: str) -> str:
    """Records the run; its address."""
    global _case
    _case = case
    provider.record(case)
    lockstep.record("clerk", store=store)(agent)()
    return "clerk"


def total_of(view: View) -> int | None:
    """What a run came to, None where it broke down."""
    return int(view.result) if view.state == "complete" else None
