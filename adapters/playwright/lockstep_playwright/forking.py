"""Forks of a browser's run: `lockstep.fork("playwright/checkout:4", pay, edits={"4.1": {…}}, live=["POST …"])`.

The function drives a fresh browser again, from the beginning: what is in a page's memory cannot be put back. Up to the
step that the fork leaves its network is the recorded one, and each action has to leave the page as it was then. From
there on what the browser asks is made for real, as far as the policy lets it, and all of it is a branch of the run.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import msgspec

from lockstep.adapter.forking import branched, continued, refuse, rest
from lockstep.adapter.native import Continued, ForkOptions
from lockstep.debugger.plan import cut_of, origin_of
from lockstep.errors import Code, TargetError
from lockstep.log.model import Status, Value
from lockstep.log.native import UNASKED
from lockstep.log.store import Store
from lockstep.log.timeline import Place
from lockstep.session.native.endings import Ended
from lockstep.session.native.journal import Journal
from lockstep.session.native.kept import recalled
from lockstep.session.tail import Plan
from lockstep_playwright import edited, hosting
from lockstep_playwright.apart import Apart
from lockstep_playwright.driving import Drive, is_async, refuse_loop
from lockstep_playwright.owned import own_of
from lockstep_playwright.playing import Player
from lockstep_playwright.recorded import Recorded
from lockstep_playwright.recording import Recorder
from lockstep_playwright.serving.network import Network
from lockstep_playwright.tailing import Crossing, Tailing
from lockstep_playwright.volatile import rules_of


def fork(store: Store, place: Place, target: Any, options: ForkOptions) -> Continued:
    """Forks a browser's run. See `lockstep.adapter.native.Native`."""
    refuse_loop(target, "afork")
    session = Session(store, place, options)
    if is_async(target):
        return session.continued(asyncio.run(session.drive.arun(target)))
    return hosting.in_thread_if_needed(lambda: session.continued(session.drive.run(target)))


async def afork(store: Store, place: Place, target: Any, options: ForkOptions) -> Continued:
    """The same under a running loop, in which an async function runs."""
    session = Session(store, place, options)
    if is_async(target):
        return session.continued(await session.drive.arun(target))
    drive: Callable[[], Ended] = lambda: session.drive.run(target)  # noqa: E731
    return session.continued(await asyncio.get_running_loop().run_in_executor(None, drive))


class Session:
    """One fork: what it goes by, and what has come of it."""

    def __init__(self, store: Store, place: Place, options: ForkOptions) -> None:
        _refuse(options)
        self.store = store
        self.place = place
        self.options = options
        self.recorded = recorded = Recorded(place.timeline.reader)
        self.until = cut_of(place, options.within)
        self.edits = edited.read(place, options.edits, self.until)
        self.upto = self.until if self.edits.first is None else min(self.until, self.edits.first - 1)
        self.began = time.monotonic()
        own = own_of(options.own)
        rules = rules_of(recorded.meta, own.volatile)
        secrets, _ = recalled(store.path, place.timeline.reader.meta)
        asked = recorded.asked(secrets.reveal)
        self.parent, self.journal, plan = self._branch()
        try:
            self.calls = calls = Tailing(
                self.journal, recorded.record, plan, store.path, since=0, deadline=options.deadline
            )
            self.recorder = Recorder(self.journal, calls)
            begun = recorded.begun_by(self.upto)
            ended = [pos for pos in recorded.ended if pos <= self.upto]
            apart = Apart()
            self.network = network = Network(
                calls, sorted(begun), ended, calls.note, rules=rules, since=recorded.since
            )  # fmt: skip
            player = Player(
                recorded, calls.served, network.pace, apart, rules=rules, strict=own.strict, upto=self.upto
            )  # fmt: skip
            last = recorded.record.position(max(recorded.record.last_step(self.upto), 0))
            self.recorder.goes_on(last)
            amid = {lane: pos for pos, lane in begun.items() if lane}
            crossing = Crossing(calls, player, self.recorder, lambda: apart.start(network.goes_live()), amid)
            self.drive = Drive(
                recorded, own, asked, network, crossing, self.recorder.fault, apart, crossing.start, attachments=True
            )
        except BaseException:
            self._close()
            raise

    def _branch(self) -> tuple[Journal, Journal, Plan]:
        """The parent and the branch, made."""
        options = self.options
        plan = Plan(
            options.branch or "fork", self.place.address.branch, origin_of(self.place), self.upto, self.until,
            self.edits.answers, options.policy,
        )  # fmt: skip
        return branched(self.store, self.place, plan, self.edits.told)

    def continued(self, ended: Ended) -> Continued:
        """How it went, once it is through."""
        calls = self.calls
        failed = ended.error is not None and not ended.stopped
        status = Status.ERROR if ended.error is not None else Status.OK
        value = ended.error if ended.error is not None else _inert(ended.result)
        self.recorder.finish(status, value, calls.resting())
        rest(calls, failed=failed)
        try:
            made = continued(
                self.store, calls, upto=self.upto, began=self.began, origin=origin_of(self.place),
                results=[ended.result] if ended.error is None else [], error=ended.error if failed else None,
                unasked=UNASKED,
            )  # fmt: skip
            covered = (*made.report.coverage, *self.network.renaming.differing())
            report = msgspec.structs.replace(made.report, coverage=covered)
            return msgspec.structs.replace(made, report=report)
        finally:
            self._close()

    def _close(self) -> None:
        self.journal.close()
        self.parent.close()


def _inert(result: Any) -> Value:
    """What the function returned, where that is data."""
    from lockstep.errors import LockstepError
    from lockstep.session import snapshot

    try:
        return snapshot.to_value(result)
    except (LockstepError, TypeError, ValueError):
        return None


def _refuse(options: ForkOptions) -> None:
    """What a fork of a browser's run has not."""
    refuse(options, "a browser", "a browser's run has none")
    if options.turn is not None:
        raise TargetError(Code.BAD_TARGET, "turn= is of a run with several turns: a browser's run has one")
