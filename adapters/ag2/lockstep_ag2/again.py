"""Asking a fresh agent again what was asked when it was recorded, turn by turn."""

from __future__ import annotations

import asyncio
from typing import Any

from ag2 import MemoryStream
from ag2.events import HumanMessage, ModelRequest

from lockstep.log.model import Value
from lockstep.session.tape import Tape
from lockstep_ag2 import events, layout, strands
from lockstep_ag2.noting import Noting

HUMAN = "human"


class Asking:
    """A conversation that is held again.

    agent  a fresh one
    """

    def __init__(self, agent: Any) -> None:
        self.agent = agent
        self.stream = MemoryStream()
        self._reply: Any = None

    async def continue_from(self, history: list[Value]) -> None:
        """The next turn finds this history, on a stream of its own: what a turn that was stopped has left running still
        has the other one."""
        self.stream, self._reply = MemoryStream(), None
        await self.stream.history.replace([events.load(one) for one in history])

    async def ask(self, turn: Noting, entry: str, request: Any, *, human: bool) -> Any:
        """Drives a turn as it was begun: gives the reply. `request`: as it is stored, secrets revealed. `human`:
        whether somebody was asked in it, outside of a tool."""
        event = events.load(request["event"])
        options: dict[str, Any] = {"variables": layout.storable(request.get("variables"))}
        if "prompt" in request:
            options["prompt"] = request["prompt"]
        if human and not self.agent.has_hitl_hook:
            options["hitl_hook"] = _nobody
        token = strands.prepared.set(turn)
        try:
            if not isinstance(event, ModelRequest):
                self.stream = MemoryStream()
                turn.resumes = history = [events.load(one) for one in request["history"]]
                self._reply = await self.agent.resume(*history, event, stream=self.stream, **options)
            elif entry == layout.REPLY and self._reply is not None:
                self._reply = await self._reply.ask(*event.parts, **options)
            else:
                self._reply = await self.agent.ask(*event.parts, stream=self.stream, **options)
            return self._reply
        except asyncio.CancelledError:
            if (stopped := turn.stopped()) is not None:
                raise stopped from None
            raise
        finally:
            strands.prepared.reset(token)


def humans(tape: Tape) -> bool:
    """Whether a human was asked, and not by a tool."""
    return any(effect.begin.what == HUMAN for lane in tape.lanes.values() for effect in lane.effects)


async def _nobody(request):  # type: ignore[no-untyped-def]
    """In the place of the hook that was given with a question: what it said is recorded, so it is never asked."""
    return HumanMessage("")
