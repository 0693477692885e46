"""What the model of the demonstration answers: the decisions are scripted, the opinions are drawn.

python -m lockstep.testing.provider --script scripted_model.py:answer
"""

import json
import random

from lockstep.testing import Answer, Request, ToolCall


def answer(request: Request) -> Answer:
    messages = request.json["messages"]
    role = messages[0]["content"]
    draw = random.Random(request.number)
    pace = {"delay": draw.uniform(0.02, 0.08)}
    if role.startswith("You sort"):
        return Answer("refund", **pace)
    if role.startswith("You estimate"):
        return Answer(f"risk {draw.uniform(0, 0.3):.2f}", **pace)
    if role.startswith("You describe"):
        return Answer(draw.choice(["calm", "annoyed", "close to tears"]) + f" ({request.number})", **pace)
    if role.startswith("You check"):
        return Answer(draw.choice(["within the rules", "inside the 30 days", "nothing against it"]), **pace)
    if request.json.get("stream"):
        amount = f"{_told(messages, 'total') / 100:.2f}"
        return Answer(f"Refunded {amount} to the card ending 1881 (note {request.number}).", gap=0.005, **pace)
    return Answer(calls=_decision(messages), **pace) if _decision(messages) else Answer("All done.", **pace)


def _decision(messages: list[dict]) -> tuple[ToolCall, ...]:
    """The tools to use next, by what was used so far."""
    ticket = json.loads(messages[1]["content"])
    used = {call["function"]["name"] for message in messages for call in message.get("tool_calls", ())}
    order, customer = ticket["order"], ticket["customer"]
    if "get_order" not in used:
        return (
            ToolCall("get_order", {"order": order}),
            ToolCall("get_customer", {"email": customer}),
            ToolCall("get_policy", {"topic": "refunds"}),
        )
    if "issue_refund" not in used:
        return (ToolCall("issue_refund", {"order": order, "cents": _told(messages, "total")}),)
    if "send_mail" not in used:
        text = f"Your refund of {_told(messages, 'total') / 100:.2f} is on its way."
        return (ToolCall("send_mail", {"to": customer, "text": text}),)
    return ()


def _told(messages: list[dict], field: str) -> int:
    """What a tool has said of it."""
    for message in messages:
        if message["role"] == "tool":
            result = json.loads(message["content"])
            if isinstance(result, dict) and field in result:
                return result[field]
    return 0
