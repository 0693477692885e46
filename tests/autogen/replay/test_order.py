"""Those who speak at once are heard in the recorded order, whoever is quicker now."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import runs
import scripted_agents
import teams
from autogen_agentchat.agents import BaseChatAgent
from autogen_agentchat.base import Response
from autogen_agentchat.messages import TextMessage
from autogen_agentchat.teams import DiGraphBuilder, GraphFlow

import lockstep
import lockstep_autogen
from lockstep.testing import Answer, Provider, Request, ToolCall
from lockstep_autogen import speaking

_RECORDINGS = 4
_TICKS = (0, 0, 1, 5, 20, 60)  # turns of the loop that an agent takes before it speaks


class Musing(BaseChatAgent):
    """Asks nobody, and takes its time."""

    def __init__(self, name: str, ticks: Callable[[], int]) -> None:
        super().__init__(name, "muses")
        self._ticks = ticks

    @property
    def produced_message_types(self) -> Sequence[type[TextMessage]]:
        return (TextMessage,)

    async def on_messages(self, messages: Any, cancellation_token: Any) -> Response:
        for _ in range(self._ticks()):
            await asyncio.sleep(0)
        return Response(chat_message=TextMessage(content=f"{self.name} muses", source=self.name))

    async def on_reset(self, cancellation_token: Any) -> None: ...


def said(request: Request) -> Answer | None:
    """The agents with odd numbers look something up first."""
    if not isinstance(request.json, dict) or "messages" not in request.json:
        return None
    name = scripted_agents.asker(request)
    if name in ("asker_1", "asker_3") and scripted_agents.spoken(request) == 0:
        return Answer(calls=(ToolCall("look_up", {"order": 7}, f"call_{request.number}"),))
    return Answer(f"{name} ({request.number})")


def crowd(ticks: Callable[[], int]) -> teams.Team:
    """One, then six at once of whom three ask nobody and one has a tool, then one that has heard all of them."""
    first, last = teams.agent("first"), teams.agent("last")
    many: list[Any] = [Musing(f"musing_{number}", ticks) for number in range(3)]
    for number in range(3):
        tools = [teams.look_up] if number % 2 else None
        many.append(teams.agent(f"asker_{number}", tools=tools, reflect_on_tool_use=bool(tools)))
    built = DiGraphBuilder()
    for node in (first, *many, last):
        built.add_node(node)
    for one in many:
        built.add_edge(first, one).add_edge(one, last)
    return GraphFlow(built.get_participants(), built.build(), name="crowd")


def record(seed: int) -> list[tuple[str, Any]]:
    """Recordings of it, in which each agent takes another time."""
    drawn = random.Random(seed)
    found = []
    for _ in range(_RECORDINGS):
        team = crowd(lambda: drawn.choice(_TICKS))
        result = teams.run(lockstep_autogen.attach(team), "go")
        found.append((f"autogen/crowd{f'-{len(found) + 1}' if found else ''}", result))
    return found


def test_each_recording_is_replayed_in_the_order_that_it_had(
    provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider.script = said
    recorded = record(7)
    assert len({teams.speakers(result) for _, result in recorded}) > 1
    runs.silence(provider, monkeypatch)
    drawn = random.Random(8)
    for run, result in recorded:
        runs.is_again(lockstep.replay(run, lambda: crowd(lambda: drawn.choice(_TICKS))), result)


def test_without_that_order_it_would_be_another_one(provider: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
    provider.script = said
    recorded = record(7)
    runs.silence(provider, monkeypatch)

    async def at_once(order: speaking.Order, name: str) -> None: ...

    monkeypatch.setattr(speaking.Order, "turn", at_once)
    drawn = random.Random(8)
    verdicts = [lockstep.replay(run, lambda: crowd(lambda: drawn.choice(_TICKS))) for run, _ in recorded]
    assert not all(verdict.identical for verdict in verdicts)
    assert any("another order" in (verdict.divergence or "") for verdict in verdicts)
