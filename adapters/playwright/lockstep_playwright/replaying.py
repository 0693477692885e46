"""Replays of a browser's run: the function that drove the context drives a fresh one, and no request leaves.

What the browser asks is answered from the record. Each action has to be the recorded one, and to leave the page as it
was then.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec

from lockstep.adapter.native import Played, ReplayOptions, check_range
from lockstep.errors import Code, TargetError
from lockstep.log.store import RunReader
from lockstep.session import coverage
from lockstep.session.native.endings import Ended
from lockstep.session.native.faults import worded
from lockstep.session.native.server import Server
from lockstep.session.report import Coverage
from lockstep_playwright import hosting
from lockstep_playwright.apart import Apart
from lockstep_playwright.driving import Drive, is_async, refuse_loop
from lockstep_playwright.owned import own_of
from lockstep_playwright.playing import Player
from lockstep_playwright.recorded import Recorded
from lockstep_playwright.serving.network import Network
from lockstep_playwright.volatile import rules_of


def replay(reader: RunReader, target: Any, options: ReplayOptions) -> Played:
    """Replays a branch of a browser's run. Raises TargetError LS402 where it cannot begin."""
    refuse_loop(target, "areplay")
    session = Session(reader, options)
    if is_async(target):
        return session.played(asyncio.run(session.drive.arun(target)))
    return hosting.in_thread_if_needed(lambda: session.played(session.drive.run(target)))


async def areplay(reader: RunReader, target: Any, options: ReplayOptions) -> Played:
    """The same under a running loop, in which an async function runs."""
    session = Session(reader, options)
    if is_async(target):
        return session.played(await session.drive.arun(target))
    drive: Callable[[], Ended] = lambda: session.drive.run(target)  # noqa: E731
    return session.played(await asyncio.get_running_loop().run_in_executor(None, drive))


class Session:
    """One replay: what it goes by, and what has come of it."""

    def __init__(self, reader: RunReader, options: ReplayOptions) -> None:
        self.recorded = recorded = Recorded(reader)
        own = own_of(options.own)
        _refuse(recorded, options)
        self.server = server = Server(recorded.record, options.store, deadline=options.deadline)
        serving = server.stretch(recorded.turn.pos, recorded.stop(options.until), interrupted=recorded.is_cut)
        apart = Apart()
        rules = rules_of(recorded.meta, own.volatile)
        self.network = network = Network(
            serving, recorded.began, recorded.ended, server.note, rules=rules, since=recorded.since
        )  # fmt: skip
        self.player = Player(
            recorded, serving, network.pace, apart, rules=rules, strict=own.strict, until=options.until
        )  # fmt: skip
        asked = recorded.asked(server.reveal)
        self.drive = Drive(recorded, own, asked, network, self.player, self._fault, apart, self.player.start)

    def _fault(self, where: str, error: BaseException) -> None:
        self.server.faults.append(worded(where, error))

    def played(self, ended: Ended) -> Played:
        """How it went, once it is through."""
        self.player.finish(None if ended.stopped else ended.error)
        server = self.server
        report = server.report(steps=len(self.player.compared))
        differs = [Coverage(what, coverage.DIFFERS, 0, how) for what, how in self.drive.differs.items()]
        differs += self.network.renaming.differing()
        # What the page asked after the last action is nobody's: the recorded context was open longer, or less long.
        identical = server.latch.difference is None and not server.notes and not report.faults
        report = msgspec.structs.replace(report, identical=identical, coverage=(*report.coverage, *differs))
        results = [ended.result] if ended.error is None else []
        return Played(report=report, results=results, error=None if ended.stopped else ended.error)


def _refuse(recorded: Recorded, options: ReplayOptions) -> None:
    """What a replay of a browser has not."""
    if options.depth != "call":
        raise TargetError(
            Code.BAD_TARGET,
            f"depth {options.depth!r} is nothing that a browser's run has: its function runs, in a real browser",
        )
    check_range(options, recorded.address, turns=1, steps=len(recorded.record.steps))
