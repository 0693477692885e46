"""What is going to happen to a workflow, in the order in which it will.

agenda.add(at, job, key=("timer", 3))      something that the workflow is told at a time
agenda.withdraw(("timer", 3))              and then it is not
agenda.due(now)                            what it is told by now, taken out
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any

import msgspec
from temporalio.bridge.proto.workflow_activation import WorkflowActivationJob

from lockstep_temporal.asks import LAST, Key


class Happening(msgspec.Struct, frozen=True, order=True):
    """Something that happens at a time: `rank` is its place among what does at once, and `number` that in which it was
    told. `key`: what it answers; `events`: how many it makes in the history."""

    at: int
    rank: int
    number: int
    key: Key | None = None
    events: int = 0
    job: Any = None

    @property
    def is_local(self) -> bool:
        """Whether it answers a local activity."""
        return bool(self.job.HasField("resolve_activity") and self.job.resolve_activity.is_local)

    def starts(self, seq: int) -> bool:
        """Whether it tells of the start of this child."""
        told = self.job.resolve_child_workflow_execution_start
        return bool(self.job.HasField("resolve_child_workflow_execution_start") and told.seq == seq)


class Agenda:
    """See above. Times are nanoseconds."""

    def __init__(self) -> None:
        self._all: list[Happening] = []
        self._told = 0

    def add(self, at: int, key: Key | None, job: WorkflowActivationJob, events: int, rank: int = LAST) -> None:
        """Something is going to happen."""
        self._told += 1
        heapq.heappush(self._all, Happening(at, rank, self._told, key, events, job))

    def withdraw(self, key: Key) -> None:
        """It does not. Of a child, that it has started is not told any more either."""
        self._keep(lambda each: each.key != key and not (key[0] == "child" and each.starts(key[1])))

    def of(self, key: Key) -> Happening | None:
        """What answers this."""
        return next((each for each in self._all if each.key == key), None)

    def due(self, now: int) -> list[Happening]:
        """Takes out all that has happened by now."""
        found: list[Happening] = []
        while self._all and self._all[0].at <= now:
            found.append(heapq.heappop(self._all))
        return found

    def due_locally(self, now: int) -> Happening | None:
        """Takes out the first answer to a local activity that there is by now."""
        found = next((each for each in sorted(self._all) if each.at <= now and each.is_local), None)
        if found is not None:
            self._keep(lambda each: each is not found)
        return found

    def first(self, *, local: bool = False) -> int | None:
        """When the first thing happens; `local`: the first answer to a local activity."""
        return min((each.at for each in self._all if each.is_local or not local), default=None)

    def _keep(self, keeps: Callable[[Happening], bool]) -> None:
        self._all = [each for each in self._all if keeps(each)]
        heapq.heapify(self._all)
