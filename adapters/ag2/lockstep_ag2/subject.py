"""AG2's ordinary agent as a subject of `lockstep.conformance`: asked and replied to, with its model streamed where a
scenario says so.

Agents always run on an event loop; a mode says whether their tools are coroutines.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import lockstep
from lockstep.conformance import outside, telling
from lockstep.conformance.scenario import Tool
from lockstep.conformance.subject import Done, Mode, Work


class Ag2(telling.Made):
    """Runs agents as a program does that has attached them, and replays, forks and bisects their conversations."""

    modes = (Mode("sync tools", False), Mode("async tools", True))
    unsupported: Mapping[str, str] = {}
    hooks: tuple[str, ...] = (
        "lockstep.session.native.journal:Journal.emit",
        "lockstep_ag2.events:messages",
        "lockstep_ag2.responses:told",
        "lockstep_ag2.states:History.seen",
    )
    core_hooks: tuple[str, ...] = telling.NATIVE_HOOKS

    def run(self, work: Work) -> Done:
        return asyncio.run(_talk(work, None))

    def record(self, work: Work) -> Done:
        return asyncio.run(_talk(work, work.store))

    def make(self, work: Work, pieces: list[str]) -> Any:
        return agent(work, pieces)

    def word(self, result: Any) -> str:
        return _word(result)


def agent(work: Work, pieces: list[str]) -> Any:
    """The agent of a scenario. Texts that its model streams go to `pieces`."""
    import httpx2
    from ag2 import Agent
    from ag2.config import OpenAIConfig
    from ag2.events import ModelMessage, ModelMessageChunk, ModelResponse
    from ag2.middleware import BaseMiddleware, Middleware
    from ag2.observers import observer

    scenario = work.scenario

    class Ends(BaseMiddleware):  # type: ignore[misc] # AG2 is not installed where types are checked
        """What the agent's own code adds to the model's last word."""

        async def on_turn(self, call_next: Any, event: Any, context: Any) -> Any:
            said = await call_next(event, context)
            return ModelResponse(ModelMessage((said.content or "") + scenario.ending))

    async def hear(event):  # type: ignore[no-untyped-def]
        pieces.append(event.content)

    # A client of its own, which keeps no connection: forks and probes run on event loops of their own.
    limits = httpx2.Limits(max_keepalive_connections=0)
    config = OpenAIConfig(
        model="gpt-4o", base_url=f"{work.url}/v1", api_key=scenario.key, streaming=scenario.streams,
        http_client=httpx2.AsyncClient(limits=limits),
    )  # fmt: skip
    return Agent(
        scenario.name, scenario.system, config=config, tools=[_tool(work, tool) for tool in scenario.tools],
        middleware=[Middleware(Ends)], observers=[observer(ModelMessageChunk, hear)],
    )  # fmt: skip


def _tool(work: Work, tool: Tool) -> Any:
    from ag2.tools import tool as made

    def use(argument: str) -> Any:
        """Looks it up."""
        return outside.use(work.url, tool.name, argument)

    async def ause(argument: str) -> Any:
        """Looks it up."""
        return await outside.ause(work.url, tool.name, argument)

    use.__annotations__ = ause.__annotations__ = {"argument": str, "return": Any}
    function = ause if work.mode.asynchronous else use
    lockstep.mark(function, effect=tool.effect)
    return made(function, name=tool.name)


async def _talk(work: Work, store: str | None) -> Done:
    """Gives the agent the prompts, each as a turn of one conversation."""
    from lockstep_ag2 import attaching

    pieces: list[str] = []
    words: list[str] = []
    asked = agent(work, pieces)
    if store is not None:
        attaching.attach(asked, store=store)
    error: Exception | None = None
    reply: Any = None
    try:
        for prompt in work.scenario.prompts:
            reply = await (asked if reply is None else reply).ask(prompt)
            words.append(_word(reply))
    except Exception as raised:
        error, words = raised, []
    done = Done(outputs=tuple(words), error=telling.raised(error), pieces=tuple(pieces))
    if store is None:
        return done
    owner = attaching.owner(asked)
    owner.close()
    runs = owner.runs()
    return Done(
        outputs=done.outputs, error=done.error, pieces=done.pieces, run=runs[0] if runs else "",
        faults=tuple(owner.faults),
    )  # fmt: skip


def _word(result: Any) -> str:
    """The agent's last word: of a reply, or as it is read from the record."""
    return str(getattr(result, "body", result) or "")


subject = Ag2()
