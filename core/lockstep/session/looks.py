"""Looks: what a lane found where it looked outside the program (a file, a directory), by place and number.

    number = looks.next(place)                      # the n-th look of this lane at that place
    looks.found(place, number, identity, state)     # recording: what was there
    state = looks.served(place, number)             # replay: what was there then

Recorded is what differs from the lane's look before at the same place, in an event of its own at once: a
file that is read a thousand times is stored once, and one that changed in between is served as it changed.
`of` of the event is the number of the look. Only some sources count as reads of the lane.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from lockstep.log.model import Kind, Value
from lockstep.session.lanes import Lane

_KEPT = 1 << 14  # bytes or items of a state that a replay keeps in memory

ABSENT: Any = object()  # the recorded lane never looked there


class Looks:
    """One source of one lane. Used by its own strand only."""

    __slots__ = ("_at", "_counted", "_last", "_looks", "_numbers", "lane", "source")

    def __init__(self, lane: Lane, source: str, counted: bool) -> None:
        self.lane = lane
        self.source = source
        self._counted = counted
        self._looks = 0
        self._numbers: dict[str, int] = {}
        self._last: dict[str, Any] = {}  # recording: identity found; replay: state served
        self._at: dict[str, int] = {}  # replay: which recorded state that is

    @property
    def count(self) -> int:
        return self._looks if self._counted else 0

    def next(self, place: str) -> int:
        """Counts a look; its number at this place, from 1."""
        self._looks += 1
        number = self._numbers[place] = self._numbers.get(place, 0) + 1
        return number

    def changed(self, place: str, identity: Hashable) -> bool:
        """Recording: whether what was found now is not what was found there before; it is then to be stored."""
        if self._last.get(place, ABSENT) == identity:
            return False
        self._last[place] = identity
        return True

    def store(self, place: str, number: int, state: Value) -> int:
        """Recording: makes an event of what a look found; returns its position."""
        session = self.lane.session
        position: int = session.position()
        session.emit(Kind.READS, self.lane.name, position, what=self.source, name=place, of=number, body=state)
        return position

    def found(self, place: str, number: int, identity: Hashable, state: Value) -> None:
        """Recording: what a look found, if it is another thing than before."""
        try:
            if self.changed(place, identity):
                self.store(place, number, state)
        except Exception as error:
            self.lane.session.fault(f"{self.source} {place}", error)

    def succeeded(self, place: str, number: int) -> None:
        """Recording: an attempt that went well, as it is taken for granted unless one before did not."""
        if place in self._last:
            self.found(place, number, None, {})

    def which(self, place: str, number: int) -> int | None:
        """Replay: the number of the event that has what that look found; None where it never looked there."""
        recorded = self.lane.session.tape.lane(self.lane.name).looks.get((self.source, place))
        if recorded is None:
            return None
        at = before = self._at.get(place, -1)
        while at + 1 < len(recorded) and recorded[at + 1][0] <= number:
            at += 1
        if at < 0:
            return None
        if at != before:
            self._at[place] = at
            self._last.pop(place, None)
        return recorded[at][1]  # type: ignore[no-any-return]

    def last(self, place: str) -> Any:
        """Replay: what was served at a place last; ABSENT where nothing was."""
        return self.served(place, self._numbers.get(place, 0))

    def served(self, place: str, number: int) -> Any:
        """Replay: what that look found in the recording; ABSENT where it never looked there."""
        event = self.which(place, number)
        if event is None:
            return ABSENT
        state = self._last.get(place, ABSENT)
        if state is ABSENT:
            session = self.lane.session
            state = session.secrets.reveal(session.tape.body(event))
            if _small(state):
                self._last[place] = state
        return state


def _small(state: Any) -> bool:
    # What is big is fetched again, rather than kept for as long as the replay runs.
    return not isinstance(state, dict) or all(len(x) < _KEPT for x in state.values() if isinstance(x, (bytes, list)))


def looks(lane: Lane, source: str, *, counted: bool = False) -> Looks:
    """The looks of a lane at what `source` names."""
    found: Looks | None = lane.taps.get(source)
    if found is None:
        found = lane.taps[source] = Looks(lane, source, counted)
    return found
