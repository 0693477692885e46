"""What a journal writes to: a stream that any process may append to, or one in memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from msgspec.structs import replace

from lockstep.log.model import Event, RunState


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
