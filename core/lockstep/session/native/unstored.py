"""A stream in memory, in the place of a store's: for scratch journals."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from lockstep.log import untapped
from lockstep.log.model import Event, RunState


class Unstored:
    """See `lockstep.log.store.Shared`: what a journal needs of it.

    events  what was appended, in order
    """

    def __init__(self, branch: str = "main", base: int = 0) -> None:
        """`base`: the position that its events come after."""
        self.branch = branch
        self.started = untapped.time_ns()
        self.state = RunState.COMPLETE
        self.events: list[Event] = []
        self._top = base
        self._turn = Held()

    def append(self, events: Sequence[Event], faults: int = 0) -> tuple[Event, ...]:
        real: dict[int, int] = {}
        placed = []
        for pos, event in enumerate(events, self._top + 1):
            real[event.pos] = pos
            placed.append(replace(event, pos=pos, of=real.get(event.of, event.of)))
        self._top += len(placed)
        self.events += placed
        return tuple(placed)

    def changed(self) -> bool:
        return False

    def hold_turn(self) -> Held | None:
        return self._turn if self._turn.take() else None

    def is_turn_held(self) -> bool:
        return self._turn.taken

    def rest_memory(self) -> None:
        """What is in memory is all there is."""

    def set_state(self, state: RunState) -> None:
        self.state = state

    def close(self) -> None:
        """Nothing to let go of."""


class Held:
    """The lock of a turn."""

    def __init__(self) -> None:
        self._lock = untapped.allocate_lock()

    @property
    def taken(self) -> bool:
        return self._lock.locked()

    def take(self) -> bool:
        return self._lock.acquire(False)

    def release(self) -> None:
        self._lock.release()
