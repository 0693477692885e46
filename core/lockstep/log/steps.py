"""When a step closes, in plain Python: where an outermost model, tool or HTTP effect ends, or at a named step.

One rule, used where events are written (to count steps) and where they are read (to number them).
"""

from __future__ import annotations

from collections.abc import Iterable

from lockstep.log.model import Event, Kind

CLOSING = frozenset({"model", "tool", "http"})


class StepCount:
    """Counts the steps that a stream's events close, fed in storage order.

    flying  positions of the calls that were in flight where a branch begins, and close a step when they end
    """

    __slots__ = ("_open", "steps")

    def __init__(self, flying: Iterable[int] = ()) -> None:
        self.steps = 0
        self._open = set(flying)

    def feed(self, event: Event) -> bool:
        """Whether this event closes a step."""
        kind = event.kind
        if kind is Kind.BEGIN:
            if not event.of and event.what in CLOSING:
                self._open.add(event.pos)
            return False
        if kind is Kind.END:
            if event.of not in self._open:
                return False
            self._open.discard(event.of)
        elif kind is not Kind.STEP:
            return False
        self.steps += 1
        return True
