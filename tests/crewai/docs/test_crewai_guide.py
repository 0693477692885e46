"""The guide for CrewAI: its files, code and commands run as printed, against a model on loopback."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests import guides

from lockstep.testing import Answer, Provider, Request, ToolCall


def answer(request: Request) -> Answer:
    """The searcher looks the order up, the clerk refunds what it cost."""
    messages: list[dict[str, Any]] = request.json["messages"]
    told = [str(each["content"]) for each in messages if each["role"] == "tool"]
    if told:
        return Answer(told[-1])
    if "You are searcher" in str(messages[0]["content"]):
        return Answer(calls=(ToolCall("get_order", {"order": 452}),))
    total = str(messages[-1]["content"]).partition("total ")[2].split()
    if not total:
        return Answer("It is a big one.")
    return Answer(calls=(ToolCall("issue_refund", {"order": 452, "cents": int(total[0])}),))


@pytest.mark.timeout(400)
def test_the_guide_runs_as_printed(tmp_path: Path) -> None:
    # CrewAI's switches are set for all of these tests; what happens without them is another test's.
    with Provider(answer) as provider:
        surroundings = {"OPENAI_API_KEY": "sk-test", "OPENAI_BASE_URL": f"{provider.url}/v1"}
        assert guides.run("crewai.md", tmp_path, **surroundings) >= 8
