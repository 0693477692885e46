"""The guide for AG2: its files, code and commands run as printed, against a model on loopback."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests import guides

from lockstep.testing import Answer, Provider, Request, ToolCall


def answer(request: Request) -> Answer:
    """Looks the order up, refunds what it cost, and says so, again and again."""
    messages: list[dict[str, Any]] = request.json["messages"]
    last = max(n for n, each in enumerate(messages) if each["role"] == "user")
    told = [json.loads(_text(each["content"])) for each in messages[last:] if each["role"] == "tool"]
    if "Refund" not in _text(messages[last]["content"]):
        said = [_text(each["content"]) for each in messages if each["role"] == "assistant" and each.get("content")]
        return Answer(f"As I said: {said[-1]}")
    if not told:
        return Answer(calls=(ToolCall("get_order", {"order": 452}),))
    if "cents" not in told[-1]:
        return Answer(calls=(ToolCall("issue_refund", {"order": 452, "cents": told[-1]["total"]}),))
    return Answer(f"Refunded {told[-1]['cents']}.")


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "".join(block.get("text", "") for block in content)


@pytest.mark.timeout(400)
def test_the_guide_runs_as_printed(tmp_path: Path) -> None:
    with Provider(answer) as provider:
        surroundings = {"OPENAI_API_KEY": "sk-test", "OPENAI_BASE_URL": f"{provider.url}/v1"}
        assert guides.run("ag2.md", tmp_path, **surroundings) >= 10
