"""Forks of runs that a framework keeps itself: the branch that is made, what is told of it, and re-execution.

    fork = Fork(store, place, options, recorded, edits, hint)
    with fork.branch() as (journal, plan):
        calls = fork.tailing(journal, plan, crossed)
        for run in fork.runs:
            …                                   # has the framework make it again, with `fork.asked(run)`
            if not fork.goes_on(run, ended):
                break
        return fork.continued()

In a fork by re-execution the turns of a run are made again, up to the cut with their calls served, and past it as the
tail has them. How a turn is made again, and how its steps are compared and written, are the adapter's.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Container, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import msgspec

from lockstep.adapter.native import Continued, ForkOptions, first_and_answer
from lockstep.debugger.plan import Edited, cut_of, origin_of
from lockstep.errors import Code, Stop, TargetError
from lockstep.log.address import called
from lockstep.log.model import RunState, Status, Value
from lockstep.log.store import Store
from lockstep.log.timeline import Place, Timeline
from lockstep.session.native import forking as forks
from lockstep.session.native.endings import Ended
from lockstep.session.native.forking import Forking
from lockstep.session.native.journal import Journal
from lockstep.session.native.kept import recalled
from lockstep.session.native.ran import Ran, Recorded
from lockstep.session.native.record import Record
from lockstep.session.native.tailing import Tailing
from lockstep.session.tail import Plan


def refuse(options: ForkOptions, what: str, tasks: str) -> None:
    """Raises TargetError LS402 for options of a fork that are a graph's. `what` is forked: "a team"; `tasks`: why it
    has none to choose between."""
    if options.tasks:
        raise TargetError(Code.BAD_TARGET, f"tasks= chooses between tasks of a graph: {tasks}")
    if options.thread:
        raise TargetError(
            Code.BAD_TARGET, f"thread= is of a framework's thread: a fork of {what}'s run is a branch"
        )  # fmt: skip


def branched(
    store: Store, place: Place, plan: Plan, edits: Mapping[str, Value] | None = None, at: int | None = None,
    more: Mapping[str, Value] | None = None,
) -> tuple[Journal, Journal, Plan]:  # fmt: skip
    """The parent, the branch that a plan makes of it, and the plan with the name that it has got. Whoever asks for them
    closes both.

    edits  as they were given, by address, where there are others than those of answers
    at     the position that it leaves its parent at, where that is not the last one that it shares
    more   what the branch says of itself beside
    """
    reader = place.timeline.reader
    meta: Any = reader.meta
    parent = Journal.open(store, reader.info.name, dict(meta), branch=place.address.branch)
    told = {**(more or {}), **forks.told(plan), "step": place.address.step}
    if edits is not None:
        told["edits"] = dict(edits)
    upto = plan.upto if at is None else at
    journal = parent.fork(plan.branch, upto, latest=False, origin=plan.origin, told=told)
    return parent, journal, msgspec.structs.replace(plan, branch=journal.branch)


def rest(calls: Forking, *, failed: bool) -> None:
    """Has the branch rest as it ended, also where no turn was on that could say so."""
    calls.journal.flush()
    state = calls.resting()
    if state is not None or failed:
        calls.journal.rest(state or RunState.FAILED)


def continued(
    store: Store, calls: Forking, *, upto: int, began: float, origin: str, results: list[Any],
    error: BaseException | None, shared: int | None = None, ended: str = "", unasked: Container[str] = (),
    config: Mapping[str, Any] | None = None, **more: Any,
) -> Continued:  # fmt: skip
    """What became of a fork, read from its branch.

    upto     the position of the last event that it shares with its parent; `shared`: the step, where that is another
    began    when, on the clock of `time.monotonic`
    error    what its last turn raised, by itself or since it was stopped
    ended    how it did, where that does not follow from the error: complete, failed, interrupted
    unasked  see `first_and_answer`
    more     fields of the report
    """
    journal = calls.journal
    journal.flush()
    timeline = Timeline(store.run(journal.run, journal.branch))
    record = Record(timeline.reader)
    stopped = isinstance(error, Stop)
    how = ended or ("complete" if error is None else "interrupted" if stopped else "failed")
    report = calls.report(how, steps=len(record.steps), seconds=time.monotonic() - began, **more)
    first, answer = first_and_answer(timeline, upto, called(journal.run, journal.branch), unasked)
    return Continued(
        report=report, results=results, error=None if stopped else error, config=config or {}, origin=origin, upto=upto,
        shared=max(record.last_step(upto) if shared is None else shared, 0), first=first,
        answer=answer if report.state == RunState.REFUSED else None,
    )  # fmt: skip


def past_of(place: Place, recorded: Recorded, options: ForkOptions) -> int:
    """The position up to which the past of a fork by re-execution lies. How the last turn ended is not kept, since it
    ends again, and neither is what cut it off: calls that were cancelled, or of a model that failed, are made again."""
    found = cut_of(place, options.within)
    if not recorded.runs:
        return found
    last = recorded.runs[-1]
    end = last.last.end
    return min(found, end.pos - 1 if end is not None and last.status != Status.CLOSED else recorded.whole)


class Fork:
    """One fork by re-execution: what it goes by, and what has come of it. Is `lockstep.session.native.guard.Watched`.

    until    the position up to which its past lies (`past_of`)
    upto     that of the last event that it shares: edits come after it
    calls    once it has begun
    results  what its turns returned; `error`: what the last one raised by itself
    """

    def __init__(
        self, store: Store, place: Place, options: ForkOptions, recorded: Recorded, until: int, edits: Edited, hint: str
    ) -> None:
        """`hint`: what to do where code of the part that is served reaches outside by itself."""
        self.store = store
        self.place = place
        self.options = options
        self.recorded = recorded
        self.until = until
        self.edits = edits
        self.upto = until if edits.first is None else min(until, edits.first - 1)
        self.results: list[Any] = []
        self.error: BaseException | None = None
        self.calls: Tailing
        self._hint = hint
        self._began = time.monotonic()
        self._reveal: Callable[[Value], Value] = recalled(store.path, place.timeline.reader.meta)[0].reveal

    @contextmanager
    def branch(self, **more: Value) -> Iterator[tuple[Journal, Plan]]:
        """The branch, made, while it is written; and the plan with its name. `more`: what it says of itself beside."""
        options, parent = self.options, self.place.address.branch
        plan = Plan(
            options.branch or "fork", parent, origin_of(self.place), self.upto, self.until, self.edits.answers,
            options.policy,
        )  # fmt: skip
        above, journal, plan = branched(self.store, self.place, plan, self.edits.told, more=more)
        try:
            yield journal, plan
        finally:
            journal.close()
            above.close()

    def tailing(self, journal: Journal, plan: Plan, crossed: Callable[[], None], *, since: int = 0) -> Tailing:
        """Its calls. `crossed` is called when the part that is served is over; `since`: nothing before that is."""
        self.calls = Tailing(
            journal, self.recorded.record, plan, self.store.path, deadline=self.options.deadline, crossed=crossed,
            since=since,
        )  # fmt: skip
        return self.calls

    @property
    def runs(self) -> Iterator[Ran]:
        """The recorded turns that are made, as far as they are wanted."""
        return (run for run in self.recorded.runs if self.options.turn is None or run.number <= self.options.turn)

    def asked(self, run: Ran) -> Mapping[str, Any]:
        """What a turn was begun with."""
        found = self.reveal(dict(self.recorded.asked(run)))
        return found if isinstance(found, Mapping) else {}

    def reveal(self, value: Value) -> Value:
        """A recorded value as the program has it."""
        return self._reveal(value)

    # What stops it.

    def reached(self, kind: str, name: str, source: str) -> None:
        """See `lockstep.session.native.guard.Watched`."""
        reason = f"not covered: {kind} {name} would be reached for real; {self._hint}"
        self.calls.served.diverge(Code.NOT_COVERED, reason, kind=kind, name=name, source=source)

    def moved(self, at: int) -> Any:
        """What changes when anybody gets on, `at` of the adapter's own included; None once it is past the cut, where
        models and people take their time."""
        return None if self.calls.gate.is_open else (at, self.calls.served.progress)

    def stuck(self) -> None:
        """Nobody has got on for too long in the part that is served."""
        self.calls.stuck(self.options.deadline)

    # The end.

    def goes_on(self, run: Ran, ended: Ended) -> bool:
        """Whether the next recorded turn is made too, once this one has ended and was compared."""
        if ended.stopped or self.calls.latch.stopped:
            return False
        self.error = ended.error
        if ended.error is None:
            self.results.append(ended.result)
        # Whoever had it made went on after a turn that had failed, too.
        return ended.error is None or run.status == Status.ERROR

    def continued(self, unreached: tuple[str, ...] = (), changed: tuple[str, ...] = ()) -> Continued:
        """What became of it. `unreached`: edits of steps that were not made; `changed`: see `Report`."""
        calls = self.calls
        rest(calls, failed=self.error is not None)
        made = continued(
            self.store, calls, upto=self.upto, began=self._began, origin=origin_of(self.place), results=self.results,
            error=self.error, changed=changed,
        )  # fmt: skip
        if not unreached or calls.latch.stopped:
            return made
        report = msgspec.structs.replace(made.report, unreached=(*made.report.unreached, *unreached))
        return msgspec.structs.replace(made, report=report)
