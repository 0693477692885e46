"""The cut of a fork by re-execution, for who hears of its turns: a player up to it, who writes the branch after it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from lockstep.log.model import RunState, Status
from lockstep.session.native import endings

if TYPE_CHECKING:
    from collections.abc import Callable

    from lockstep.log.model import Value
    from lockstep.session.native.endings import Ending, Terms
    from lockstep.session.native.journal import Journal
    from lockstep.session.native.ran import Ran, Recorded, RecordedStep
    from lockstep.session.native.serving import Serving
    from lockstep.session.native.tailing import Tailing
    from lockstep.session.native.turn import Turn


class Player(Protocol):
    """Who compares the steps of the part that is served. `ending`: of the last turn."""

    ending: Ending

    @property
    def left(self) -> RecordedStep | None:
        """The first step of the turn that has not been made again."""
        ...

    def turn(self, run: Ran, serving: Serving) -> None:
        """The recorded turn that is next."""
        ...


class Turns:
    """The turns of the branch, as they are written."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._turn: Turn | None = None

    def begin(self, entry: str, request: Value) -> None:
        """One begins, here or with the rest of one that began before the cut."""
        self._turn = self._journal.begin_turn(entry, request)

    def end(self, status: str, value: Any, state: RunState | None) -> None:
        """It is over, if one is on."""
        turn, self._turn = self._turn, None
        if turn is not None:
            turn.end(status, value, state)


class Cut:
    """What of a fork is before its cut, and what past it.

    over  whether the part that is served is over
    run   the recorded turn that is made; None before the first
    amid  it has begun in that part, and goes on
    upto  position of the last event that the branch shares
    """

    def __init__(
        self, recorded: Recorded, calls: Tailing, player: Player, hide: Callable[[Value], Value], terms: Terms
    ) -> None:  # fmt: skip
        self.over = False
        self.run: Ran | None = None
        self.amid = False
        self.upto = calls.plan.upto
        self._recorded = recorded
        self._calls = calls
        self._player = player
        self._hide = hide
        self._terms = terms

    def turn(self, run: Ran) -> None:
        """The recorded turn that is made next."""
        self.run = run
        if not self.over:
            self._player.turn(run, self._calls.served)
            if run.pos > self.upto:
                self._calls.stepped()

    def look(self) -> None:
        """Says it, where all steps of the part that is served have been made."""
        if not self.over and self.run is not None and self._player.left is None and self._is_here(self.run):
            self._calls.stepped()

    def _is_here(self, run: Ran) -> bool:
        return self.upto < run.stop

    def finish(self, run: Ran, turns: Turns) -> None:
        """A turn is over: of one that was served to its end, what was recorded of that is compared."""
        calls, player = self._calls, self._player
        if calls.latch.stopped:
            turns.end(Status.CANCELLED, None, calls.resting())
            return
        self.amid = False
        if self.over:
            return
        if player.left is not None:
            endings.absent(calls.served, player.left, self._terms)
        elif self._is_here(run):
            calls.stuck(0)
        else:
            endings.compare(calls.served, self._recorded, run, player.ending, self._hide, self._terms)
