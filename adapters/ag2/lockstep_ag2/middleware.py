"""The middleware: what an agent asks of the outside becomes effects, and its turns those of a run.

It stands outermost, so that a turn is all that happens between a question and its answer. What an agent asks is taken
where it leaves the program, behind all other middleware (`chains`): a call that is tried again is two effects, and
what the program's own middleware does is done in a replay too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ag2.middleware import BaseMiddleware

from lockstep.session import current as sessions
from lockstep_ag2 import attaching, chains, humans, models, strands, tools, turns


class LockstepMiddleware(BaseMiddleware):  # type: ignore[misc] # AG2 is not installed where types are checked
    """Records an agent, and serves it in replays and forks. `lockstep_ag2.attach(agent)` puts it where it belongs.

    By hand: `Agent(…, middleware=[Middleware(LockstepMiddleware, run="refund"), …])`, as the first.
    """

    def __init__(
        self, event: Any, context: Any, *, run: str | None = None, store: str | None = None, adopted: bool = False
    ) -> None:
        """`run`, `store`: as for `attach`. `adopted`: it only takes part in what others began."""
        super().__init__(event, context)
        self._agent = attaching.agent_of(context)
        self._owner = None if adopted else attaching.owner(self._agent, run, store)

    async def on_turn(self, call_next: Any, event: Any, context: Any) -> Any:
        return await turns.driven(self._owner, self._agent, call_next, event, context)

    async def on_llm_call(self, call_next: Any, events: Sequence[Any], context: Any) -> Any:
        if not _on():
            return await call_next(events, context)
        await turns.asking(events, context)
        call = models.ending(chains.inmost(call_next))
        return await chains.rebuilt(call_next, call)(events, context)

    async def on_tool_execution(self, call_next: Any, event: Any, context: Any) -> Any:
        if not _on():
            return await call_next(event, context)
        call = tools.ending(chains.inmost(call_next))
        strands.use(event)  # this task is its own, which AG2 makes for the call
        return await chains.rebuilt(call_next, call)(event, context)

    async def on_human_input(self, call_next: Any, event: Any, context: Any) -> Any:
        if not _on():
            return await call_next(event, context)
        call = humans.ending(chains.inmost(call_next))
        return await chains.rebuilt(call_next, call)(event, context)


def _on() -> bool:
    """Whether anybody answers calls here."""
    return strands.running() is not None or sessions.session is not None
