"""What the loopback provider says to the agents of `teams`: by who asks and by how often that agent has spoken."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from hashlib import blake2b
from typing import Any

from msgspec.structs import replace

from lockstep.testing import Answer, Request, ToolCall

type Said = Answer | str | Callable[[Request], Answer | str]

_ASKER = re.compile(r"You are (\w+)\.")
_PARTICIPANT = re.compile(r"^(?:user|planner|searcher|analyst): ", re.MULTILINE)


def asker(request: Request) -> str:
    """The agent whose model call this is; the orchestrator has no system message."""
    found = _ASKER.search(_text(request.json["messages"][0]))
    return found[1] if found else "orchestrator"


def spoken(request: Request) -> int:
    """How often the agent that asks has spoken."""
    return sum(message["role"] == "assistant" for message in request.json["messages"])


def answered(request: Request) -> Answer | None:
    """The script of the provider."""
    if not isinstance(request.json, dict) or "messages" not in request.json:
        return None
    name = asker(request)
    if name == "mind":
        said: Said = "the mind says"
    elif name == "selector":
        said = _selected(request)
    elif name == "orchestrator":
        said = _orchestrated(request)
    else:
        lines = SCRIPT[name]
        said = lines[min(spoken(request), len(lines) - 1)]
    if callable(said):
        said = said(request)
    return said if isinstance(said, Answer) else Answer(f"{said} ({request.number})")


def settled(request: Request) -> Answer | None:
    """The same, where equal requests get equal answers, and others do not: what is said again is the same exactly if
    all that was asked is."""
    return answered(replace(request, number=int.from_bytes(blake2b(request.body, digest_size=4).digest())))


def _calls(*calls: tuple[str, dict[str, Any]]) -> Callable[[Request], Answer]:
    """Tool calls, with ids of their own in each request, as a model gives them."""

    def say(request: Request) -> Answer:
        return Answer(
            calls=tuple(ToolCall(name, given, f"call_{request.number}_{n}") for n, (name, given) in enumerate(calls))
        )

    return say


def _verdict(request: Request) -> Answer:
    return Answer(json.dumps({"score": request.number, "because": f"it is ({request.number})"}))


_CODE = "```python\nprint(6 * 7)\n```"
_LOOK = _calls(("look_up", {"order": 7}))

SCRIPT: dict[str, list[Said]] = {
    "writer": [_LOOK, "the order is fine"],
    "critic": ["say more", "APPROVE"],
    "planner": ["first search", "DONE"],
    "searcher": [_LOOK],
    "analyst": ["it is 40.00"],
    "triage": [_calls(("transfer_to_refunds", {})), "DONE"],
    "refunds": [_LOOK, _calls(("issue_refund", {"order": 7, "cents": 4000}), ("transfer_to_triage", {}))],
    "clerk": ["one moment", _calls(("transfer_to_user", {}))],
    "drafter": ["a draft"],
    "critic_a": ["too long"],
    "critic_b": ["too short"],
    "joiner": ["all of it"],
    "author": ["a text", "a better text"],
    "reviewer": ["again", "APPROVE"],
    "publisher": ["printed"],
    "coder": [_CODE, f"once more {_CODE}", "DONE"],
    "runner": [_CODE, "it was 42"],
    "surfer": [_LOOK],
    "first": ["one", "three"],
    "second": ["two", _LOOK],
    "boss": ["not yet", "APPROVE"],
    "expert": [_LOOK, "the expert says 40.00"],
    "main": [_calls(("expert", {"task": "what does order 7 cost?"})), "DONE"],
    "chair": [_calls(("panel", {"task": "refund?"})), _calls(("panel", {"task": "really?"})), "DONE"],
    "helper": ["a long answer", "a short answer"],
    "loner": [_LOOK, _calls(("issue_refund", {"order": 7, "cents": 4000})), "refunded"],
    "scout": [
        _calls(*(("slowly", {"place": p, "ticks": t}) for p, t in (("Pune", 9), ("Rome", 5), ("Oslo", 1)))),
        "three places",
        "DONE",
    ],
    "judge": [_verdict],
}

_NEXT = ["planner", "searcher", "analyst", "planner"]


def _selected(request: Request) -> Answer:
    """The next of a fixed order, by how many have spoken."""
    history = _text(request.json["messages"][0]).partition("So far:")[2]
    return Answer(_NEXT[min(len(_PARTICIPANT.findall(history)) - 1, len(_NEXT) - 1)])


def _orchestrated(request: Request) -> Answer | str:
    """Facts, a plan, then a ledger for each round: first the coder, then the surfer, then it is done."""
    asked = _text(request.json["messages"][-1])
    if "pre-survey" in asked:
        return "the facts"
    if "is_request_satisfied" not in asked:
        return "the plan" if "assembled the following team" in asked else "the answer"
    round_ = spoken(request) - 1
    done = round_ >= 2
    ledger = {
        "is_request_satisfied": {"reason": "both were asked", "answer": done},
        "is_in_loop": {"reason": "no", "answer": False},
        "is_progress_being_made": {"reason": "yes", "answer": True},
        "next_speaker": {"reason": "in turn", "answer": ("coder", "surfer")[min(round_, 1)]},
        "instruction_or_question": {"reason": "needed", "answer": f"do part {round_} ({request.number})"},
    }
    return Answer(json.dumps(ledger))


def _text(message: dict[str, Any]) -> str:
    said = message.get("content") or ""
    if isinstance(said, list):
        return " ".join(part.get("text", "") for part in said)
    return str(said)
