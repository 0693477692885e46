"""The cyclic garbage collector: what it runs is nobody's call.

A collection comes when enough objects were made, which a replay does at other moments than its
recording. It runs finalizers: a half-read stream of the OpenAI SDK is a cycle, so it is closed by the
collector, which reads the clock (httpx keeps `elapsed`); urllib3's pools empty a queue. Such reads,
locks and calls belong to no lane. What is freed by its last reference stays the program's: that
moment is in its code.
"""

from __future__ import annotations

import gc
from contextvars import Token
from typing import Any

from lockstep.log.model import Value
from lockstep.session import current
from lockstep.session.lanes import INSIDE, leave

# Of the collection under way: there is never more than one, and it begins and ends in one context.
_token: Token[Any] | None = None


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


def _collection(phase: str, info: dict[str, int]) -> None:
    global _token
    if phase == "start":
        _token = INSIDE.set(True) if current.session is not None else None
    elif _token is not None:
        token, _token = _token, None
        leave(token)
