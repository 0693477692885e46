"""A crew, agent or flow while a core session is on (`lockstep record`, `with lockstep.record`).

Its calls are effects of the session, as everywhere. It is a lane of the session's run: its steps are steps of the run
and, counted by themselves, of it (`research:7`).
"""

from __future__ import annotations

from typing import Any

from lockstep.session import current as sessions
from lockstep_crewai.adapter import adapter
from lockstep_crewai.layout import Moment
from lockstep_crewai.wrapping import Root


class Steps:
    """The steps in one session."""

    def __init__(self, session: Any) -> None:
        from lockstep_crewai.steps import Steps as Made

        self.session = session
        self.steps = Made()

    def step(self, moment: Moment) -> None:
        """Notes a step of the session's run. A replay compares it: raises Divergence."""
        body, next = self.steps.next(moment)
        of = next.pos
        self.steps.made(moment, next, body)
        lane = f"{adapter.name}/{moment.lane}"
        next.pos = self.session.checkpoint(lane, moment.name, {**body, "source": moment.source}, of)


def root_for(target: Any) -> Root | None:
    """What records the kickoff of something that nobody has wrapped: the session that is on. None without one."""
    if sessions.session is None:
        return None
    from lockstep_crewai.recording import Recording
    from lockstep_crewai.seams import Seams

    recording = Recording(None, None)
    root = Root(target, Seams(recording, recording))
    recording.of(root)
    return root
