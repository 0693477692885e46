"""What a native run's journal was told and has not stored: in its order, with the places that are kept in it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator

from lockstep.log.model import Event
from lockstep.session.writer import Finish


class Place:
    """Of a step that closes here and whose record is not there yet: what is told later is stored behind it."""

    __slots__ = ("event", "open")

    def __init__(self) -> None:
        self.event: Event | None = None  # None of one that was given up
        self.open = True

    def fill(self, event: Event | None) -> None:
        self.event, self.open = event, False


class Told:
    """Events in a row. Whoever takes some holds the journal's lock; anybody may add one, in any thread."""

    def __init__(self) -> None:
        self._row: deque[tuple[Event | Place, Finish | None]] = deque()

    def add(self, event: Event, finish: Finish | None) -> None:
        """`finish` makes of it what is stored, in the order in which they were added."""
        self._row.append((event, finish))

    def keep(self) -> Place:
        """A place for an event that comes later, or never."""
        place = Place()
        self._row.append((place, None))
        return place

    def give_up(self) -> None:
        """Nothing comes any more in the places that are open."""
        for told, _ in tuple(self._row):
            if isinstance(told, Place) and told.open:
                told.fill(None)

    def take(self, finished: Callable[[Event, Finish | None], Event | None]) -> Iterator[Event]:
        """What was added, `finished`, up to the first place that is still open. It is no longer here then."""
        row = self._row
        for _ in range(len(row)):
            told, finish = row[0]
            if isinstance(told, Place):
                if told.open:
                    return
                event = told.event
            else:
                event = finished(told, finish)
            row.popleft()
            if event is not None:
                yield event

    def clear(self) -> None:
        """Forgets all of it."""
        self._row.clear()
