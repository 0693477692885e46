"""What the model of the support desk says, over OpenAI's responses API."""

from __future__ import annotations

import json
from typing import Any

from lockstep.testing import Answer, Request, ToolCall


def answer(request: Request) -> Answer:
    """What the model says: look up and hand over, pay, tell."""
    items: list[dict[str, Any]] = [each for each in request.json["input"] if isinstance(each, dict)]
    told = [each["output"] for each in items if each.get("type") == "function_call_output"]
    order = next(_loads(each) for each in told) if told else None
    tools = {tool["name"] for tool in request.json.get("tools", [])}
    if order is None:
        number = int(items[0]["content"].split()[-1])
        return Answer(calls=(ToolCall("get_order", {"order": number}), ToolCall("get_policy", {"topic": "refunds"})))
    if "issue_refund" not in tools:
        return Answer(calls=(ToolCall("transfer_to_payer", {}),))
    paid = next((each for each in map(_loads, told) if isinstance(each, dict) and "cents" in each), None)
    if paid is None:
        return Answer(calls=(ToolCall("issue_refund", {"order": order["order"], "cents": order["total"]}),))
    return Answer(f"Refunded {paid['cents']}.")


def _loads(text: str) -> Any:
    try:
        return json.loads(text.replace("'", '"'))
    except ValueError:
        return text
