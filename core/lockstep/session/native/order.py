"""The order in which things happened in a stretch of a native run: an answer is handed out when its turn has come.

Who is answered first decides much in a program that waits for the first of several answers, or cancels the others. So
each answer, and each piece of a stream, waits until everything before it in the record has happened: the calls that
were begun have been asked, and the answers that were given have been handed out. For a program that asks the same this
is always possible, since the recorded order was. One that does not come to a recorded call would wait for ever: where
nobody gets on for a while, what is to come before an answer is waited for no more.

Between two answers that came some time apart the program was through with the first, so it is given a moment for that
here. Those that came at once are handed out at once: a loop resumes who waits for them one after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from lockstep.log import untapped
from lockstep.log.model import Event, Kind, Status
from lockstep.session.native.moment import loop
from lockstep.session.native.rest import is_at_rest
from lockstep.session.tape import Tape

# How a program ends a call by itself, at a moment that is nobody's answer.
_ITS_OWN = (Status.CLOSED, Status.CANCELLED)
# Two answers that came so far apart, in ns, find the program through with the first when the second comes; so it gets
# as long for that here, in seconds; and longer, where it has not come to rest by then.
_APART, REACTS = 1_000_000, 0.001
_LONGEST = 0.1


class Parked:
    """A strand that waits for its turn: for the piece `event` of the call that began with `begin`. `wake` has it look
    again; `granted`: its turn has come."""

    __slots__ = ("begin", "event", "granted", "wake")

    def __init__(self, begin: Event, event: Event, wake: Callable[[], None]) -> None:
        self.begin = begin
        self.event = event
        self.wake = wake
        self.granted = False


class Order:
    """Which recorded positions of a tape have come, and who waits for his. Usable from any thread."""

    def __init__(self, tape: Tape, also: Iterable[int] = ()) -> None:
        """`also`: further positions that answers wait for; who knows when they have come says so (`come`)."""
        found: list[int] = [*also]
        for lane in tape.lanes.values():
            for effect in lane.effects:
                found.append(effect.begin.pos)
                found += [
                    event.pos
                    for _, event, _ in effect.pieces
                    if not (event.kind is Kind.END and event.what in _ITS_OWN)
                ]
        self._positions = sorted(found)
        self._at = 0
        self._come: set[int] = set()
        self._parked: dict[int, Parked] = {}
        self._last: tuple[Event | None, float] = (None, 0.0)  # what was handed out last, and when
        self._lock: Any = untapped.RLock()

    # What has happened.

    def come(self, *positions: int) -> None:
        """These have happened, or need not be waited for."""
        with self._lock:
            self._reach(positions)
            self.advance()

    def asked(self, pos: int) -> None:
        """The call that began at a position has been asked. What others wait for that comes of it, they get in the next
        turn of a loop: it may be about to wait with them."""
        with self._lock:
            self._reach((pos,))
        running = loop()
        if running is not None:
            running.call_soon(self.advance)
        else:
            self.advance()

    def handed(self, event: Event) -> None:
        """The program has this piece."""
        with self._lock:
            self._last = event, untapped.monotonic()
            self.come(event.pos)

    def give_up(self, pos: int) -> None:
        """Whatever lies before a position need not be waited for."""
        with self._lock:
            while not self._has_come_to(pos):
                self._reach((self._positions[self._at],))
            self.advance()

    # Who waits.

    def park(self, parked: Parked) -> None:
        """It waits from now on, until it is granted or gives up (`leave`)."""
        with self._lock:
            self._parked[parked.event.pos] = parked

    def leave(self, parked: Parked) -> None:
        with self._lock:
            if self._parked.get(parked.event.pos) is parked:
                del self._parked[parked.event.pos]

    def is_first(self, parked: Parked) -> bool:
        """Whether everything before its piece has happened, so that only the program is given a moment."""
        with self._lock:
            return self._has_come_to(parked.event.pos)

    def advance(self) -> None:
        """Grants whoever's turn it is. One whose turn it would be, but for what the program is still busy with, is
        woken to look again in a moment."""
        with self._lock:
            first = self._parked.get(self._next())
            if first is None:
                first = next((each for pos, each in self._parked.items() if self._has_come_to(pos)), None)
            if first is None:
                return
            if self._is_busy(first):
                first.wake()
                return
            number = self._at
            self._grant(first)
            # Those that came at the same moment.
            while number < len(self._positions) - 1:
                number += 1
                after = self._parked.get(self._positions[number])
                if after is None or not _at_once(first.event, after.event) or after.event.of == first.event.of:
                    break
                self._grant(after)

    def _grant(self, parked: Parked) -> None:
        del self._parked[parked.event.pos]
        parked.granted = True
        parked.wake()

    def _is_busy(self, parked: Parked) -> bool:
        """Whether another call was given something a moment ago that had come well before, while this one was under
        way."""
        last, when = self._last
        return (
            last is not None
            and last.of != parked.event.of
            and last.pos > parked.begin.pos
            and parked.event.at - last.at >= _APART
            and not _at_once(last, parked.event)
            and _is_at_work(untapped.monotonic() - when)
        )

    def _reach(self, positions: tuple[int, ...]) -> None:
        self._come.update(positions)
        while self._at < len(self._positions) and self._positions[self._at] in self._come:
            self._come.discard(self._positions[self._at])
            self._at += 1

    def _next(self) -> int:
        return self._positions[self._at] if self._at < len(self._positions) else -1

    def _has_come_to(self, pos: int) -> bool:
        """Whether everything before a position has happened."""
        return self._at >= len(self._positions) or self._positions[self._at] >= pos


def _is_at_work(seconds: float) -> bool:
    """Whether the program may still be busy with what it was given so long ago."""
    return seconds < REACTS or (seconds < _LONGEST and not is_at_rest())


def _at_once(before: Event, after: Event) -> bool:
    """Whether the program was given two pieces in one turn of its loop; of threads, hardly one after the other."""
    if before.tick >= 0 and after.tick >= 0:
        return before.tick == after.tick
    return after.at - before.at < _APART
