"""Who hears of a crew in a fork: a player up to the cut, what writes the branch from there.

A step past the cut may be done early, while what runs beside it is still served. In a thread it waits for that; in a
loop, where waiting would keep the others from it, it is written when the part that is served is over.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from lockstep.errors import Code
from lockstep.log import untapped
from lockstep.log.model import Kind, RunState, Status, Value
from lockstep.session.native import endings
from lockstep.session.native.journal import Journal
from lockstep.session.native.moment import loop
from lockstep.session.native.ran import GOES_ON, Ran, Recorded
from lockstep.session.native.steps import write
from lockstep.session.native.tailing import Tailing
from lockstep.session.native.turn import Turn
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
        self._turn: Turn | None = None

    def begin(self, entry: str, request: Mapping[str, Value]) -> None:
        self._turn = self._journal.begin_turn(entry, dict(request))

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

    def end(self, status: str, value: Any, state: RunState | None) -> None:
        turn, self._turn = self._turn, None
        if turn is not None:
            turn.end(status, value, state)


class Crossing:
    """Is `lockstep_crewai.seams.Told`.

    over  whether the part that is served is over
    """

    def __init__(self, recorded: Recorded, calls: Tailing, journal: Journal, edits: Mapping[int, Changed]) -> None:
        self.over = False
        self._calls = calls
        self._recorded = recorded
        self._hide = journal.hide
        self._upto = calls.plan.upto
        self._player = Player(recorded, calls.latch, journal.hide, upto=self._upto, faults=calls.served.faults)
        self._branch = Branch(journal, self._player.steps)
        self._edits = {
            (run.number, step.event.lane, step.event.name): edits[step.pos]
            for run in recorded.runs for step in recorded.steps_of(run) if step.pos in edits
        }  # fmt: skip
        self._run: Ran | None = None
        self._amid = False  # the turn that is on has begun in the part that is served
        self._early: list[
            tuple[Moment, Sequence[Change]]
        ] = []  # steps past the cut that were done before it was crossed
        self._lock: Any = untapped.RLock()

    def turn(self, run: Ran) -> None:
        """The recorded run that is made next."""
        self._run = run
        if self.over:
            self._player.steps.turn()
        else:
            self._player.turn(run, self._calls.served)
            if run.pos > self._upto:
                self._calls.stepped()

    def cross(self) -> None:
        """From here on all is the branch's own."""
        with self._lock:
            self.over = True
            if self._amid:
                assert self._run is not None
                self._begin(self._run.entry, {GOES_ON: True})
            early, self._early = self._early, []
            for each in early:
                self._write(*each)

    def _begin(self, entry: str, request: Mapping[str, Value]) -> None:
        try:
            self._branch.begin(entry, request)
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

    def _look(self) -> None:
        """Whether all steps of the part that is served have been made."""
        run = self._run
        if not self.over and run is not None and self._player.left is None and self._is_last(run):
            self._calls.stepped()

    def _is_last(self, run: Ran) -> bool:
        """Whether the cut is in this run."""
        return self._upto < run.stop

    @property
    def unreached(self) -> tuple[str, ...]:
        """Addresses of edited steps that were not made."""
        return tuple(address for change in self._edits.values() for address in change.told)

    # What the seams tell.

    def begins(self, asked: Asked, before: Moment) -> None:
        """See `Told`."""
        if self.over:
            self._begin(asked.entry, asked.request)
            self._write(before)
            return
        self._amid = True
        self._player.begins(asked, before)
        self._look()

    def step(self, moment: Moment) -> Replacement | None:
        """See `Told`."""
        calls = self._calls
        if calls.latch.stopped:
            calls.latch.raise_it()
        if not self.over and self._player.expects(moment):
            edited = self._player.step(moment)
            self._look()
            return edited
        moment, changes = self._edited(moment)
        if not self.over and loop() is None:
            calls.gate.wait(calls.over)
            if calls.latch.stopped:
                calls.latch.raise_it()
        with self._lock:
            if self.over:
                self._write(moment, changes)
            else:
                self._early.append((moment, changes))
        return Replacement(moment.payload) if changes else None

    def _edited(self, moment: Moment) -> tuple[Moment, Sequence[Change]]:
        """What a step comes to by its edit, and that; nothing of one that has none, or has failed."""
        assert self._run is not None
        place = self._run.number, moment.lane, moment.name
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
        if not self.over:
            return self._player.counts(lane, tokens)
        self._branch.counts(lane, tokens)
        return None

    def was_busy(self, lane: str, attempt: int) -> bool:
        """See `Told`."""
        return not self.over and self._player.was_busy(lane, attempt)

    def busy(self, lane: str, attempt: int) -> None:
        """See `Told`."""
        if self.over:
            self._branch.busy(lane, attempt)

    def attached(self, lane: str, name: str, about: Value) -> None:
        """See `Told`."""

    def ends(self, result: Value) -> None:
        """See `Told`."""
        if not self.over:
            self._player.ends(result)
            self._look()
            if not self.over:
                return
        self._branch.end(Status.OK, result, self._calls.resting())
        self._amid = False

    def fails(self, error: BaseException) -> None:
        """See `Told`."""
        latch = self._calls.latch
        if not self.over and not latch.stopped:
            self._player.fails(error)
            self._look()
        if not self.over:
            return
        status = Status.CANCELLED if latch.stopped else Status.ERROR
        self._branch.end(status, None if latch.stopped else error, self._calls.resting())
        self._amid = False

    def fault(self, where: str, error: BaseException) -> None:
        """See `Told`."""
        self._calls.fault(where, error)

    @property
    def moved(self) -> int:
        """Grows with whatever it is told in the part that is served."""
        return self._player.moved

    def finish(self, run: Ran) -> None:
        """A turn is over: of one that was served to its end, what was recorded of that is compared."""
        calls = self._calls
        if calls.latch.stopped:
            self._branch.end(Status.CANCELLED, None, calls.resting())
            return
        self._amid = False
        if self.over:
            return
        if self._player.left is not None:
            endings.absent(calls.served, self._player.left, again.TERMS)
        elif self._is_last(run):
            calls.stuck(0)
        else:
            endings.compare(calls.served, self._recorded, run, self._player.ending, self._hide, again.TERMS)
