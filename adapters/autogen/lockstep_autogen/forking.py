"""Forks of a team's run: `lockstep.fork("autogen/refund:3", make_team, edits={"3.1": "refuse it"})`.

A fresh team does again what the recorded one did up to the step that the fork leaves, answered from the record, and
what it says is compared. So all that it remembers is there: its agents' contexts, what its conditions have counted, and
teams inside of tools. From there on its models are asked for real, tools as the policy allows, and all of it is a
branch of the run. The turns that were recorded after that are made again with what they were given.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec

from lockstep.adapter.native import Continued, ForkOptions, first_and_answer, no_loop
from lockstep.debugger.plan import cut_of
from lockstep.errors import Code, TargetError
from lockstep.log.address import called
from lockstep.log.model import RunState, Status, Value
from lockstep.log.store import Store
from lockstep.log.timeline import Place, Timeline
from lockstep.session.native import forking as forks
from lockstep.session.native import guard
from lockstep.session.native.endings import Ended
from lockstep.session.native.journal import Journal
from lockstep.session.native.kept import recalled
from lockstep.session.native.ran import Ran, Recorded
from lockstep.session.native.record import Record
from lockstep.session.native.tailing import Tailing
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
    """One fork: what it goes by, and what has come of it."""

    def __init__(self, store: Store, place: Place, options: ForkOptions) -> None:
        _refuse(options)
        self.store = store
        self.place = place
        self.options = options
        self.recorded = recorded = Recorded(place.timeline.reader)
        self.until = _until(place, recorded, options)
        self.edits = edited.read(place, options.edits, self.until)
        self.upto = self.until if self.edits.first is None else min(self.until, self.edits.first - 1)
        self.began = time.monotonic()
        self.results: list[Any] = []
        self.error: BaseException | None = None
        self._ran: Ran | None = None
        self._reveal: Callable[[Value], Value] = recalled(store.path, place.timeline.reader.meta)[0].reveal

    async def run(self, team: Any) -> Continued:
        """Makes the turns, of which the first are served, as a branch."""
        parent, journal, plan = self._branch()
        try:
            return await self._made(team, journal, plan)
        finally:
            journal.close()
            parent.close()

    def _branch(self) -> tuple[Journal, Journal, Plan]:
        """The parent, the branch, and the plan with its name."""
        address, options = self.place.address, self.options
        plan = Plan(
            options.branch or "fork", address.branch, self._origin(), self.upto, self.until, self.edits.answers,
            options.policy,
        )  # fmt: skip
        run = self.place.timeline.reader.info.name
        parent = Journal.open(self.store, run, dict(self.recorded.meta), branch=address.branch)
        told: dict[str, Any] = {
            **forks.told(plan), "edits": dict(self.edits.told), "step": address.step, "upto": self.upto,
        }  # fmt: skip
        journal = parent.fork(plan.branch, self.upto, latest=False, origin=plan.origin, told=told)
        return parent, journal, msgspec.structs.replace(plan, branch=journal.branch)

    def _origin(self) -> str:
        address = self.place.address
        return f":{address.step}" + (f".{address.effect}" if self.place.effect is not None else "")

    async def _made(self, team: Any, journal: Journal, plan: Plan) -> Continued:
        options, recorded = self.options, self.recorded
        halt = Halt()
        self.calls = calls = Tailing(
            journal, recorded.record, plan, self.store.path, deadline=options.deadline, crossed=self._crossed
        )
        self.told = told = Crossing(recorded, calls, halt, journal)
        told.stops = self.stops(team)
        self.drive = drive = Drive(halt, self._moved, self._stuck, options.deadline, calls.latch, self)
        root = Root(team, Seams(Halting(calls, halt), told, told.speaks))
        attaching.attach(root)
        guard.watch(driving.watched)
        for run in recorded.runs:
            if options.turn is not None and run.number > options.turn:
                break
            self._ran = run
            told.turn(run)
            request: Any = self._reveal(dict(recorded.asked(run)))
            ended = await drive.run(partial(again.turn, team, run.entry, request))
            if not self._goes_on(run, ended):
                break
        return self._continued(journal, calls)

    def stops(self, team: Any) -> stopping.Stops:
        """Where the team is stopped past the cut."""
        asked = self.options.own.get("stop", ())
        return stopping.stops(team, asked if isinstance(asked, (list, tuple)) else (asked,))

    def _crossed(self) -> None:
        """The part that is served is over."""
        self.drive.watched = None
        self.told.cross()

    def _moved(self) -> Any:
        """What changes when anybody gets on; None once it is past the cut, where models and people take their time."""
        if self.calls.gate.is_open:
            return None
        return self.drive.halt.moved, self.calls.served.progress

    def _stuck(self) -> None:
        self.calls.stuck(self.options.deadline)

    def reached(self, kind: str, name: str, source: str) -> None:
        """See `lockstep.session.native.guard.Watched`."""
        reason = f"not covered: {kind} {name} would be reached for real; {_HINT}"
        self.calls.served.diverge(Code.NOT_COVERED, reason, kind=kind, name=name, source=source)

    def _goes_on(self, run: Ran, ended: Ended) -> bool:
        """Whether the next recorded turn is made too."""
        self.told.finish(run)
        if ended.stopped or self.calls.latch.stopped:
            return False
        self.error = ended.error
        if ended.error is None:
            self.results.append(ended.result)
        # Whoever ran the team went on after a turn that had failed, too.
        return ended.error is None or run.status == Status.ERROR

    def _continued(self, journal: Journal, calls: Tailing) -> Continued:
        journal.flush()
        state = calls.resting()
        if state is not None or self.error is not None:
            journal.rest(state or RunState.FAILED)
        timeline = Timeline(self.store.run(journal.run, journal.branch))
        record = Record(timeline.reader)
        how = "complete" if self.error is None else "failed"
        report = calls.report(how, steps=len(record.steps), seconds=time.monotonic() - self.began)
        address = called(journal.run, journal.branch)
        first, answer = first_and_answer(timeline, self.upto, address)
        return Continued(
            report=report, results=self.results, error=self.error, origin=self._origin(), upto=self.upto,
            shared=max(record.last_step(self.upto), 0), first=first,
            answer=answer if report.state == RunState.REFUSED else None,
        )  # fmt: skip


def _refuse(options: ForkOptions) -> None:
    """What a fork of a team's run has not."""
    if options.tasks:
        raise TargetError(Code.BAD_TARGET, "tasks= chooses between tasks of a graph: a team goes on as a whole")
    if options.thread:
        raise TargetError(Code.BAD_TARGET, "thread= is of a framework's thread: a fork of a team's run is a branch")


def _until(place: Place, recorded: Recorded, options: ForkOptions) -> int:
    """The position up to which the fork's past lies. How the last turn ended is not kept, since it ends again, and
    neither is what cut it off: calls that were cancelled, or of a model that failed, are made again."""
    found = cut_of(place, options.within)
    if not recorded.runs:
        return found
    last = recorded.runs[-1]
    end = last.last.end
    return min(found, end.pos - 1 if end is not None and last.status != Status.CLOSED else recorded.whole)
