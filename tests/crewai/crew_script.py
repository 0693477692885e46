"""What the loopback provider says to the agents of `crews`: by who asks and by how often that agent has spoken."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from hashlib import blake2b
from typing import Any

from msgspec.structs import replace

from lockstep.testing import Answer, Request, ToolCall

type Said = Answer | str | Callable[[Request], Answer | str]

_ASKER = re.compile(r"You are ([\w ]+)\.")


def asker(request: Request) -> str:
    """The agent whose model call this is; "" of a flow that asks by itself."""
    found = _ASKER.search(text(request.json["messages"][0]))
    return found[1] if found else ""


def spoken(request: Request) -> int:
    """How often the agent that asks has spoken."""
    return sum(message["role"] == "assistant" for message in request.json["messages"])


def asked(request: Request) -> str:
    """All that was asked, as one text."""
    return " ".join(text(message) for message in request.json["messages"])


def answered(request: Request) -> Answer | None:
    """The script of the provider."""
    if not isinstance(request.json, dict) or "messages" not in request.json:
        return None
    lines = SCRIPT[asker(request)]
    said = lines[min(spoken(request), len(lines) - 1)]
    if callable(said):
        said = said(request)
    return said if isinstance(said, Answer) else Answer(f"{said} ({request.number})")


def settled(request: Request) -> Answer | None:
    """The same, where equal requests get equal answers, and others do not: what is said again is the same exactly if
    all that was asked is."""
    return answered(replace(request, number=int.from_bytes(blake2b(request.body, digest_size=4).digest())))


def text(message: dict[str, Any]) -> str:
    said = message.get("content") or ""
    if isinstance(said, list):
        return " ".join(part.get("text", "") for part in said)
    return str(said)


def calls(*wanted: tuple[str, dict[str, Any]]) -> Callable[[Request], Answer]:
    """Tool calls, with ids of their own in each request, as a model gives them."""

    def say(request: Request) -> Answer:
        return Answer(
            calls=tuple(ToolCall(name, given, f"call_{request.number}_{n}") for n, (name, given) in enumerate(wanted))
        )

    return say


def _verdict(request: Request) -> Answer:
    return Answer(json.dumps({"score": request.number, "because": f"it is ({request.number})"}))


def _plan(request: Request) -> Answer:
    plans = [{"task_number": n, "task": f"task {n}", "plan": f"do it well ({request.number})"} for n in (1, 2, 3)]
    return Answer(json.dumps({"list_of_plans_per_task": plans}))


def _short(request: Request) -> str:
    """Too long a text, until somebody says so."""
    return "short" if "too long" in asked(request) else "a text that is much too long to be sent"


def _human(request: Request) -> str:
    """Another text, once somebody has asked for it."""
    return "a kinder text" if "be kinder" in asked(request) else "a text"


LOOK = calls(("look_up", {"order": 7}))
REFUND = calls(("issue_refund", {"order": 7, "cents": 4000}))
_DELEGATE = calls(
    ("delegate_work_to_coworker", {"coworker": "researcher", "task": "look order 7 up", "context": "a refund"})
)

SCRIPT: dict[str, list[Said]] = {
    "": ["the mind says"],
    "researcher": [LOOK, "order 7 cost 40.00"],
    "writer": ["dear customer"],
    "checker": ["approved"],
    "clerk": [LOOK, REFUND, "refunded"],
    "Crew Manager": [_DELEGATE, "the manager has it"],
    "chief": [_DELEGATE, "the chief has it"],
    "thinker": [
        'Thought: I have to look.\nAction: look_up\nAction Input: {"order": 7}',
        'Thought: And pay.\nAction: issue_refund\nAction Input: {"order": 7, "cents": 4000}',
        "Thought: I now know the final answer\nFinal Answer: it was paid",
    ],
    "scout": [
        calls(*(("slowly", {"place": p, "ticks": t}) for p, t in (("Pune", 9), ("Rome", 5), ("Oslo", 1)))),
        "three places",
    ],
    "twin": [calls(("look_up", {"order": 7}), ("look_up", {"order": 7})), "both are in"],
    "judge": [_verdict],
    "Task Execution Planner": [_plan],
    "brief": [_short],
    "friend": [_human],
}
