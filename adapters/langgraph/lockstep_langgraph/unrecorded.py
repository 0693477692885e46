"""The store that a graph has in a replay (`compile(store=…)`): never the program's own.

What a graph keeps across threads is not recorded. One that was kept in memory began empty in the recorded process, and
is filled again by the turns that are replayed. Any other is asked for nothing: its answers are not known, and what
nodes put would be put for real.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore

from lockstep.errors import Code
from lockstep.session import sites
from lockstep_langgraph import turns


def in_place_of(store: Any) -> Any:
    """The store to replay with, None where the graph has none."""
    if store is None:
        return None
    if type(store) is InMemoryStore:
        index: Any = getattr(store, "index_config", None)
        return InMemoryStore(index=index)
    return Unrecorded(type(store).__name__)


class Unrecorded(BaseStore):
    """Stops a replay that asks it."""

    def __init__(self, name: str) -> None:
        self._name = name

    def batch(self, ops: Iterable[Any]) -> list[Any]:
        replay = getattr(turns.running(), "replay", None)
        reason = (
            f"not covered: the graph's store ({self._name}) is not recorded without a session: replay at node depth, "
            "or record with lockstep record"
        )
        if replay is None:
            raise RuntimeError(reason)
        replay.stops(Code.NOT_COVERED, reason, "store", self._name, sites.site(2))
        raise AssertionError("a replay that is stopped goes on")

    async def abatch(self, ops: Iterable[Any]) -> list[Any]:
        return self.batch(ops)
