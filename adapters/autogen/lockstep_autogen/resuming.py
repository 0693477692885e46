"""Forks of a team's run by its state: `lockstep.fork("autogen/refund:3", make_team, by="state")`.

The fresh team gets what the recorded one remembered at that step (`lockstep_autogen.restoring`), and goes on: nothing
that came before is run, so the team may be made by other code than the recorded one was, as with a better prompt. That
is offered where it is as exact as doing everything again, and refused with the reason where it is not. What the turn
returns are the messages from there on.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from lockstep.adapter.native import Continued, ForkOptions
from lockstep.errors import Code, TargetError
from lockstep.log import checkpoints
from lockstep.log.address import quote
from lockstep.log.model import Value
from lockstep.log.store import Store
from lockstep.log.timeline import Place
from lockstep.session.native.journal import Journal
from lockstep.session.native.ran import CONSISTENT, RESTORED, Recorded, RecordedStep
from lockstep.session.native.steps import Last
from lockstep.session.native.tailing import Tailing
from lockstep.session.tail import Plan
from lockstep_autogen import again, forking, layout, restoring
from lockstep_autogen.crossing import Crossing
from lockstep_autogen.halting import Halt
from lockstep_autogen.layout import Moment
from lockstep_autogen.seams import Asked


class Session(forking.Session):
    """One fork by state."""

    def __init__(self, store: Store, place: Place, options: ForkOptions) -> None:
        super().__init__(store, place, options)
        if place.effect is not None or options.edits:
            raise _refused(place, "nothing before that step is run again, so no answer can be another one")
        assert place.step is not None
        if place.step.number >= len(self.recorded.steps):
            raise _refused(place, "its end is no state: take the step before")
        self.step: RecordedStep = self.recorded.steps[place.step.number]

    async def run(self, team: Any) -> Continued:
        """See `forking.Session`. Raises TargetError LS411 where it would not be exact."""
        channels: Any = self.fork.reveal(dict(checkpoints.States(self.recorded.reader).at(self.step.pos)))
        self.channels: Mapping[str, Value] = channels
        why = self._refusal(team)
        if why:
            raise _refused(self.place, why)
        return await super().run(team)

    def _refusal(self, team: Any) -> str:
        if self.step.event.lane != quote(str(team.name)):
            return f"it is a step of {self.step.event.lane}, a team inside of the one that was run"
        if self.step.event.what not in (layout.INPUT, layout.MESSAGE):
            return "nothing was run there"
        whole = self.recorded.body(self.step).get(CONSISTENT, True) is True
        return restoring.refusal(team, self.channels, consistent=whole)

    async def _made(self, team: Any, journal: Journal, plan: Plan) -> Continued:
        fork, step, halt = self.fork, self.step, Halt()
        calls = fork.tailing(journal, plan, self._crossed, since=plan.upto)
        told = Resumed(self.recorded, calls, halt, journal)
        root = self.attach(team, halt, told)
        root.on = True  # what the team is given here is no turn of it
        try:
            await restoring.restore(team, self.channels)
        finally:
            root.on = False
        for run in fork.runs:
            if run.stop <= step.pos:
                continue
            asked = fork.asked(run)
            if run.pos < step.pos:
                told.resume(run)
                if step.event.what == layout.MESSAGE:
                    asked = {"task": None}
            else:
                told.turn(run)
            ended = await self.drive.run(partial(again.turn, team, run.entry, asked))
            told.finish(run)
            if not fork.goes_on(run, ended):
                break
        return fork.continued()


class Resumed(Crossing):
    """Is `Told` of a fork by state: it is past the cut from the beginning."""

    def __init__(self, recorded: Recorded, calls: Tailing, halt: Halt, journal: Journal) -> None:
        super().__init__(recorded, calls, halt, journal)
        self._begun = False
        states = checkpoints.States(recorded.reader)
        lasts = {each.event.lane: each for each in recorded.steps if each.pos <= calls.plan.upto}
        for lane, each in lasts.items():
            self._player.steps.last[lane] = Last(each.pos, states.at(each.pos), each.event.key)

    def resume(self, run: Any) -> None:
        """The rest of a recorded run is next."""
        self._cut.run = run
        self._cut.amid = self._begun = True
        self._calls.stepped()

    def cross(self) -> None:
        """See `Crossing`."""
        self._cut.over = True
        assert self._cut.run is not None
        self._branch.turns.begin(self._cut.run.entry, {**RESTORED})

    async def begins(self, asked: Asked, before: Moment) -> None:
        """See `Told`."""
        if self._begun:  # the branch says so already
            self._begun = False
            return
        await super().begins(asked, before)


def _refused(place: Place, why: str) -> TargetError:
    return TargetError(
        Code.UNSUPPORTED,
        f"{place.address} cannot be forked by its state: {why}. Without by= the team does again what came before,"
        " answered from the record: that is exact everywhere",
    )
