"""Forks of a crew's, flow's or agent's run: `lockstep.fork("crewai/research:3", make_crew, edits={"3": "refuse it"})`.

A fresh crew does again what the recorded one did up to the step that the fork leaves, answered from the record, and
what its tasks come to is compared. So all that it remembers is there: its agents, a flow's state, what a router has
chosen. From there on its models are asked for real, tools as the policy allows, and all of it is a branch of the run.
The turns that were recorded after that are made again with what they were given.

CrewAI's own ways to go on from a checkpoint are not used: a flow that is restored after a router runs nothing.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

from lockstep.adapter.forking import Fork, past_of, refuse
from lockstep.adapter.native import Continued, ForkOptions
from lockstep.log.model import Value
from lockstep.log.store import Store
from lockstep.log.timeline import Place
from lockstep.session.native import guard
from lockstep.session.native.ran import Recorded
from lockstep_crewai import again, driving, edited, fresh, members
from lockstep_crewai.crossing import Crossing
from lockstep_crewai.driving import Drive
from lockstep_crewai.seams import Seams

_HINT = (
    "the code of a crew or flow runs again in the part that a fork serves, and what it does outside of its models,"
    " tools and people is not recorded: make a tool of what asks the outside"
)
_NOBODY: Any = None  # is asked while the crew is made: no turn of it is on
_LEAVES = 2.0  # seconds that threads of tasks are given to end, once their crew has


def fork(store: Store, place: Place, target: Any, options: ForkOptions) -> Continued:
    """Forks a run, in a thread of its own. See `lockstep.adapter.native.Native`."""
    refuse(options, "a crew", "a crew goes on as a whole")
    recorded = Recorded(place.timeline.reader)
    until = past_of(place, recorded, options)
    edits, steps = edited.read(place, options.edits, until)
    forking = Fork(store, place, options, recorded, until, edits, _HINT)
    made, root, fit = fresh.made(
        target, recorded, Seams(_NOBODY, _NOBODY, again=True), until=None if options.exact else until
    )  # fmt: skip
    own: dict[str, Value] = {members.MEMBERS: fit.members} if fit.members is not None else {}
    with forking.branch(**own) as (journal, plan):

        def crossed() -> None:
            drive.watched = None
            told.cross()

        calls = forking.tailing(journal, plan, crossed)
        told = Crossing(recorded, calls, journal, steps)
        drive = Drive(calls.latch, lambda: forking.moved(told.moved), forking.stuck, options.deadline, forking)
        root.seams = Seams(calls, told, again=True)
        guard.watch(driving.watched)
        for run in forking.runs:
            told.turn(run)
            request = forking.asked(run)
            again.restore(made, request)
            with again.options(request, recorded.reader.info.origin) as given:
                ended = drive.run(partial(again.turn, made, run.entry, given))
                root.strands.wait(_LEAVES)
            told.finish(run)
            if not forking.goes_on(run, ended):
                break
        return forking.continued(told.unreached, fit.changed)


async def afork(store: Store, place: Place, target: Any, options: ForkOptions) -> Continued:
    """The same under a running loop, which goes on meanwhile."""
    return await asyncio.to_thread(fork, store, place, target, options)
