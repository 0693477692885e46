"""A team while a core session is on (`lockstep record`, `with lockstep.record`).

Its calls are effects of the session, as everywhere. The team is a lane of the session's run: its steps are steps of the
run and, counted by themselves, of the team (`refund/desk:7`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lockstep.log.model import Value
from lockstep_autogen.adapter import adapter
from lockstep_autogen.layout import WAS, Moment

if TYPE_CHECKING:
    from lockstep.session.native.steps import Last


class Steps:
    """The steps of a team in one session."""

    def __init__(self, session: Any) -> None:
        from lockstep_autogen.recording import Steps as Made

        self.session = session
        self.steps = Made()

    def step(self, moment: Moment, body: dict[str, Value], next: Last) -> None:
        """Notes a step of the session's run. A replay compares it: raises Divergence."""
        of = next.pos
        self.steps.made(moment, next, body)
        # Ids and times come from the session's own taps; what is compared here must not hang on them.
        told: dict[str, Value] = {**body, WAS: []}
        lane = f"{adapter.name}/{moment.lane}"
        next.pos = self.session.checkpoint(lane, moment.name, {**told, "source": moment.source}, of)
