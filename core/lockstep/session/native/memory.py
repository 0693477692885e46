"""A journal without a store: scratch for replays and tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lockstep.log import untapped
from lockstep.log.model import Event, Value
from lockstep.log.names import Rules
from lockstep.session.native.journal import ROOT, Journal
from lockstep.session.native.kept import Kept
from lockstep.session.native.shared import Unstored
from lockstep.session.policy import NO_RULES, EffectRules


class Memory(Journal):
    """As `Journal`, and nothing of it is kept. `events`: all that was stored so far, in order, with their bodies.

    It has no reader, and its states hold what they hold: `hide` hides nothing.
    """

    def __init__(
        self, *, branch: str = ROOT, base: int = 0, meta: Mapping[str, Any] | None = None, rules: EffectRules = NO_RULES
    ) -> None:  # fmt: skip
        self._stream = Unstored(base)
        super().__init__(
            self._stream, Kept(Rules(), None, {}), run="memory", branch=branch, meta=meta, wall=untapped.time_ns(),
            rules=rules,
        )  # fmt: skip

    @property
    def events(self) -> list[Event]:
        self.flush()
        return self._stream.events

    def hide(self, value: Value) -> Value:
        return value

    def reveal(self, value: Value) -> Value:
        return value

    def _branched(self, name: str, at: int, fork: Event) -> Memory:
        made = Memory(branch=name, base=at, meta=self.meta, rules=self.effect_rules)
        made._write(fork)
        return made
