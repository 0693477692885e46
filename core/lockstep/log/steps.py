"""When a step closes.

In plain Python: where an outermost model, tool or HTTP effect ends, or at a named step; step 0 is the input. In a
*native run*, whose meta says `{"steps": "checkpoints"}`: at each STEP, which is a checkpoint of the framework, and the
first one is step 0. One rule, used where events are written (to count steps) and where they are read (to number them).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from lockstep.log.model import Event, Kind, RunState, Status, Value

CLOSING = frozenset({"model", "tool", "http"})

STEPS, CHECKPOINTS = "steps", "checkpoints"  # key and value in the meta of a native run

TURN = "turn"  # what the BEGIN of a native run's turn says: no effect, and it is no part of a step


def rest(status: str) -> RunState:
    """As which a native run rests, by how its last turn ended: also after one that was cancelled, or waits for a
    human, it can be gone on with."""
    return RunState.FAILED if status == Status.ERROR else RunState.COMPLETE


def is_native(meta: Value) -> bool:
    """Whether steps close at checkpoints only, and many processes may write to one stream in turns."""
    return isinstance(meta, Mapping) and meta.get(STEPS) == CHECKPOINTS


class StepCount:
    """Counts the steps that a stream's events close, fed in storage order. Of a native run the first one counts too:
    its number is 0, so that of the last is one less than the count.

    flying  positions of the calls that were in flight where a branch begins, and close a step when they end
    native  whether it is of a native run
    """

    __slots__ = ("_native", "_open", "steps")

    def __init__(self, flying: Iterable[int] = (), *, native: bool = False) -> None:
        self.steps = 0
        self._open = set(flying)
        self._native = native

    def feed(self, event: Event) -> bool:
        """Whether this event closes a step."""
        kind = event.kind
        if self._native:
            self.steps += kind is Kind.STEP
            return kind is Kind.STEP
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
