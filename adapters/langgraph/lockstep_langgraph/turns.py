"""The turn that is on: one native invocation of a graph with its own saver, and who answers the calls in it."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from lockstep.session.call import Call


class Calls(Protocol):
    """Who answers the calls of a turn: a journal that records them, or a record that serves them."""

    def call(self, lane: str, kind: str, within: Call | None = None) -> Call:
        """Begins a call of this lane; `within` is the call whose own code makes it."""
        ...


class Ids(Protocol):
    """Where the ids come from that LangGraph draws in a turn."""

    def draw(self, lane: str) -> str:
        """The next id in this lane, as `uuid4` has them."""
        ...


class Turn(Protocol):
    """What the patches ask of a turn."""

    @property
    def calls(self) -> Calls: ...
    @property
    def journal(self) -> Any: ...
    @property
    def ids(self) -> Ids: ...


current: ContextVar[Turn | None] = ContextVar("lockstep_langgraph_turn", default=None)
