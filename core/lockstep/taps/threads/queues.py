"""`queue.SimpleQueue`: written in C, with no lock to order. A program's own is made of Python's `Queue`.

All other queues are guarded by locks, whose order is kept.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from lockstep.session import current, lanes


def install(queue: ModuleType) -> None:
    plain = queue.SimpleQueue

    class Ordered(queue.Queue):  # type: ignore[name-defined, misc]
        """A queue of the program: as SimpleQueue, in the recorded order."""

        def __init__(self) -> None:
            super().__init__(0)

    class Either(type):
        """`isinstance(x, queue.SimpleQueue)` holds for plain ones, as it did, and for ours."""

        def __instancecheck__(cls, instance: object) -> bool:
            return isinstance(instance, (plain, Ordered))

    class SimpleQueue(metaclass=Either):
        """Stands for `queue.SimpleQueue`."""

        def __new__(cls) -> Any:
            if current.session is None or lanes.inside() is not None:
                return plain()
            return Ordered()

        __class_getitem__ = plain.__class_getitem__

    Ordered.__name__ = Ordered.__qualname__ = "SimpleQueue"
    SimpleQueue.__module__ = Ordered.__module__ = "_queue"
    SimpleQueue.__doc__ = plain.__doc__
    queue.SimpleQueue = SimpleQueue  # type: ignore[attr-defined]
