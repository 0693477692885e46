"""The `Call` of a native run's replay: a recorded call that is handed out again."""

from __future__ import annotations

from _thread import get_ident
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from lockstep.errors import Code, Cut
from lockstep.log import untapped
from lockstep.log.model import Event, Status, Value
from lockstep.session.call import Piece
from lockstep.session.native.calls import Strand
from lockstep.session.native.order import REACTS, Order, Parked
from lockstep.session.served import ServedCall
from lockstep.session.tape import Slot

if TYPE_CHECKING:
    from lockstep.session.native.serving import Serving

type _Found = tuple[int, Event, Slot | None] | None

CUT_PATIENCE = 2.0  # seconds without progress that a strand which came to the cut waits for the others

# Between two looks: nothing but the other strands at first, then a little longer each time.
_LOOKS = 20
_LONGEST = 0.005  # seconds


class NativeCall(ServedCall):
    """Waits for what came before its pieces in the record, and never blocks a loop."""

    __slots__ = ()

    session: Serving

    def __init__(self, session: Serving, lane: Strand, kind: str) -> None:
        super().__init__(session, lane, kind)

    def take(self) -> Piece:
        """The next piece. Divergence, Cut."""
        found = self._next()
        for pause in self._waits(found):
            untapped.sleep(pause)
        if found is not None and self.session.order is not None:
            assert self.recorded is not None
            turn(self.session, self.session.order, self.recorded.begin, found[1])
        return self._given(found)

    async def atake(self) -> Piece:
        """As `take`, for tasks: suspends at least once, as every real call does. A cancellation reaches the task where
        it did when it was recorded: what it was given before that, it still gets."""
        from asyncio import CancelledError, sleep

        found = self._next()
        try:
            for pause in self._waits(found):
                await sleep(pause)
            if found is not None and self.session.order is not None:
                assert self.recorded is not None
                await aturn(self.session, self.session.order, self.recorded.begin, found[1])
            else:
                await sleep(0)
        except CancelledError as error:
            if found is None or found[1].what == Status.CANCELLED:
                self._finish(Status.CANCELLED, None)
                self.session.over(self.recorded)
                raise
            _cancel_later(error)
        return self._given(found)

    def now(self) -> Piece:
        """The next piece, whatever is to come before it: for an adapter that knows itself when its turn has come."""
        return self._given(self._next())

    async def in_turn(self) -> None:
        """Waits until its end's turn has come, where somebody else gives the answer; from then on it is given."""
        recorded, order = self.recorded, self.session.order
        if recorded is None or order is None:
            return
        order.come(*(event.pos for _, event, _ in recorded.pieces[:-1]))
        await aturn(self.session, order, recorded.begin, recorded.pieces[-1][1])
        self.session.over(recorded)

    def end(self, status: str, value: Any = None) -> None:
        super().end(status, value)
        self.session.over(self.recorded)

    def _hide(self, name: str, request: Value, key: Value) -> tuple[str, Value, bytes]:
        return self.session.recognised(self.lane, self.kind, name, request, key)  # type: ignore[arg-type]

    def _waits(self, found: _Found) -> Iterator[float]:
        """Yields how long to wait before the next look, as long as it is not this piece's turn."""
        session = self.session
        if found is None and session.interrupted:
            yield from _while(session, session.outstanding, CUT_PATIENCE)
            session.latched.come_to_cut()
            session.latched.raise_it()
        if found is None or found[1].what == Status.CANCELLED:
            yield from _while(session, lambda: not session.turn_over, session.deadline)
            if session.turn_over and not session.latched.stopped:
                raise Cut("the turn is over that this call was a part of")
            if not session.latched.stopped:
                code, reason = Code.STUCK, "the recorded program never got an answer here"
                if found is not None:
                    code, reason = Code.ORDER, "the recorded program cancelled this call, now nobody does"
                session.differs(code, reason, call=self)
            session.latched.raise_it()

    def _given(self, found: _Found) -> Piece:
        assert found is not None  # `_waits` raised otherwise
        piece = self._hand(found[0], found[1])
        self.session.handed_out(found[1], self.recorded if piece.status is not None else None)
        return piece


def turn(session: Serving, order: Order, begin: Event, event: Event) -> None:
    """Waits until everything before an event has happened that came of `begin`, or until nobody gets on. Raises what is
    latched."""
    bell = untapped.allocate_lock()  # free: look again
    bell.acquire()

    def ring() -> None:
        with suppress(RuntimeError):  # it has not been heard yet
            bell.release()

    parked = Parked(begin, event, ring)
    order.park(parked)
    order.advance()
    try:
        seen = session.progress
        while not parked.granted:
            if not bell.acquire(timeout=_nap(session, order, parked)):
                seen = _waited(session, order, parked, seen)
    finally:
        order.leave(parked)


async def aturn(session: Serving, order: Order, begin: Event, event: Event) -> None:
    """The same in a loop, which resumes those whose turn it is in their order."""
    import asyncio

    loop, thread, bell = asyncio.get_running_loop(), get_ident(), asyncio.Event()

    def ring() -> None:
        if get_ident() == thread:
            bell.set()
        else:
            loop.call_soon_threadsafe(bell.set)

    parked = Parked(begin, event, ring)
    order.park(parked)
    loop.call_soon(order.advance)
    try:
        seen = session.progress
        while not parked.granted:
            try:
                await asyncio.wait_for(bell.wait(), _nap(session, order, parked))
            except TimeoutError:
                seen = _waited(session, order, parked, seen)
            bell.clear()
    finally:
        order.leave(parked)


def _nap(session: Serving, order: Order, parked: Parked) -> float:
    return REACTS if order.is_first(parked) else session.patience


def _waited(session: Serving, order: Order, parked: Parked, seen: int) -> int:
    """It has waited for a while: for the program to be through, or for what does not come if nobody got on."""
    if session.latched.stopped:
        session.latched.raise_it()
    if not order.is_first(parked) and seen == session.progress:
        order.give_up(parked.event.pos)
    else:
        order.advance()
    return session.progress


def _cancel_later(error: BaseException) -> None:
    """The running task is cancelled where it suspends next, and not here."""
    from asyncio import current_task

    task = current_task()
    if task is not None:
        task.uncancel()
        task.cancel(*error.args)


def _while(session: Serving, waits: Any, seconds: float) -> Iterator[float]:
    """Yields as long as there is something to wait for, and somebody gets on or did a moment ago."""
    seen, since, looks = session.progress, untapped.monotonic(), 0
    while waits() and not session.latched.stopped:
        if seen != session.progress:
            seen, since = session.progress, untapped.monotonic()
        if untapped.monotonic() - since > seconds:
            return
        looks += 1
        yield 0.0 if looks < _LOOKS else min(_LONGEST, 0.0001 * (looks - _LOOKS + 1))
