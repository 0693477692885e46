"""The subject of plain Python: a tool-calling agent by hand, once sync with threads, once on an event loop.

The sync one asks its model by HTTP, which the core's taps record; the async one by a function that is declared a tool.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Coroutine, Mapping
from typing import Any

import lockstep
from lockstep.conformance import plain_agent, plain_async, telling
from lockstep.conformance.subject import Done, Found, Mode, Work
from lockstep.log.model import Value
from lockstep.session import current

SYNC = Mode("sync", False)
ASYNC = Mode("async", True)


class Plain:
    """Runs the agents in process, as a user does by `lockstep.record` and `lockstep.replay`."""

    modes = (SYNC, ASYNC)
    unsupported: Mapping[str, str] = {}
    hooks: tuple[str, ...] = ()

    def run(self, work: Work) -> Done:
        pieces: list[str] = []
        return done(lambda: self.call(self.target(work, pieces)), pieces)

    def record(self, work: Work) -> Done:
        pieces: list[str] = []
        target = self.target(work, pieces)
        sessions: list[Any] = []
        recording = lockstep.record(work.scenario.name, store=work.store)

        @recording
        def recorded() -> Any:
            sessions.append(current.session)
            return self.call(target)

        found = done(recorded, pieces)
        session = sessions[0]
        return _with(found, run=session.run, faults=tuple(session.faults))

    def replay(self, work: Work, run: str) -> Done:
        pieces: list[str] = []
        replay = lockstep.replay(run, self.target(work, pieces), store=work.store)
        return telling.replayed(replay, run, tuple(replay.result) if replay.result is not None else (), pieces)

    def fork(self, work: Work, address: str, edits: Mapping[str, Value], live: Collection[str]) -> Done:
        pieces: list[str] = []
        run = telling.fork(address, self.target(work, pieces), edits=edits, live=[*live], store=work.store)
        return telling.forked(run, tuple(run.result) if run.result is not None else (), pieces)

    def bisect(self, work: Work, run: str, bad: Callable[[str], bool]) -> Found:
        verdict = lockstep.bisect(run, self.target(work, []), bad=lambda view: bad(view.result[-1]), store=work.store)
        return telling.found(verdict)

    def target(self, work: Work, pieces: list[str]) -> Callable[[], Any]:
        """The agent, to be called without arguments; what is streamed goes to `pieces` too."""
        return plain_async.agent(work, pieces) if work.mode.asynchronous else plain_agent.agent(work, pieces)

    def call(self, target: Callable[[], Any]) -> Any:
        found = target()
        return asyncio.run(found) if isinstance(found, Coroutine) else found


def done(function: Callable[[], Any], pieces: list[str]) -> Done:
    """What a call of an agent came to."""
    try:
        outputs = function()
    except Exception as error:
        return Done(error=telling.raised(error), pieces=tuple(pieces))
    return Done(outputs=tuple(outputs), pieces=tuple(pieces))


def _with(done: Done, **fields: Any) -> Done:
    import msgspec

    return msgspec.structs.replace(done, **fields)


subject = Plain()
