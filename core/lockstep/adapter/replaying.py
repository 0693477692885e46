"""Replays by re-execution: the turns of a run are made again, one after the other, with their calls served.

    again = Replaying(reader, options, "a team", hint, terms)
    for run in again.chosen:
        serving = again.serve(run)              # for the seams: the calls of this turn
        …                                       # has the framework make it, with `again.patience(run)`
        if not again.goes_on(run, ended, player):
            break
    return again.played(player)

How a turn is made again, and how its steps are compared, are the adapter's: what drives the framework, and a player
that hears of its steps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from lockstep.adapter.native import Played, ReplayOptions, check_range
from lockstep.errors import Code, TargetError
from lockstep.log.model import Status, Value
from lockstep.log.store import RunReader
from lockstep.session.native import endings, faults
from lockstep.session.native.endings import Ended, Ending, Terms
from lockstep.session.native.ran import Ran, Recorded, RecordedStep
from lockstep.session.native.served import CUT_PATIENCE
from lockstep.session.native.server import Server
from lockstep.session.native.serving import Serving


class Player(Protocol):
    """Who hears of the steps of the turns that are made again, and compares them.

    compared  the numbers of steps that were the recorded ones
    keys      of these
    ending    of the last turn
    """

    compared: list[int]
    keys: list[bytes]
    ending: Ending

    @property
    def left(self) -> RecordedStep | None:
        """The first step of the turn that has not been made again."""
        ...


class Replaying:
    """One replay: what it goes by, and what has come of it so far. Is `lockstep.session.native.guard.Watched`.

    chosen   the turns to make again
    results  what they returned; `error`: what the last one raised by itself
    """

    def __init__(self, reader: RunReader, options: ReplayOptions, what: str, hint: str, terms: Terms) -> None:
        """`what` is made again: "a team"; `hint`: what to do where its code reaches outside by itself. Raises
        TargetError LS402 where there is nothing to make again, or not in this way."""
        self.options = options
        self.recorded = Recorded(reader)
        self.chosen = _chosen(self.recorded, options, what)
        self.server = Server(self.recorded.record, options.store, deadline=options.deadline)
        # What is replayed is not all that was done.
        told = faults.recorded(self.recorded.record)
        self.server.faults += [f"when it was recorded: {fault}" for fault in told]
        self.results: list[Any] = []
        self.error: BaseException | None = None
        self._hint = hint
        self._terms = terms
        self._serving: Serving | None = None
        self._ran: Ran | None = None

    def serve(self, run: Ran, *, steps: bool = False) -> Serving:
        """The calls of a turn, which is the next one. `steps`: what came after a step when it was recorded, waits for
        it."""
        until, record = self.options.until, self.recorded.record
        stop = run.stop
        if until is not None and run.pos < record.position(until) < stop:
            stop = record.position(until) + 1
        also = [step.pos for step in self.recorded.steps_of(run) if step.pos < stop] if steps else ()
        self._ran = run
        is_cut = self.is_open(run) or stop != run.stop
        self._serving = self.server.stretch(run.pos, stop, interrupted=is_cut, also=also)
        return self._serving

    def is_open(self, run: Ran) -> bool:
        """Whether nothing is known of what follows the last event of a turn: it was cut off, cancelled, or left."""
        return run.status not in (Status.OK, Status.ERROR)

    def patience(self, run: Ran) -> float:
        """Seconds without progress after which the turn is `stuck`: of one that was cut off, whoever waits where
        nothing is recorded any more has come to the cut."""
        return min(self.options.deadline, CUT_PATIENCE) if self.is_open(run) else self.options.deadline

    def asked(self, run: Ran) -> Mapping[str, Any]:
        """What the turn was begun with."""
        found = self.server.reveal(dict(self.recorded.asked(run)))
        return found if isinstance(found, Mapping) else {}

    @property
    def progress(self) -> int:
        """Grows with what is served of the turn."""
        return self._serving.progress if self._serving is not None else 0

    # What stops it.

    def reached(self, kind: str, name: str, source: str) -> None:
        """See `lockstep.session.native.guard.Watched`."""
        assert self._serving is not None
        reason = f"not covered: {kind} {name} would be reached for real; {self._hint}"
        self._serving.diverge(Code.NOT_COVERED, reason, kind=kind, name=name, source=source)

    def stuck(self) -> None:
        """Nobody has got on for too long."""
        assert self._serving is not None
        assert self._ran is not None
        if self.is_open(self._ran):
            self.server.latch.come_to_cut()
            return
        self._serving.finish()
        seconds = self.options.deadline
        self._serving.differs(
            Code.STUCK,
            f"nothing has moved for {seconds:g} s: it waits for what is neither a model, a tool nor a person's"
            " answer", lane=str(self.recorded.address), kind="turn", name=self._ran.entry,
        )  # fmt: skip

    # The end.

    def goes_on(self, run: Ran, ended: Ended, player: Player) -> bool:
        """Whether the next turn is made too, once this one has ended."""
        serving, latch = self._serving, self.server.latch
        assert serving is not None
        serving.turn_over = True
        if self.is_open(run) and not latch.stopped:
            latch.come_to_cut()
        if latch.difference is None and not latch.cut:
            serving.finish()
            if player.left is not None:
                endings.absent(serving, player.left, self._terms)
            endings.compare(serving, self.recorded, run, player.ending, self.server.hide, self._terms)
        if latch.difference is None and not ended.stopped and self.options.turn in (None, run.number):
            if ended.error is None:
                self.results.append(ended.result)
            self.error = ended.error
        return not latch.stopped

    def played(self, player: Player) -> Played:
        """How it went, once it is through."""
        keys: Value = [*player.keys]
        report = self.server.report(end=keys, recorded=keys, steps=len(player.compared))
        return Played(report=report, results=self.results, error=self.error)


def _chosen(recorded: Recorded, options: ReplayOptions, what: str) -> Sequence[Ran]:
    """The turns to make again: also those before the only one that is asked for, since who made them remembers them.
    Raises TargetError LS402."""
    if options.depth != "call":
        raise TargetError(
            Code.BAD_TARGET,
            f"depth {options.depth!r} is nothing that {what} has: its agents run, and its calls are served",
        )
    runs = recorded.runs
    if not runs:
        raise TargetError(Code.BAD_TARGET, f"{recorded.address} was cut off before its first turn began")
    check_range(options, recorded.address, len(runs), len(recorded.steps))
    until = options.until
    chosen = runs[: options.turn]
    if until is not None:
        return tuple(run for run in chosen if run.pos < recorded.steps[until].pos)
    return chosen
