"""The guide for AutoGen: its files, code and commands run as printed, against a model on loopback."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests import guides

from lockstep.testing import Answer, Provider, Request, ToolCall


def answer(request: Request) -> Answer:
    """The clerk looks the order up, then refunds what it cost; the checker waits for that."""
    messages: list[dict[str, Any]] = request.json["messages"]
    if "You are a checker" in messages[0]["content"]:
        return Answer("DONE" if "refunded" in str(messages) or "Thank you" in str(messages) else "go on")
    told = [str(each["content"]).split() for each in messages if each["role"] == "tool"]
    if not told:
        return Answer(calls=(ToolCall("get_order", {"order": 452}),))
    if told[-1][0] == "total":
        return Answer(calls=(ToolCall("issue_refund", {"order": 452, "cents": int(told[-1][1])}),))
    return Answer("It is paid.")


@pytest.mark.timeout(400)
def test_the_guide_runs_as_printed(tmp_path: Path) -> None:
    with Provider(answer) as provider:
        surroundings = {"OPENAI_API_KEY": "sk-test", "OPENAI_BASE_URL": f"{provider.url}/v1"}
        assert guides.run("autogen.md", tmp_path, **surroundings) >= 9
