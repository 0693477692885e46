"""The guide for Temporal: its files, code and commands run as printed, on a real server and a model on loopback."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from live_server import Server
from tests import guides

from lockstep.testing import Answer, Provider, Request, ToolCall


def answer(request: Request) -> Answer:
    """Looks the order up, and tells what it cost."""
    items: list[dict[str, Any]] = request.json["input"]
    told = [each["output"] for each in items if each.get("type") == "function_call_output"]
    return Answer(f"It is {told[-1]}.") if told else Answer(calls=(ToolCall("get_order", {"order": 452}),))


@pytest.mark.timeout(300)
def test_the_guide_runs_as_printed(tmp_path: Path, temporal_server: Server) -> None:
    with Provider(answer) as provider:
        surroundings = {"TEMPORAL_ADDRESS": temporal_server.address, "OPENAI_AGENTS_DISABLE_TRACING": "1"}
        assert guides.run("temporal.md", tmp_path, **surroundings, **provider.environ) >= 16
