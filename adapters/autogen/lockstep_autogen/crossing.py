"""Who hears of a team in a fork: a player up to the cut, what writes the branch from there."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from lockstep.log.model import Status, Value
from lockstep.session.native.cut import Cut, Turns
from lockstep.session.native.journal import Journal
from lockstep.session.native.ran import GOES_ON, Ran, Recorded, RecordedStep
from lockstep.session.native.steps import write
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
        self.turns = Turns(journal)
        self.count = 0

    async def step(self, moment: Moment, halted: str = "") -> None:
        body, next = await self._steps.next(moment)
        if halted:
            body[layout.HALTED] = halted
        self.write(moment, body, next)

    def write(self, moment: Moment, body: dict[str, Value], next: Any) -> None:
        write(self._journal, self._steps, moment, body, next)
        self.count += 1


class Crossing:
    """Is `Told`.

    stops  where the team is stopped past the cut
    """

    def __init__(self, recorded: Recorded, calls: Tailing, halt: Halt, journal: Journal) -> None:
        self.stops = stopping.NOWHERE
        self._calls = calls
        self._halt = halt
        self._recorded = recorded
        upto = calls.plan.upto
        self._player = Player(recorded, halt, journal.hide, upto=upto, faults=calls.served.faults)
        self._cut = Cut(recorded, calls, self._player, journal.hide, again.TERMS)
        self._branch = Branch(journal, self._player.steps)
        self._shared = sum(step.pos <= upto for step in recorded.steps)
        self._later: dict[str, deque[RecordedStep]] = {}  # past the cut, as far as it may be answered from the record
        for step in recorded.steps:
            if upto < step.pos <= calls.plan.until:
                self._later.setdefault(step.event.lane, deque()).append(step)

    def turn(self, run: Ran) -> None:
        """The recorded run that is made next."""
        self._cut.turn(run)

    def cross(self) -> None:
        """From here on all is the branch's own."""
        self._cut.over = True
        if self._cut.amid:
            assert self._cut.run is not None
            self._branch.turns.begin(self._cut.run.entry, {GOES_ON: True})

    async def speaks(self, lane: str, name: str) -> None:
        """See `Seams`: past the cut each when it likes, but where all is answered as it was recorded."""
        if not self._cut.over:
            await self._player.speaks(lane, name)
        elif self._calls.tail.past and (later := self._later.get(lane)):
            await self._player.as_in(later[0], name)

    # What the seams tell.

    async def begins(self, asked: Asked, before: Moment) -> None:
        """See `Told`."""
        if self._cut.over:
            self._branch.turns.begin(asked.entry, canonical.inert(asked.request))
            if asked.entry.startswith(("run", "on_messages")):
                await self._branch.step(before)
            return
        self._cut.amid = True
        await self._player.begins(asked, before)
        self._cut.look()

    async def cut(self, moment: Moment) -> Any:
        """See `Told`."""
        if self._cut.over:
            if self._calls.latch.stopped:
                raise await self._halt.never(self._calls.latch.error())
            if later := self._later.get(moment.lane):
                later.popleft()
            number = self._shared + self._branch.count
            halted = self.stops.reason(number, moment) if "/" not in moment.lane else ""
            await self._branch.step(moment, halted)
            return stopping.message(halted)
        halt = await self._player.cut(moment)
        self._cut.look()
        # Where nothing followed, that the fork goes on from here is what it is for.
        assert self._cut.run is not None
        return halt if self._cut.run.number < len(self._recorded.runs) else None

    async def ends(self, result: Any, last: Moment | None) -> None:
        """See `Told`."""
        if not self._cut.over:
            await self._player.ends(result, last)
            self._cut.look()
            if not self._calls.gate.is_open:
                return
            last = None  # it has been compared
        if last is not None and (last.consistent or last.spoken):
            await self._branch.step(last)
        self._branch.turns.end(Status.OK, returned(result), self._calls.resting())
        self._cut.amid = False

    def fails(self, error: BaseException, last: Moment | None) -> None:
        """See `Told`."""
        if not self._cut.over and not self._calls.latch.stopped:
            self._player.fails(error, last)
            self._cut.look()
            last = None
        if not self._cut.over:
            return
        if last is not None and last.spoken and not self._calls.latch.stopped:
            self._branch.write(last, *self._player.steps.unsaved(last))
        status = Status.CANCELLED if self._calls.latch.stopped else Status.ERROR
        self._branch.turns.end(status, None if status == Status.CANCELLED else error, self._calls.resting())
        self._cut.amid = False

    def fault(self, where: str, error: BaseException) -> None:
        self._calls.fault(where, error)

    def finish(self, run: Ran) -> None:
        """A turn is over."""
        self._cut.finish(run, self._branch.turns)
