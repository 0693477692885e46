"""The calls of a fork by re-execution: served up to its cut, in the recorded order, and from there as its tail has it.

A call that belongs past the cut may come early, while what runs beside it is still served: it waits until all of the
part before has been handed out; but one that keeps a loop from going on meanwhile, only for a moment. Calls that are
answered from the record past an edit get their answers in the recorded order too, since who is answered first decides
who goes on first.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections.abc import Callable, Iterator
from typing import Any

from lockstep.errors import Code
from lockstep.log import untapped
from lockstep.log.model import Status
from lockstep.session import findings
from lockstep.session.call import Call, Piece
from lockstep.session.native.calls import Strand
from lockstep.session.native.forking import Forking, Undecided
from lockstep.session.native.gate import Gate
from lockstep.session.native.moment import loop
from lockstep.session.native.serving import Serving
from lockstep.session.tail import Answer
from lockstep.session.tape import Recorded

# Seconds without progress, after which an answer past an edit waits for no other, nor a call that keeps its loop.
_PATIENCE = 0.5
_LOOK = 0.001  # seconds between two looks at whose turn it is


class Queue:
    """Those recorded answers past an edit that are given again, each after those that came before it."""

    def __init__(self, later: Serving, until: int) -> None:
        self._due = sorted(
            effect.pieces[-1][1].pos
            for lane in later.tape.lanes.values()
            for effect in lane.effects
            if effect.ended and effect.pieces[-1][1].pos <= until and effect.pieces[-1][1].what != Status.CANCELLED
        )
        self._given: set[int] = set()
        self._moved = 0

    def given(self, effect: Recorded) -> None:
        """Its answer has been handed out."""
        self._given.add(_end(effect))
        self._moved += 1

    def asked(self) -> None:
        self._moved += 1

    async def turn(self, effect: Recorded, over: Callable[[], bool]) -> None:
        """Returns when all that came before it have been handed out; or when nobody asks for these, and when it is
        `over` with answers from the record."""
        for _ in self._waits(effect, over):
            await asyncio.sleep(_LOOK)

    def wait(self, effect: Recorded, over: Callable[[], bool]) -> None:
        """The same of a thread."""
        for _ in self._waits(effect, over):
            untapped.sleep(_LOOK)

    def _waits(self, effect: Recorded, over: Callable[[], bool]) -> Iterator[None]:
        """Yields before each further look."""
        before = self._due[: bisect_left(self._due, _end(effect))]
        seen, since = self._moved, untapped.monotonic()
        while not over() and not self._given.issuperset(before):
            yield
            if seen != self._moved:
                seen, since = self._moved, untapped.monotonic()
            elif untapped.monotonic() - since > _PATIENCE:
                self._given.update(before)


def _end(effect: Recorded) -> int:
    return effect.pieces[-1][1].pos if effect.ended else effect.begin.pos


class Tailing(Forking):
    """The calls of a fork by re-execution.

    gate     where what is past the cut waits
    crossed  called when the part that is served is over, before the gate opens
    """

    def __init__(self, *args: Any, crossed: Callable[[], None], since: int = 0, **more: Any) -> None:
        super().__init__(*args, since=since, ordered=True, **more)
        self.gate = Gate()
        self.queue = Queue(self.later, self.plan.until)
        self._crossed = crossed
        self._stepped = False

    def undecided(self, strand: Strand, kind: str) -> Call:
        """See `Forking`."""
        return Early(self, strand, kind)

    def stepped(self) -> None:
        """All steps of the part that is served have been made again."""
        self._stepped = True
        self.look()

    def over(self) -> bool:
        """Whether who waits for something here waits no longer."""
        return self.latch.stopped

    def look(self) -> None:
        """Crosses, where the part that is served is over."""
        if not self._stepped or self.gate.is_open:
            return
        with self._lock:
            if not (self.gate.is_open or self.served.outstanding() or self.latch.stopped):
                self._crossed()
                self.gate.open()

    def stuck(self, seconds: float) -> None:
        """Nobody has got on for so long in the part that is served."""
        left = self.served.left()
        if left:
            missing = left[0]
            self.latch.stop_at(findings.never_made(self.served.tape, missing.seq, missing.begin, missing))
        else:
            reason = f"nothing has moved for {seconds:g} s before the step that the fork leaves"
            self.served.differs(Code.STUCK, reason, kind="turn", name="", source="")
        self.gate.look()


class Early(Undecided):
    """A call of a fork that is decided when the gate opens, where the part before has it not."""

    __slots__ = ("_of",)

    session: Tailing

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._of: Recorded | None = None  # what answers it past an edit

    def ready(self) -> None:
        if self._to is None:
            # A loop that waits here keeps those waiting that are served in it: where nobody else gets on, it goes on.
            self.session.gate.wait(self.session.over if loop() is None else self._stalled())
            self._decide()

    def _stalled(self) -> Callable[[], bool]:
        """Tells whether all is stopped, or nobody has got on for a while."""
        served, over = self.session.served, self.session.over
        seen, since = served.progress, untapped.monotonic()

        def stalled() -> bool:
            nonlocal seen, since
            if seen != served.progress:
                seen, since = served.progress, untapped.monotonic()
            return over() or untapped.monotonic() - since > _PATIENCE

        return stalled

    async def aready(self) -> None:
        if self._to is None:
            await self.session.gate.passed(self.session.over)
            self._decide()

    def _answer(self, verdict: Answer, of: Serving) -> None:
        session = self.session
        super()._answer(verdict, of)
        if verdict.edit is not None:
            self._of = session.later.tape.effect(verdict.edit.pos)
        elif of is session.later and verdict.how == "served":
            self._of = verdict.effect
        session.queue.asked()

    def take(self) -> Piece:
        # A loop that waited here would keep those waiting whose turn it is.
        if self._of is not None and loop() is None:
            self.session.queue.wait(self._of, self._is_over)
        return self._taken(super().take())

    async def atake(self) -> Piece:
        if self._of is not None:
            await self.session.queue.turn(self._of, self._is_over)
        return self._taken(await super().atake())

    def end(self, status: str, value: Any = None, *args: Any, **kwargs: Any) -> None:
        super().end(status, value, *args, **kwargs)
        self.session.look()  # no more of its answer was taken

    def _is_over(self) -> bool:
        """Whether nothing is answered from the record any more."""
        return self.session.over() or not self.session.tail.past

    def _taken(self, piece: Piece) -> Piece:
        if piece.status is not None:
            if self._of is not None:
                self.session.queue.given(self._of)
            self.session.look()
        return piece
