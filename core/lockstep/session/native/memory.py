"""A journal without a store: scratch for replays and tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lockstep.log.model import Event, Value
from lockstep.log.names import Rules
from lockstep.session.native.journal import ROOT, Journal
from lockstep.session.native.kept import Kept
from lockstep.session.native.unstored import Unstored


class Memory(Journal):
    """As `Journal`, and nothing of it is kept. `events`: all that was stored so far, in order, with their bodies.

    It has no reader, and its states hold what they hold: `hide` hides nothing.
    """

    def __init__(self, *, branch: str = ROOT, base: int = 0, meta: Mapping[str, Any] | None = None) -> None:
        self._stream = Unstored(branch, base)
        super().__init__(self._stream, Kept(Rules(), None, {}), run="memory", meta=meta or {})

    @property
    def events(self) -> list[Event]:
        self.flush()
        return self._stream.events

    def hide(self, value: Value) -> Value:
        return value

    def reveal(self, value: Value) -> Value:
        return value

    def _branch(self, name: str, at: int, fork: Event) -> Memory:
        made = Memory(branch=name, base=at, meta=self.meta)
        made._stream.append((fork,))
        return made
