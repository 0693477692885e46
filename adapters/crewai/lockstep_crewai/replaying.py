"""Replays of a crew's, agent's or flow's run: `lockstep.replay("crewai/research", make_crew)`.

A fresh one does what the recorded one did: its kickoffs are made again with what they were given, and its models, tools
and people answer what they answered. Each task, method, the state behind it and the end are compared.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

from lockstep.adapter.native import Played, ReplayOptions
from lockstep.adapter.replaying import Replaying
from lockstep.log.store import RunReader
from lockstep.session.native import guard
from lockstep.session.native.serving import Serving
from lockstep_crewai import again, driving, fresh
from lockstep_crewai.driving import Drive
from lockstep_crewai.playing import Player
from lockstep_crewai.seams import Seams

_HINT = (
    "the code of a crew or flow runs in a replay, and what it does outside of its models, tools and people is not"
    " recorded without a session: make a tool of what asks the outside, or record with lockstep record"
)


def replay(reader: RunReader, target: Any, options: ReplayOptions) -> Played:
    """Replays a branch of a run, in a thread of its own. Raises TargetError LS402 where it cannot begin."""
    replaying = Replaying(reader, options, "a crew", _HINT, again.TERMS)
    recorded, server = replaying.recorded, replaying.server
    player = Player(recorded, server.latch, server.hide, until=options.until, faults=server.faults)
    made, root, _ = fresh.made(target, recorded, Seams(server.stretch(0, 0), player, again=True))
    drive = Drive(
        server.latch, lambda: (player.moved, replaying.progress), replaying.stuck, options.deadline, replaying
    )  # fmt: skip
    guard.watch(driving.watched)
    for run in replaying.chosen:
        # What came after a step, waits for it: whoever did that had been told by then what the step came to.
        serving = replaying.serve(run, steps=True)
        drive.deadline = replaying.patience(run)
        player.turn(run, serving, is_open=replaying.is_open(run))
        root.seams.calls = serving
        request = replaying.asked(run)
        again.restore(made, request)
        with again.options(request, reader.info.origin) as given:
            ended = drive.run(partial(again.turn, made, run.entry, given))
            if ended.error is not None:
                # Threads of its tasks go on when a crew has failed, as they did: as far as is recorded.
                root.strands.wait(driving.LEAVES, partial(_is_enough, serving, player))
        if not replaying.goes_on(run, ended, player):
            break
    return replaying.played(player)


def _is_enough(serving: Serving, player: Player) -> bool:
    return serving.latched.stopped or (player.left is None and serving.is_through)


async def areplay(reader: RunReader, target: Any, options: ReplayOptions) -> Played:
    """The same under a running loop, which goes on meanwhile."""
    return await asyncio.to_thread(replay, reader, target, options)
