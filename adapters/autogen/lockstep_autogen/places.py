"""Where in a team a call is made: by whom, and who answers it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from lockstep.log.model import Value
from lockstep.session import current as sessions
from lockstep.session.call import Call
from lockstep.session.lanes import NATIVE
from lockstep.session.policy import Declared
from lockstep_autogen.adapter import adapter
from lockstep_autogen.calls import within

if TYPE_CHECKING:
    from lockstep_autogen.attaching import Root


class Question(msgspec.Struct, frozen=True):
    """What a call asks: `key` of it is what has to be the same in a replay."""

    name: str
    request: Value
    key: Value
    declared: Declared | None = None


class Place(msgspec.Struct, frozen=True):
    """An agent of an attached team, or its manager.

    lane  "refund/writer"
    """

    root: Root
    lane: str

    def asked(self, kind: str, make: Callable[[], Question]) -> Call | None:
        """Begins a call and states what `make` makes of it. None where a fault of ours keeps it from being recorded.
        Raises Divergence, Cut and Refusal."""
        told = self.root.seams.told
        call = self.root.seams.calls.call(self.lane, kind, within.get())
        try:
            question = make()
        except Exception as error:
            if not call.live:
                raise
            told.fault(f"a {kind} call", error)
            return None
        # A session notes in which native lane an effect was asked for.
        token = NATIVE.set(f"{adapter.name}/{self.lane}") if sessions.session is not None else None
        try:
            call.ask(question.name, question.request, question.key, declared=question.declared)
        finally:
            if token is not None:
                NATIVE.reset(token)
        return call

    def fault(self, where: str, error: BaseException) -> None:
        """Something of ours went wrong with a call that runs for real."""
        self.root.seams.told.fault(where, error)

    def broke(self, error: BaseException) -> None:
        """A model has failed with this."""
        self.root.broken = error
