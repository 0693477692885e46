"""Where in a team a call is made: by whom, and who answers it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from lockstep.session.call import Call
from lockstep.session.native.answers import Question, ask
from lockstep_autogen.adapter import adapter

if TYPE_CHECKING:
    from lockstep_autogen.attaching import Root


class Place(msgspec.Struct, frozen=True):
    """An agent of an attached team, or its manager.

    lane  "refund/writer"
    """

    root: Root
    lane: str

    def asked(self, kind: str, make: Callable[[], Question]) -> Call | None:
        """Begins a call and states what `make` makes of it. None where a fault of ours keeps it from being recorded.
        Raises Divergence, Cut and Refusal."""
        seams = self.root.seams
        return ask(seams.calls, self.lane, kind, make, seams.told.fault, native=f"{adapter.name}/{self.lane}")

    def fault(self, where: str, error: BaseException) -> None:
        """Something of ours went wrong with a call that runs for real."""
        self.root.seams.told.fault(where, error)

    def broke(self, error: BaseException) -> None:
        """A model has failed with this."""
        self.root.broken = error
