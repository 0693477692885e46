"""Who hears of a crew in a fork: a player up to the cut, what writes the branch from there.

A step past the cut may be done early, while what runs beside it is still served. In a thread it waits for that; in a
loop, where waiting would keep the others from it, it is written when the part that is served is over.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from lockstep.errors import Code
from lockstep.log import untapped
from lockstep.log.model import Kind, Status, Value
from lockstep.session.native.cut import Cut, Turns
from lockstep.session.native.journal import Journal
from lockstep.session.native.moment import loop
from lockstep.session.native.ran import GOES_ON, Ran, Recorded
from lockstep.session.native.steps import write
from lockstep.session.native.tailing import Tailing
from lockstep_crewai import again, layout, replaced
from lockstep_crewai.edited import Changed
from lockstep_crewai.layout import Moment, Replacement
from lockstep_crewai.playing import Player
from lockstep_crewai.replaced import Change
from lockstep_crewai.seams import Asked
from lockstep_crewai.steps import Steps


class Branch:
    """Writes the steps and turns of a fork's branch. A fault of ours stops it: the branch would not be replayed."""

    def __init__(self, journal: Journal, steps: Steps) -> None:
        self._journal = journal
        self._steps = steps
        self.turns = Turns(journal)

    def step(self, moment: Moment, changes: Sequence[Change] = ()) -> None:
        body, next = self._steps.next(moment)
        if changes:
            body[layout.EDITED] = replaced.told(changes)
        write(self._journal, self._steps, moment, body, next)

    def counts(self, lane: str, tokens: Value) -> None:
        journal = self._journal
        body: Value = {layout.TOKENS: tokens}
        journal.emit(Kind.CAUSE, lane, journal.position(), layout.TOKENS, body=body)

    def busy(self, lane: str, attempt: int) -> None:
        journal = self._journal
        journal.emit(Kind.CAUSE, lane, journal.position(), layout.BUSY, body={layout.BUSY: attempt})


class Crossing:
    """Is `lockstep_crewai.seams.Told`."""

    def __init__(self, recorded: Recorded, calls: Tailing, journal: Journal, edits: Mapping[int, Changed]) -> None:
        self._calls = calls
        self._recorded = recorded
        self._player = Player(
            recorded, calls.latch, journal.hide, upto=calls.plan.upto, faults=calls.served.faults
        )  # fmt: skip
        self._cut = Cut(recorded, calls, self._player, journal.hide, again.TERMS)
        self._branch = Branch(journal, self._player.steps)
        self._edits = {
            (run.number, step.event.lane, step.event.name): edits[step.pos]
            for run in recorded.runs for step in recorded.steps_of(run) if step.pos in edits
        }  # fmt: skip
        self._early: list[
            tuple[Moment, Sequence[Change]]
        ] = []  # steps past the cut that were done before it was crossed
        self._lock: Any = untapped.RLock()

    def turn(self, run: Ran) -> None:
        """The recorded run that is made next."""
        if self._cut.over:
            self._player.steps.turn()
        self._cut.turn(run)

    def cross(self) -> None:
        """From here on all is the branch's own."""
        with self._lock:
            self._cut.over = True
            if self._cut.amid:
                assert self._cut.run is not None
                self._begin(self._cut.run.entry, {GOES_ON: True})
            early, self._early = self._early, []
            for each in early:
                self._write(*each)

    def _begin(self, entry: str, request: Mapping[str, Value]) -> None:
        try:
            self._branch.turns.begin(entry, dict(request))
        except Exception as error:
            self._unwritten(error, "", entry)

    def _write(self, moment: Moment, changes: Sequence[Change] = ()) -> None:
        try:
            self._branch.step(moment, changes)
        except Exception as error:
            self._unwritten(error, moment.lane, moment.name)

    def _unwritten(self, error: Exception, lane: str, name: str) -> NoReturn:
        """Stops the crew, which would swallow it: the branch would lack a step, and nobody knew."""
        reason = f"the branch could not be written: {type(error).__name__}: {error}"
        self._calls.diverge(Code.UNWRITABLE, reason, lane=lane, kind="step", name=name)

    @property
    def unreached(self) -> tuple[str, ...]:
        """Addresses of edited steps that were not made."""
        return tuple(address for change in self._edits.values() for address in change.told)

    # What the seams tell.

    def begins(self, asked: Asked, before: Moment) -> None:
        """See `Told`."""
        if self._cut.over:
            self._begin(asked.entry, asked.request)
            self._write(before)
            return
        self._cut.amid = True
        self._player.begins(asked, before)
        self._cut.look()

    def step(self, moment: Moment) -> Replacement | None:
        """See `Told`."""
        calls = self._calls
        if calls.latch.stopped:
            calls.latch.raise_it()
        if not self._cut.over and self._player.expects(moment):
            edited = self._player.step(moment)
            self._cut.look()
            return edited
        moment, changes = self._edited(moment)
        if not self._cut.over and loop() is None:
            calls.gate.wait(calls.over)
            if calls.latch.stopped:
                calls.latch.raise_it()
        with self._lock:
            if self._cut.over:
                self._write(moment, changes)
            else:
                self._early.append((moment, changes))
        return Replacement(moment.payload) if changes else None

    def _edited(self, moment: Moment) -> tuple[Moment, Sequence[Change]]:
        """What a step comes to by its edit, and that; nothing of one that has none, or has failed."""
        assert self._cut.run is not None
        place = self._cut.run.number, moment.lane, moment.name
        if layout.OUTPUT not in moment.channels or place not in self._edits:
            return moment, ()
        change = self._edits.pop(place)
        try:
            edited = replaced.edited(moment, change.changes)
        except Exception as error:  # of a model's own validators too
            reason = f"its output cannot be what the edit says: {replaced.why(error)}"
            self._calls.diverge(
                Code.UNSERVABLE, reason, lane=moment.lane, kind=moment.kind, name=moment.name, at=change.pos
            )  # fmt: skip
        self._calls.went("edited", 0)
        return edited, change.changes

    def counts(self, lane: str, tokens: Value) -> Value:
        """See `Told`."""
        if not self._cut.over:
            return self._player.counts(lane, tokens)
        self._branch.counts(lane, tokens)
        return None

    def was_busy(self, lane: str, attempt: int) -> bool:
        """See `Told`."""
        return not self._cut.over and self._player.was_busy(lane, attempt)

    def busy(self, lane: str, attempt: int) -> None:
        """See `Told`."""
        if self._cut.over:
            self._branch.busy(lane, attempt)

    def attached(self, lane: str, name: str, about: Value) -> None:
        """See `Told`."""

    def ends(self, result: Value) -> None:
        """See `Told`."""
        if not self._cut.over:
            self._player.ends(result)
            self._cut.look()
            if not self._cut.over:
                return
        self._branch.turns.end(Status.OK, result, self._calls.resting())
        self._cut.amid = False

    def fails(self, error: BaseException) -> None:
        """See `Told`."""
        latch = self._calls.latch
        if not self._cut.over and not latch.stopped:
            self._player.fails(error)
            self._cut.look()
        if not self._cut.over:
            return
        status = Status.CANCELLED if latch.stopped else Status.ERROR
        self._branch.turns.end(status, None if latch.stopped else error, self._calls.resting())
        self._cut.amid = False

    def fault(self, where: str, error: BaseException) -> None:
        """See `Told`."""
        self._calls.fault(where, error)

    @property
    def moved(self) -> int:
        """Grows with whatever it is told in the part that is served."""
        return self._player.moved

    def finish(self, run: Ran) -> None:
        """A turn is over."""
        self._cut.finish(run, self._branch.turns)
