"""Threads: lanes for threads and work items, and the order of locks, timed waits and sleeps."""

from __future__ import annotations

from typing import Any

from lockstep.log.model import Value
from lockstep.session.effects import Within
from lockstep.taps.imports import during_import, when_imported
from lockstep.taps.threads import locks, pools, queues, strands, waits

_installed = False


def install() -> None:
    """Patches `threading`, `time.sleep` and, when it is imported, `concurrent.futures`. Once."""
    global _installed
    if _installed:
        return
    _installed = True
    strands.install()
    locks.install()
    waits.install()
    when_imported("queue", queues.install)
    when_imported("concurrent.futures._base", pools.install_futures)
    # The lock of all pools is taken under that of one, which has the order: kept too, each would wait for the other.
    during_import("concurrent.futures.thread", lambda: Within(True))
    when_imported("concurrent.futures.thread", pools.install_pool)


def start(session: Any, facts: Value) -> Value:
    return None


def stop(session: Any) -> None:
    pass
