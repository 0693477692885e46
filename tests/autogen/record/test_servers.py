"""Servers of tools: what they have, what that may do, and what it answers is all theirs to say."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import looking
import pytest
import teams
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_ext.tools.mcp import McpWorkbench, StdioServerParams

import lockstep_autogen
from lockstep.testing import Provider

_MODEL = "gpt-4o-2024-08-06"


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_server_of_tools_is_asked_what_it_has_and_may_do(provider: Provider, tmp_path: Path) -> None:
    script = Path(__file__).with_name("mcp_server.py")
    server = StdioServerParams(command=sys.executable, args=[str(script), str(tmp_path / "started")])

    async def run() -> Any:
        async with McpWorkbench(server) as bench:
            writer = teams.agent("writer", workbench=bench)
            team = lockstep_autogen.attach(RoundRobinGroupChat([writer], name="desk", max_turns=1))
            result = await team.run(task="refund order 7")
            assert isinstance(writer._workbench[0], McpWorkbench)
            return result

    result = asyncio.run(run())
    assert result.messages[-1].content == "order 7: 40.00"
    assert (tmp_path / "started").read_text() == "started\n"
    with looking.run("autogen/desk") as seen:
        calls = [(effect.name, seen.timeline.effect_class(effect)) for effect in seen.effects()]
        assert calls == [
            ("McpWorkbench.list_tools", "read"), (_MODEL, "inference"), ("McpWorkbench.list_tools", "read"),
            ("look_up", "read"),
        ]  # fmt: skip
        listed: Any = seen.timeline.outcome(seen.effects()[0])
        assert [tool["name"] for tool in listed] == ["look_up", "issue_refund"]
