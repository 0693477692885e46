"""AutoGen's ordinary agent as a subject of `lockstep.conformance`: in a team that gives it a turn for each prompt, and
by itself.

Teams always run on an event loop; a mode says whether their tools are coroutines. Needs autogen-ext[openai] beside
AutoGen.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import lockstep
from lockstep.conformance import outside, telling
from lockstep.conformance.scenario import Tool
from lockstep.conformance.subject import Done, Mode, Work

_TEAM, _STREAM, _ALONE = "team", "team streamed", "agent alone"
_ITERATIONS = 20  # of tools in one turn
_CHUNK = "ModelClientStreamingChunkEvent"


class AutoGen(telling.Made):
    """Runs teams as a program does that has attached them, and replays, forks and bisects their runs."""

    modes = (Mode(_TEAM, False), Mode(_STREAM, True), Mode(_ALONE, True))
    unsupported: Mapping[str, str] = {}
    hooks: tuple[str, ...] = (
        "lockstep.session.native.journal:Journal.emit",
        "lockstep_autogen.models:question",
        "lockstep_autogen.canonical:message",
        "lockstep_autogen.states:channels",
        "lockstep_autogen.layout:key_of",
    )
    core_hooks: tuple[str, ...] = telling.NATIVE_HOOKS

    def run(self, work: Work) -> Done:
        pieces: list[str] = []
        return asyncio.run(_talk(work, team(work, pieces), pieces))

    def record(self, work: Work) -> Done:
        from msgspec.structs import replace

        import lockstep_autogen

        pieces: list[str] = []
        attached = lockstep_autogen.attach(team(work, pieces), store=work.store)
        done = asyncio.run(_talk(work, attached, pieces))
        recording = attached._lockstep_root.seams.told
        journal = recording.journal()
        if journal is None:
            return replace(done, faults=recording.faults)
        journal.close()
        return replace(done, run=journal.run, faults=tuple(journal.faults))

    def make(self, work: Work, pieces: list[str]) -> Any:
        return team(work, pieces)

    def word(self, result: Any) -> str:
        return _word(result)

    def told(self, error: BaseException | None) -> str:
        return _told(error)


def team(work: Work, pieces: list[str]) -> Any:
    """The team of a scenario, or its agent alone. Texts that its model streams go to `pieces`."""
    from autogen_agentchat.agents import AssistantAgent
    from autogen_agentchat.base import Response
    from autogen_agentchat.messages import TextMessage
    from autogen_agentchat.teams import RoundRobinGroupChat
    from autogen_ext.models.openai import OpenAIChatCompletionClient

    scenario = work.scenario

    class Ends(AssistantAgent):  # type: ignore[misc] # AutoGen is not installed where types are checked
        """Adds something of its own to the model's last word."""

        async def on_messages_stream(self, messages: Any, cancellation_token: Any) -> Any:
            async for event in super().on_messages_stream(messages, cancellation_token):
                if type(event).__name__ == _CHUNK:
                    pieces.append(event.content)
                elif isinstance(event, Response) and isinstance(event.chat_message, TextMessage):
                    said = event.chat_message
                    event.chat_message = said.model_copy(update={"content": said.content + scenario.ending})
                yield event

    # No connection outlives its request: forks and probes run on event loops of their own.
    client = OpenAIChatCompletionClient(
        model="gpt-4o-2024-08-06", base_url=f"{work.url}/v1", api_key=scenario.key,
        default_headers={"Connection": "close"},
    )  # fmt: skip
    agent = Ends(
        "agent", client, tools=[_tool(work, tool) for tool in scenario.tools], system_message=scenario.system,
        model_client_stream=scenario.streams, max_tool_iterations=_ITERATIONS,
    )  # fmt: skip
    return agent if work.mode.name == _ALONE else RoundRobinGroupChat([agent], name="agents", max_turns=1)


def _tool(work: Work, tool: Tool) -> Any:
    from autogen_core.tools import FunctionTool

    def use(argument: str) -> Any:
        return outside.use(work.url, tool.name, argument)

    async def ause(argument: str) -> Any:
        return await outside.ause(work.url, tool.name, argument)

    use.__annotations__ = ause.__annotations__ = {"argument": str, "return": Any}
    made = FunctionTool(ause if work.mode.asynchronous else use, description="Looks it up.", name=tool.name)
    lockstep.mark(made, effect=tool.effect)
    return made


async def _talk(work: Work, asked: Any, pieces: list[str]) -> Done:
    """Gives the team the prompts, each as a run of it."""
    words: list[str] = []
    try:
        for prompt in work.scenario.prompts:
            if work.mode.name == _TEAM:
                result = await asked.run(task=prompt)
            else:
                result = [event async for event in asked.run_stream(task=prompt)][-1]
            words.append(_word(result))
    except Exception as error:
        return Done(error=_told(error), pieces=tuple(pieces))
    return Done(outputs=tuple(words), pieces=tuple(pieces))


def _word(result: Any) -> str:
    """The agent's last word: of a result, or of one that is read from the record."""
    messages = result["messages"] if isinstance(result, dict) else result.messages
    last = messages[-1] if messages else ""
    return str(last["content"] if isinstance(last, dict) else getattr(last, "content", last))


def _told(error: BaseException | None) -> str:
    """Of what a team raises the first line: it has a traceback in its text."""
    return "" if error is None else f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"


subject = AutoGen()
