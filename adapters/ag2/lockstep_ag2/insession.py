"""Agents while a session is on (`lockstep record`, `with lockstep.record`).

What they ask is an effect of the session's run, as everywhere. A conversation is a lane of it, whose steps are steps of
the run and, counted by themselves, of the lane: `refund/support:3`.
"""

from __future__ import annotations

import re
from typing import Any

from lockstep.log.address import quote
from lockstep.log.model import Status, Value
from lockstep.session import current as sessions
from lockstep.session import lanes
from lockstep_ag2.adapter import adapter
from lockstep_ag2.events import Names
from lockstep_ag2.noting import Noting
from lockstep_ag2.states import History, Seen

_DRIVES = re.compile(r"drive\.\d+")
_MOST = 256  # conversations that a session remembers


class InSession(Noting):
    """A turn of a session's run."""

    def __init__(self, session: Any, native: str, speaker: str, history: History, names: Names) -> None:
        super().__init__(speaker, history, names)
        self.native = native
        self._session = session

    def step(self, source: str, name: str, state: Seen) -> None:
        record, above = self._history.record(state)
        body: Value = {**record, "source": source or "loop"}
        pos = self._session.checkpoint(self.native, name or self.speaker, body, above, wait=False)
        self._history.stored(state, pos)

    def fault(self, where: str, error: BaseException) -> None:
        self._session.fault(where, error)

    def end(self, status: Status, value: Any) -> None:
        """The session has an end of its own."""


def begun(agent: Any, name: str, event: Any, context: Any) -> InSession | None:
    """A turn of an agent begins; None where it is none of the program's own."""
    session = sessions.session
    if session is None or lanes.current() is None:
        return None
    try:
        _threads(session)
        known = session.adapters.setdefault(adapter.name, {})
        found = known.get(context.stream.id)
        if found is None:
            names = Names()
            found = known[context.stream.id] = (_native(session, name), names, History(_as_it_is, names))
            while len(known) > _MOST:
                known.pop(next(iter(known)))
        native, names, history = found
        turn = InSession(session, native, name, history, names)
    except Exception as error:
        session.fault("a turn of an agent", error)
        return None
    return turn


def _threads(session: Any) -> None:
    try:
        from lockstep_ag2 import threads

        threads.install()
    except Exception as error:  # of a version of anyio that has its workers elsewhere
        session.fault("threads of tools", error)


def _as_it_is(value: Value) -> Value:
    """The session hides what is secret when it stores it."""
    return value


def _native(session: Any, name: str) -> str:
    """The lane of a conversation: the n-th of its agent in the strand that begins it."""
    lane = lanes.lane()
    if lane.parent is not None and _DRIVES.fullmatch(lane.name.rpartition("/")[2]):
        lane = lane.parent  # AG2 drives a turn in a task of its own
    number = lane.ordinal(f"ag2 {name}")
    above = lane.name.removeprefix(session.process).strip("/").replace("/", "-")
    called = f"{above}-{name}" if above else name
    return f"{adapter.name}/{quote(called)}" + (f"-{number}" if number > 1 else "")
