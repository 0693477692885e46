"""Replays of a team's run: `lockstep.replay("autogen/refund", make_team)`.

A fresh team does what the recorded one did: its turns are made again with what they were given, and its models, tools
and people answer what they answered, in the recorded order. Each message, the state behind it and the end are compared.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

from lockstep.adapter.native import Played, ReplayOptions, no_loop
from lockstep.adapter.replaying import Replaying
from lockstep.log.store import RunReader
from lockstep.session.native import guard
from lockstep_autogen import again, attaching, driving, fresh
from lockstep_autogen.attaching import Root
from lockstep_autogen.driving import Drive
from lockstep_autogen.halting import Halt, Halting
from lockstep_autogen.playing import Player
from lockstep_autogen.seams import Seams

_HINT = (
    "a team's own code runs in a replay, and what it does outside of its models, tools and people is not recorded"
    " without a session: give what asks the outside to lockstep_autogen.record_model or record_tool, or record with"
    " lockstep record"
)


def replay(reader: RunReader, target: Any, options: ReplayOptions) -> Played:
    """Replays a branch of a team's run. Raises TargetError LS402 under a running loop: await `areplay` there."""
    no_loop("teams run in an event loop", "areplay")
    return asyncio.run(areplay(reader, target, options))


async def areplay(reader: RunReader, target: Any, options: ReplayOptions) -> Played:
    """The same under a running loop."""
    replaying = Replaying(reader, options, "a team", _HINT, again.TERMS)
    recorded, server = replaying.recorded, replaying.server
    team = await fresh.made(target, recorded.meta)
    halt = Halt()
    player = Player(recorded, halt, server.hide, until=options.until, faults=server.faults)
    drive = Drive(
        halt, lambda: (halt.moved, len(player.compared)), replaying.stuck, options.deadline, server.latch, replaying
    )
    root = Root(team, Seams(server.stretch(0, 0), player, player.speaks))
    attaching.attach(root)
    guard.watch(driving.watched)
    for run in replaying.chosen:
        serving = replaying.serve(run)
        drive.deadline = replaying.patience(run)
        player.turn(run, serving, is_open=replaying.is_open(run))
        root.seams.calls = Halting(serving, halt)
        ended = await drive.run(partial(again.turn, team, run.entry, replaying.asked(run)))
        if not replaying.goes_on(run, ended, player):
            break
    return replaying.played(player)
