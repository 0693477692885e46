"""What a node may not do in a replay at call depth: reach outside past LangChain (`lockstep.session.native.guard`)."""

from __future__ import annotations

from typing import Any

from lockstep.errors import Code
from lockstep.session.native import guard
from lockstep.session.native.guard import Watched
from lockstep_langgraph import turns

_HINT = (
    "nodes run in a replay at call depth, and what they do outside of LangChain's models and tools is not recorded "
    "without a session: replay at node depth, or record with lockstep record"
)


def install() -> None:
    """Begins to watch."""
    guard.watch(_running)


def _running() -> Watched | None:
    replay = getattr(turns.running(), "replay", None)
    return None if replay is None else _Node(replay)


class _Node:
    """The code of a node that runs in a replay."""

    def __init__(self, replay: Any) -> None:
        self._replay = replay

    def reached(self, kind: str, name: str, source: str) -> None:
        reason = f"not covered: {kind} {name} would be reached for real; {_HINT}"
        self._replay.stops(Code.NOT_COVERED, reason, kind, name, source)
