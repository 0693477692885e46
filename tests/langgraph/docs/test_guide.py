"""The guide for LangGraph: its files, code and commands run as printed, against a model on loopback."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests import guides

from lockstep.testing import Answer, Provider, Request, ToolCall


def answer(request: Request) -> Answer:
    """Looks the order up, refunds what it cost, and says so."""
    messages: list[dict[str, Any]] = request.json["messages"]
    last = max(n for n, each in enumerate(messages) if each["role"] == "user")
    told = [json.loads(each["content"]) for each in messages[last:] if each["role"] == "tool"]
    if "Refund" not in messages[last]["content"]:
        return Answer("You are welcome.")
    if not told:
        return Answer(calls=(ToolCall("get_order", {"order": 452}),))
    if "cents" not in told[-1]:
        return Answer(calls=(ToolCall("issue_refund", {"order": 452, "cents": told[-1]["total"]}),))
    return Answer(f"Refunded {told[-1]['cents']}.")


@pytest.mark.timeout(400)
def test_the_guide_runs_as_printed(tmp_path: Path) -> None:
    with Provider(answer) as provider:
        surroundings = {"OPENAI_API_KEY": "sk-test", "OPENAI_BASE_URL": f"{provider.url}/v1"}
        assert guides.run("langgraph.md", tmp_path, **surroundings) >= 12
