"""Where in a crew or flow a call is made: in which lane, and who answers it."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from lockstep.session import sites
from lockstep.session.call import Call
from lockstep.session.native.answers import Question, ask
from lockstep_crewai.adapter import adapter

if TYPE_CHECKING:
    from lockstep_crewai.wrapping import Root

sites.pass_over(os.path.dirname(__file__))


class Place(msgspec.Struct, frozen=True):
    """A task, a method, or an agent that was kicked off. See `current.place`.

    root  what is wrapped, whose turn is on
    lane  "research/find"
    """

    root: Root
    lane: str

    @property
    def recording(self) -> bool:
        """Whether calls run for real and are recorded, so that nothing of ours may reach the program."""
        return bool(getattr(self.root.seams.calls, "recording", True))

    def asked(self, kind: str, make: Callable[[], Question]) -> Call | None:
        """Begins a call and states what `make` makes of it. None where a fault of ours keeps it from being recorded: it
        runs as without us then. Raises Divergence, Cut and Refusal."""
        seams = self.root.seams
        return ask(seams.calls, self.lane, kind, make, seams.told.fault, native=f"{adapter.name}/{self.lane}")

    def fault(self, where: str, error: BaseException) -> None:
        """Something of ours went wrong with a call that runs for real."""
        self.root.seams.told.fault(where, error)
