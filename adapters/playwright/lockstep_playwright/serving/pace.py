"""When an answer of the record is let out: at its place among the other answers, and among what the agent does.

    pace = Pace(serving, began, ended, note)
    await pace.action_begins(); …; await pace.action_ends(pos)      # as the agent acts
    await pace.turn(call, event)                     # before a piece of an answer is handed out

A page shows what has come so far, so an agent that looks at it, or clicks, must find what had come when it was
recorded, and no more. So an answer waits until everything before it in the record has happened
(`lockstep.session.native.order`), and until the actions have begun, and ended, that had when it came.

Nobody waits for ever. A page that no longer asks for something would block all that came after it, so where nothing
moves for a moment what is missing is waited for no more, and that is named: the order is another one. How long a moment
is, is counted in turns of the loop, which Playwright's sync API stops while the agent's own code runs; and what a page
waited for when it was recorded, by its timers, it may take as long again.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from lockstep.log.model import Event, Kind
from lockstep.session.native.order import REACTS, Order, Parked
from lockstep.session.native.serving import Serving
from lockstep_playwright.serving import lasting
from lockstep_playwright.serving.bell import Bell

ORDER = "order"

_LOOK = 0.05  # seconds between two looks at whether anything moves
_PATIENCE = 1.0  # seconds in which nothing moves
_LATE = 0.1  # likewise, of what an action may have waited for though it stands behind its end


class Pace:
    """Of one served stretch. Usable from any thread and loop.

    tape  what is recorded of it
    """

    def __init__(
        self, serving: Serving, began: Sequence[int], ended: Sequence[int], note: Callable[[str, str], Any], *,
        patience: float = _PATIENCE,
    ) -> None:  # fmt: skip
        """`began` and `ended`: the positions at which the recorded actions did. `note` is told what goes out of its
        order."""
        self._serving = serving
        self._began = sorted(began)
        self.tape = serving.tape
        self._marks = sorted({*began, *ended})  # those that have not come
        self._begun = 0
        self._running = 0
        self._note = note
        self._patience = patience
        self._bells: set[Bell] = set()
        self._closed = False
        self._order = serving.order = Order(serving.tape, {*began, *ended})
        for effect in lasting.repeats(serving.tape):
            self._order.come(effect.begin.pos, *(event.pos for _, event, _ in effect.pieces))

    # What the agent does.

    async def action_begins(self, at: int | None = None) -> None:
        """An action is about to begin: returns when it may, since everything has happened that had then. `at`: the
        position at which it began; that of the next one, if not told."""
        number = self._begun
        self._begun += 1
        if at is None and number < len(self._began):
            at = self._began[number]
        if at is not None:
            await self.caught_up(at)
            self._come(at)
        self._running += 1
        self._ring()

    async def action_ends(self, pos: int) -> None:
        """An action is over, whose step was stored at this position: returns when everything has happened that had
        then, before the agent goes on and looks at it."""
        await self.caught_up(pos)
        self._running -= 1
        self._come(pos)

    def close(self) -> None:
        """The context is over, or the rest runs for real: nothing waits any more."""
        self._closed = True
        self._ring()

    # Who waits.

    async def turn(self, begin: Event, since: int, event: Event, *, late: bool = False) -> None:
        """Returns when the piece `event` of the call that began with `begin` may be handed out. `since`: when the piece
        before it came, on the record's clock. `late`: the browser tells of it when its page has it already."""
        if self._order.is_first(Parked(begin, event, _nothing)):
            return
        bell = Bell()
        parked = Parked(begin, event, bell.ring)
        self._order.park(parked)
        asyncio.get_running_loop().call_soon(self._order.advance)
        try:
            await self._wait(parked, bell, event.at - since, late=late)
        finally:
            self._order.leave(parked)

    async def caught_up(self, pos: int) -> None:
        here = Event(Kind.STEP, pos, 0, "")
        await self._wait(Parked(here, here, _nothing), Bell(), 0)

    async def _wait(self, parked: Parked, bell: Bell, took: int, *, late: bool = False) -> None:
        """`took`: ns that it may take though nothing moves."""
        order, pos = self._order, parked.event.pos
        allowed = self._patience + took / 1e9
        seen, still = self._serving.progress, 0.0
        self._bells.add(bell)
        try:
            while not self._is_open():
                first = parked.granted or order.is_first(parked)
                if first and (parked.granted or parked.begin is parked.event):
                    return
                # The program may be busy with what it got last: a moment later it is not.
                if not await bell.heard(REACTS if first else _LOOK):
                    moved = self._serving.progress != seen or self._thinks(pos)
                    seen, still = self._serving.progress, 0.0 if moved else still + _LOOK
                if late and still > _LATE + took / 1e9 and self._waits_for_mark(pos):
                    break
                if still > allowed:
                    self._in_vain(parked)
                    return
                order.advance()
            order.give_up(pos)
        finally:
            self._bells.discard(bell)

    def _in_vain(self, parked: Parked) -> None:
        missing = "another answer, or request," if self._is_due(parked.event.pos) else "an action"
        self._order.give_up(parked.event.pos)
        self._note(
            ORDER, f"{parked.begin.name or 'an action'} did not wait for {missing} that came first in the record"
        )

    def _come(self, mark: int) -> None:
        with suppress(ValueError):
            self._marks.remove(mark)
        self._order.come(mark)

    def _waits_for_mark(self, pos: int) -> bool:
        """Whether an action, and nothing else, is missing before a position."""
        mark = next(iter(self._marks), pos)
        here = Event(Kind.STEP, mark, 0, "")
        return mark < pos and self._order.is_first(Parked(here, here, _nothing))

    def _is_open(self) -> bool:
        """Whether nothing waits any more: what is answered past a difference is nobody's order."""
        return self._closed or self._serving.latched.stopped

    def _is_due(self, pos: int) -> bool:
        """Whether the actions have begun that had begun when what is at this position came."""
        return self._begun >= bisect_left(self._began, pos)

    def _thinks(self, pos: int) -> bool:
        """Whether an action has to begin first, and none is on: the agent takes the time that it takes."""
        return not self._running and not self._is_due(pos)

    def _ring(self) -> None:
        for bell in tuple(self._bells):
            bell.ring()


def _nothing() -> None:
    """Nobody is woken: it looks again by itself."""
