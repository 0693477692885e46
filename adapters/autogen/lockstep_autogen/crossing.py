"""Who hears of a team in a fork: a player up to the cut, what writes the branch from there."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lockstep.log.model import RunState, Status, Value
from lockstep.session.native import endings
from lockstep.session.native.journal import Journal
from lockstep.session.native.ran import GOES_ON, Ran, Recorded, RecordedStep
from lockstep.session.native.steps import write
from lockstep.session.native.turn import Turn
from lockstep_autogen import again, canonical, layout, stopping
from lockstep_autogen.halting import Halt
from lockstep_autogen.layout import Moment
from lockstep_autogen.playing import Player
from lockstep_autogen.recording import Steps, returned
from lockstep_autogen.seams import Asked

if TYPE_CHECKING:
    from lockstep.session.native.tailing import Tailing


class Branch:
    """Writes the steps and turns of a fork's branch. A fault of ours stops it: the branch would not be replayed.

    count  steps that were written
    """

    def __init__(self, journal: Journal, steps: Steps) -> None:
        self._journal = journal
        self._steps = steps
        self._turn: Turn | None = None
        self.count = 0

    def begin(self, entry: str, request: Mapping[str, Value]) -> None:
        self._turn = self._journal.begin_turn(entry, canonical.inert(request))

    async def step(self, moment: Moment, halted: str = "") -> None:
        body, next = await self._steps.next(moment)
        if halted:
            body[layout.HALTED] = halted
        self.write(moment, body, next)

    def write(self, moment: Moment, body: dict[str, Value], next: Any) -> None:
        write(self._journal, self._steps, moment, body, next)
        self.count += 1

    def end(self, status: str, value: Any, state: RunState | None) -> None:
        turn, self._turn = self._turn, None
        if turn is not None:
            turn.end(status, value, state)


class Crossing:
    """Is `Told`.

    over   whether the part that is served is over
    stops  where the team is stopped past the cut
    """

    def __init__(self, recorded: Recorded, calls: Tailing, halt: Halt, journal: Journal) -> None:
        self.over = False
        self.stops = stopping.NOWHERE
        self._calls = calls
        self._halt = halt
        self._recorded = recorded
        self._hide = journal.hide
        self._upto = calls.plan.upto
        self._player = Player(recorded, halt, journal.hide, upto=self._upto, faults=calls.served.faults)
        self._branch = Branch(journal, self._player.steps)
        self._run: Ran | None = None
        self._amid = False  # the turn that is on has begun in the part that is served
        self._shared = sum(step.pos <= self._upto for step in recorded.steps)
        self._later: dict[str, deque[RecordedStep]] = {}  # past the cut, as far as it may be answered from the record
        for step in recorded.steps:
            if self._upto < step.pos <= calls.plan.until:
                self._later.setdefault(step.event.lane, deque()).append(step)

    def turn(self, run: Ran) -> None:
        """The recorded run that is made next."""
        self._run = run
        if not self.over:
            self._player.turn(run, self._calls.served)
            if run.pos > self._upto:
                self._calls.stepped()

    def cross(self) -> None:
        """From here on all is the branch's own."""
        self.over = True
        if self._amid:
            assert self._run is not None
            self._branch.begin(self._run.entry, {GOES_ON: True})

    def _look(self) -> None:
        """Whether all steps of the part that is served have been made."""
        run = self._run
        if not self.over and run is not None and self._player.left is None and self._is_last(run):
            self._calls.stepped()

    def _is_last(self, run: Ran) -> bool:
        """Whether the cut is in this run."""
        return self._upto < run.stop

    async def speaks(self, lane: str, name: str) -> None:
        """See `Seams`: past the cut each when it likes, but where all is answered as it was recorded."""
        if not self.over:
            await self._player.speaks(lane, name)
        elif self._calls.tail.past and (later := self._later.get(lane)):
            await self._player.as_in(later[0], name)

    # What the seams tell.

    async def begins(self, asked: Asked, before: Moment) -> None:
        """See `Told`."""
        if self.over:
            self._branch.begin(asked.entry, asked.request)
            if asked.entry.startswith(("run", "on_messages")):
                await self._branch.step(before)
            return
        self._amid = True
        await self._player.begins(asked, before)
        self._look()

    async def cut(self, moment: Moment) -> Any:
        """See `Told`."""
        if self.over:
            if self._calls.latch.stopped:
                raise await self._halt.never(self._calls.latch.error())
            if later := self._later.get(moment.lane):
                later.popleft()
            number = self._shared + self._branch.count
            halted = self.stops.reason(number, moment) if "/" not in moment.lane else ""
            await self._branch.step(moment, halted)
            return stopping.message(halted)
        halt = await self._player.cut(moment)
        self._look()
        # Where nothing followed, that the fork goes on from here is what it is for.
        assert self._run is not None
        return halt if self._run.number < len(self._recorded.runs) else None

    async def ends(self, result: Any, last: Moment | None) -> None:
        """See `Told`."""
        if not self.over:
            await self._player.ends(result, last)
            self._look()
            if not self._calls.gate.is_open:
                return
            last = None  # it has been compared
        if last is not None and (last.consistent or last.spoken):
            await self._branch.step(last)
        self._branch.end(Status.OK, returned(result), self._calls.resting())
        self._amid = False

    def fails(self, error: BaseException, last: Moment | None) -> None:
        """See `Told`."""
        if not self.over and not self._calls.latch.stopped:
            self._player.fails(error, last)
            self._look()
            last = None
        if not self.over:
            return
        if last is not None and last.spoken and not self._calls.latch.stopped:
            self._branch.write(last, *self._player.steps.unsaved(last))
        status = Status.CANCELLED if self._calls.latch.stopped else Status.ERROR
        self._branch.end(status, None if status == Status.CANCELLED else error, self._calls.resting())
        self._amid = False

    def fault(self, where: str, error: BaseException) -> None:
        self._calls.fault(where, error)

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
