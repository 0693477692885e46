"""What a journal writes to: a stream that any process may append to, and two that belong to this process alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from msgspec.structs import replace

from lockstep.log.model import Event, Kind, RunState
from lockstep.log.store import Appender


class Shared(Protocol):
    """As `lockstep.log.store` has it: positions that are given are negative and provisional."""

    def append(self, events: Sequence[Event]) -> tuple[Event, ...]:
        """Stores the events in one transaction, durable when it returns; returns them as stored."""
        ...

    def changed(self) -> bool: ...

    def hold_turn(self) -> Any: ...

    def set_state(self, state: RunState) -> None: ...

    def close(self) -> None: ...


class Unstored:
    """A stream in memory.

    events  what was appended, in order
    """

    def __init__(self, base: int = 0) -> None:
        self.events: list[Event] = []
        self.state = RunState.GROWING
        self._top = base

    def append(self, events: Sequence[Event]) -> tuple[Event, ...]:
        placed = place(events, self._top + 1)
        self._top += len(placed)
        self.events += placed
        return placed

    def changed(self) -> bool:
        return False

    def hold_turn(self) -> Any:
        return _Held()

    def set_state(self, state: RunState) -> None:
        self.state = state

    def close(self) -> None:
        pass


class Sole:
    """A stream of a store that this process alone writes."""

    def __init__(self, appender: Appender, base: int = 0) -> None:
        self._appender = appender
        self._memory = Unstored(base)

    def append(self, events: Sequence[Event]) -> tuple[Event, ...]:
        placed = self._memory.append(events)
        self._memory.events.clear()
        self._appender.append(placed)
        return placed

    def changed(self) -> bool:
        return False

    def hold_turn(self) -> Any:
        return _Held()

    def set_state(self, state: RunState) -> None:
        self._memory.set_state(state)

    def close(self) -> None:
        self._appender.close(self._memory.state)


class _Held:
    def release(self, *args: Any, **kwargs: Any) -> None:
        """Lets it go."""


def place(events: Sequence[Event], first: int) -> tuple[Event, ...]:
    """Events with the positions from `first` on in the place of their provisional ones."""
    real: dict[int, int] = {}
    placed = []
    for pos, event in enumerate(events, first):
        if event.pos < 0:
            real[event.pos] = pos
        placed.append(replace(event, pos=pos, of=real.get(event.of, event.of)))
    return tuple(placed)


def opening(wall: int, pid: int) -> tuple[Event, ...]:
    """What a stream begins with."""
    return (
        Event(Kind.LANE, -1, 0, "", "main", "main"),
        Event(Kind.START, -2, 0, "main", body={"wall": wall, "pid": pid}),
    )
