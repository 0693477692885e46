"""MCP servers: what tools they have and what these answer is theirs to say, once."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from asked import Tape
from crew_events import Heard
from crewai import Agent, Task
from crewai.mcp import MCPServerStdio
from crewai.mcp.tool_resolver import MCPToolResolver

from lockstep.testing import Answer, Provider, ToolCall


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_server_is_asked_once_what_it_has_and_what_that_answers(
    provider: Provider, tape: Tape, heard: Heard, tmp_path: Path
) -> None:
    script, started = Path(__file__).with_name("crew_mcp_server.py"), tmp_path / "started"
    server = MCPServerStdio(command=sys.executable, args=[str(script), str(started)])

    def run() -> Any:
        helper = Agent(role="helper", goal="help", backstory="You work.", llm="openai/gpt-4o", mcps=[server])
        tools = helper.get_mcp_tools(helper.mcps)
        return helper.execute_task(Task(description="look", expected_output="a text", agent=helper), tools=tools)

    def said(request: Any) -> Answer:
        offered = [each["function"] for each in request.json.get("tools", ())]
        wanted = next(each["name"] for each in offered if each["description"].startswith("Looks"))
        asked = any(message["role"] == "tool" for message in request.json["messages"])
        return Answer("done") if asked else Answer(calls=(ToolCall(wanted, {"order": 7}),))

    provider.script = said
    assert tape.record(run) == "done"
    events, starts = heard.taken(), started.read_text()
    assert starts == "started\n" * 2  # to list the tools, and to run one
    assert [kind for _, kind, _ in tape.calls()] == ["tool", "model", "tool", "model"]
    assert tape.calls()[0][2].endswith(".list_tools") and tape.calls()[2][2].endswith("_look_up")
    assert [tape.effect_class(number) for number in range(4)] == ["read", "inference", "read", "inference"]
    assert [(each["name"], each["annotations"]["readOnlyHint"]) for each in tape.outcome(0)] == [
        ("look_up", True), ("issue_refund", None),
    ]  # fmt: skip
    assert "order 7: 40.00" in str(tape.outcome(2))
    provider.stop()
    assert tape.replay(run) == "done"
    assert started.read_text() == starts
    assert heard.taken() == events


def test_a_server_behind_an_address_is_asked_once_what_it_has(tape: Tape, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    async def discover(self: Any, url: str) -> Any:
        asked.append(url)
        schema = {"type": "object", "properties": {"order": {"type": "integer"}}, "required": ["order"]}
        made = self._json_schema_to_pydantic("look_up", schema)
        return {"look_up": {"description": "Looks up.", "args_schema": made}, "ping": {"description": "Pings."}}

    monkeypatch.setattr(MCPToolResolver, "_discover_mcp_tools", discover)

    def run() -> Any:
        helper = Agent(role="helper", goal="help", backstory="You work.", llm="openai/gpt-4o")
        tools = MCPToolResolver(helper, helper._logger).resolve(["https://orders.invalid/mcp"])
        return [(tool.name, tool.description, tool.args_schema.model_json_schema()) for tool in tools]

    first = tape.record(run)
    assert [name for name, *_ in first] == ["orders_invalid_mcp_look_up", "orders_invalid_mcp_ping"]
    assert tape.replay(run) == first
    assert asked == ["https://orders.invalid/mcp"]
