"""Forks of a team's run: `lockstep.fork("autogen/refund:3", make_team, edits={"3.1": "refuse it"})`.

A fresh team does again what the recorded one did up to the step that the fork leaves, answered from the record, and
what it says is compared. So all that it remembers is there: its agents' contexts, what its conditions have counted, and
teams inside of tools. From there on its models are asked for real, tools as the policy allows, and all of it is a
branch of the run. The turns that were recorded after that are made again with what they were given.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from lockstep.adapter.forking import Fork, past_of, refuse
from lockstep.adapter.native import Continued, ForkOptions, no_loop
from lockstep.errors import Code, TargetError
from lockstep.log.store import Store
from lockstep.log.timeline import Place
from lockstep.session.native import guard
from lockstep.session.native.journal import Journal
from lockstep.session.native.ran import Recorded
from lockstep.session.tail import Plan
from lockstep_autogen import again, attaching, driving, edited, fresh, stopping
from lockstep_autogen.attaching import Root
from lockstep_autogen.crossing import Crossing
from lockstep_autogen.driving import Drive
from lockstep_autogen.halting import Halt, Halting
from lockstep_autogen.seams import Seams

_HINT = (
    "a team's own code runs again in the part that a fork serves, and what it does outside of its models, tools and"
    " people is not recorded: give what asks the outside to lockstep_autogen.record_model or record_tool"
)


def fork(store: Store, place: Place, target: Any, options: ForkOptions) -> Continued:
    """Forks a team's run. See `lockstep.adapter.native.Native`."""
    no_loop("teams run in an event loop", "afork")
    return driving.alone(afork(store, place, target, options))


async def afork(store: Store, place: Place, target: Any, options: ForkOptions) -> Continued:
    """The same under a running loop."""
    session = _session(store, place, options)
    team = await fresh.made(target, session.recorded.meta)
    return await session.run(team)


def _session(store: Store, place: Place, options: ForkOptions) -> Session:
    by = options.own.get("by", "code")
    if by == "state":
        from lockstep_autogen import resuming

        return resuming.Session(store, place, options)
    if by != "code":
        raise TargetError(Code.BAD_TARGET, f'by= is "code" or "state", not {by!r}')
    return Session(store, place, options)


class Session:
    """One fork, and the team in it."""

    def __init__(self, store: Store, place: Place, options: ForkOptions) -> None:
        refuse(options, "a team", "a team goes on as a whole")
        self.place = place
        self.options = options
        self.recorded = recorded = Recorded(place.timeline.reader)
        until = past_of(place, recorded, options)
        edits = edited.read(place, options.edits, until)
        self.fork = Fork(store, place, options, recorded, until, edits, _HINT)
        self.drive: Drive
        self.told: Crossing

    async def run(self, team: Any) -> Continued:
        """Makes the turns, of which the first are served, as a branch."""
        with self.fork.branch() as (journal, plan):
            return await self._made(team, journal, plan)

    async def _made(self, team: Any, journal: Journal, plan: Plan) -> Continued:
        fork, halt = self.fork, Halt()
        calls = fork.tailing(journal, plan, self._crossed)
        told = Crossing(self.recorded, calls, halt, journal)
        self.attach(team, halt, told)
        for run in fork.runs:
            told.turn(run)
            ended = await self.drive.run(partial(again.turn, team, run.entry, fork.asked(run)))
            told.finish(run)
            if not fork.goes_on(run, ended):
                break
        return fork.continued()

    def attach(self, team: Any, halt: Halt, told: Crossing) -> Root:
        """Has the team's calls decided by the fork, and told to these."""
        fork, calls = self.fork, self.fork.calls
        asked = self.options.own.get("stop", ())
        told.stops = stopping.stops(team, asked if isinstance(asked, (list, tuple)) else (asked,))
        self.told = told
        self.drive = Drive(
            halt, lambda: fork.moved(halt.moved), fork.stuck, self.options.deadline, calls.latch, fork
        )  # fmt: skip
        root = Root(team, Seams(Halting(calls, halt), told, told.speaks))
        attaching.attach(root)
        guard.watch(driving.watched)
        return root

    def _crossed(self) -> None:
        """The part that is served is over."""
        self.drive.watched = None
        self.told.cross()
