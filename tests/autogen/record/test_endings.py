"""How a run ends that does not end well."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import time
from pathlib import Path

import looking
import pytest
import teams
from autogen_agentchat.messages import TextMessage

import lockstep_autogen
from lockstep.testing import Provider

_PROGRAM = """
import asyncio, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores Ctrl-C
sys.path.insert(0, {tests!r})
import teams
from autogen_agentchat.agents import UserProxyAgent
from autogen_agentchat.teams import RoundRobinGroupChat
import lockstep_autogen

async def think(prompt, token=None):
    print("thinking", flush=True)
    await asyncio.sleep(600)

team = RoundRobinGroupChat(
    [teams.agent("helper"), UserProxyAgent("slow", input_func=think)], name="waiting", max_turns=4
)
asyncio.run(lockstep_autogen.attach(team).run(task="go"))
"""


def _asked() -> bool:
    with looking.run("autogen/waiting") as seen:
        return any(kind == "human" for _, kind, _ in seen.calls())


@pytest.mark.parametrize("stopped_by", [signal.SIGINT, signal.SIGKILL])
def test_a_run_that_is_stopped_is_interrupted_and_can_be_read(stopped_by: int, provider: Provider) -> None:
    program = _PROGRAM.format(tests=str(Path(teams.__file__).parent))
    running = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )  # fmt: skip
    assert running.stdout is not None
    assert running.stdout.readline() == "thinking\n"
    while not _asked():
        time.sleep(0.01)
    running.send_signal(stopped_by)
    if stopped_by == signal.SIGINT:
        # AutoGen waits for its agents; a second time it does not.
        try:
            running.wait(2)
        except subprocess.TimeoutExpired:
            running.send_signal(stopped_by)
    running.communicate()
    assert looking.runs() == {"autogen/waiting": "interrupted"}
    with looking.run("autogen/waiting") as seen:
        assert seen.names == ["user", "helper"]
        assert seen.turns() == [("run", "")]
        assert seen.calls() == [("waiting/helper", "model", "gpt-4o-2024-08-06"), ("waiting/slow", "human", "input")]


def test_a_model_that_fails_interrupts_the_run_and_its_error_is_on_the_log(provider: Provider) -> None:
    team = lockstep_autogen.attach(teams.capped())

    async def run() -> None:
        await team.run(task="refund order 7")
        provider.stop()
        with pytest.raises(RuntimeError, match=r"APIConnectionError: Connection error\."):
            await team.run(task="once more")

    asyncio.run(run())
    assert looking.runs() == {"autogen/capped": "interrupted"}
    with looking.run("autogen/capped") as seen:
        assert seen.turns() == [("run", "ok"), ("run", "")]
        assert seen.names == ["user", "writer", "critic", "writer", "user"]
        failed = seen.effects()[-1]
        assert (failed.lane, failed.status) == ("capped/critic", "error")
        error = seen.timeline.outcome(failed)
        assert isinstance(error, dict)
        assert (error["module"], error["name"]) == ("openai", "APIConnectionError")


def test_an_error_of_the_teams_own_is_what_its_turn_ended_with(provider: Provider) -> None:
    def never(*_: object) -> str:
        raise LookupError("nobody is next")

    team = teams.SelectorGroupChat(
        [teams.agent("planner"), teams.agent("analyst")],
        teams.client(),
        name="office",
        max_turns=3,
        selector_func=never,
    )
    with pytest.raises(LookupError, match="nobody is next"):
        teams.run(lockstep_autogen.attach(team), "plan")
    assert looking.runs() == {"autogen/office": "failed"}
    with looking.run("autogen/office") as seen:
        assert seen.turns() == [("run_stream", "error")]


def test_a_tool_that_raises_answers_with_its_error(provider: Provider) -> None:
    async def look_up(order: int) -> str:
        raise LookupError("no such order")

    writer = teams.agent("writer", tools=[look_up])
    teams.run(lockstep_autogen.attach(teams.RoundRobinGroupChat([writer], name="desk", max_turns=1)), "refund order 7")
    with looking.run("autogen/desk") as seen:
        tool = seen.effects(1)[1]
        assert (tool.kind, tool.status) == ("tool", "ok")
        assert seen.timeline.outcome(tool) == {
            "type": "ToolResult", "name": "look_up", "is_error": True,
            "result": [{"type": "TextResultContent", "content": "no such order"}],
        }  # fmt: skip


def test_a_stream_that_is_read_no_further_is_closed(provider: Provider) -> None:
    async def run() -> None:
        agent = lockstep_autogen.attach(teams.single())
        stream = agent.run_stream(task="refund order 7")
        async for message in stream:
            if not isinstance(message, TextMessage):
                break
        await stream.aclose()  # type: ignore[attr-defined]

    asyncio.run(run())
    with looking.run("autogen/loner") as seen:
        assert seen.turns() == [("run_stream", "closed")]
        assert seen.calls() == [("loner", "model", "gpt-4o-2024-08-06")]
