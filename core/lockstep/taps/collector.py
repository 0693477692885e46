"""The cyclic garbage collector: what it runs is nobody's call.

A collection comes when enough objects were made, which a replay does at other moments than its
recording. It runs finalizers: a half-read stream of the OpenAI SDK is a cycle, so it is closed by the
collector, which reads the clock (httpx keeps `elapsed`); urllib3's pools empty a queue. Such reads,
locks and calls belong to no lane. What is freed by its last reference stays the program's: that
moment is in its code.
"""

from __future__ import annotations

import gc
from functools import partial
from operator import methodcaller
from typing import Any

from lockstep.log.model import Value
from lockstep.session.lanes import COLLECTING


class _Phases:
    """What is done at a collection's two ends, without a line of Python.

    A signal that comes during a collection is handled by the next Python code that runs: in a callback
    of ours, what its handler raises (Ctrl-C, a time limit) would be thrown away by the collector.
    """

    __slots__ = ("over",)
    over: Any
    start = property(COLLECTING.set)
    stop = property(methodcaller("over"))

    def __init__(self) -> None:
        self.over = partial(COLLECTING.set, None)


_collection: Any = partial(getattr, _Phases())  # is called with the phase's name and a default


def install() -> None:
    """Nothing to patch."""


def start(session: Any, facts: Value = None) -> Value:
    """Watches collections from now on. A replay needs no facts of them."""
    if _collection not in gc.callbacks:
        gc.callbacks.append(_collection)
    return None


def stop(session: Any) -> None:
    """Lets the collector be."""
    if _collection in gc.callbacks:
        gc.callbacks.remove(_collection)
