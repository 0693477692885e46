"""The order in which things happened in a stretch of a native run: an answer is handed out when its turn has come.

Who is answered first decides much in a program that waits for the first of several answers, or cancels the others. So
each answer, and each piece of a stream, waits until everything before it in the record has happened: the calls that
were begun have been asked, and the answers that were given have been handed out. For a program that asks the same this
is always possible, since the recorded order was. One that does not come to a recorded call would wait for ever: where
nobody gets on for a while, what is to come before an answer is waited for no more.
"""

from __future__ import annotations

from lockstep.log.model import Kind, Status
from lockstep.session.tape import Tape

# How a program ends a call by itself, at a moment that is nobody's answer.
_ITS_OWN = (Status.CLOSED, Status.CANCELLED)


class Order:
    """Which recorded positions of a tape have come. Used under its serving's lock."""

    def __init__(self, tape: Tape) -> None:
        found: list[int] = []
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

    def come(self, *positions: int) -> None:
        """These have happened, or need not be waited for."""
        self._come.update(positions)
        while self._at < len(self._positions) and self._positions[self._at] in self._come:
            self._come.discard(self._positions[self._at])
            self._at += 1

    def come_up_to(self, pos: int) -> None:
        """Whatever lies before a position need not be waited for."""
        while not self.has_come_to(pos):
            self.come(self._positions[self._at])

    def has_come_to(self, pos: int) -> bool:
        """Whether everything before a position has happened."""
        return self._at >= len(self._positions) or self._positions[self._at] >= pos
