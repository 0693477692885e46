"""What the taps put in place of asyncio's own classes: the same, with a place in the record."""

from __future__ import annotations

from asyncio import events, futures, tasks
from typing import Any

from lockstep.session.lanes import Lane
from lockstep.session.tape import Slot


class Timer(events.TimerHandle):
    """A timer of the program: when it fires is a cause."""

    __slots__ = ("ahead", "lane", "number", "slot")
    lane: Lane
    number: int
    slot: Slot | None
    ahead: float  # seconds that the clock it was set by is ahead of the loop's own

    def when(self) -> float:
        return super().when() + self.ahead


class Wake(events.Handle):
    """A callback that another thread scheduled: when it runs is a cause."""

    __slots__ = ("name", "slot")
    name: str
    slot: Slot | None


class Ready(events.Handle):
    """The callback of a descriptor that belongs to a recorded process: when it runs is a cause."""

    __slots__ = ("slot", "source")
    source: Any
    slot: Slot | None


class Task(tasks.Task):  # type: ignore[type-arg]
    """Hashes by its lane, so that a set of tasks iterates alike in every process."""

    def __init__(self, coro: Any, *, number: int, **kwargs: Any) -> None:
        self._lockstep_number = number
        super().__init__(coro, **kwargs)

    def __hash__(self) -> int:
        return self._lockstep_number


class Future(futures.Future):  # type: ignore[type-arg]
    """Hashes by the lane that made it."""

    def __init__(self, number: int, loop: Any) -> None:
        self._lockstep_number = number
        super().__init__(loop=loop)

    def __hash__(self) -> int:
        return self._lockstep_number


for _ours, _theirs in ((Task, tasks.Task), (Future, futures.Future)):
    _ours.__name__, _ours.__qualname__, _ours.__module__ = _theirs.__name__, _theirs.__qualname__, _theirs.__module__
