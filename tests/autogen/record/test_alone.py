"""`pip install pyautogen` brings no autogen_ext and no SDK: the adapter needs none."""

from __future__ import annotations

import subprocess
import sys

import looking

_PROGRAM = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("autogen_ext", "openai", "mcp", "tiktoken", "httpx", "httpx2"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())

import asyncio
from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_core import FunctionCall
from autogen_core.models import ChatCompletionClient, CreateResult, RequestUsage
import lockstep_autogen

class Scripted(ChatCompletionClient):
    def __init__(self):
        self.answers = ["hello", [FunctionCall(id="1", name="add", arguments='{"a": 1, "b": 2}')]]

    async def create(self, messages, **options):
        usage = RequestUsage(prompt_tokens=1, completion_tokens=1)
        return CreateResult(finish_reason="stop", content=self.answers.pop(0), usage=usage, cached=False)

    async def create_stream(self, messages, **options):
        yield await self.create(messages)

    async def close(self): ...
    def actual_usage(self): return RequestUsage(prompt_tokens=0, completion_tokens=0)
    total_usage = actual_usage
    def count_tokens(self, messages, **options): return 0
    def remaining_tokens(self, messages, **options): return 1000
    @property
    def capabilities(self): return self.model_info
    @property
    def model_info(self):
        return {"vision": False, "function_calling": True, "json_output": True, "family": "unknown",
                "structured_output": True}

def add(a: int, b: int) -> int:
    return a + b

client = Scripted()
agents = [AssistantAgent("one", client), AssistantAgent("two", client, tools=[add])]
team = lockstep_autogen.attach(RoundRobinGroupChat(agents, name="pair", max_turns=2))
print([message.source for message in asyncio.run(team.run(task="go")).messages])
print(lockstep_autogen.LockstepInterventionHandler, lockstep_autogen.record_tool)
"""


def test_with_pyautogen_alone_a_team_is_recorded() -> None:
    told = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True, check=False)
    assert told.stderr == ""
    assert told.stdout.splitlines()[0] == "['user', 'one', 'two', 'two', 'two']"
    assert looking.runs() == {"autogen/pair": "complete"}
    with looking.run("autogen/pair") as seen:
        assert seen.calls() == [
            ("pair/one", "model", "Scripted"), ("pair/two", "model", "Scripted"), ("pair/two", "tool", "add"),
        ]  # fmt: skip
