"""The tokens that a crew says it has used: what CrewAI reads, when a crew is done, of counters that its models have.

Crews that run at once, as the inputs of `kickoff_for_each_async`, share them, so what each of them returns has in it
how far the others have come then. So a reading is recorded, and a replay gives it again.
"""

from __future__ import annotations

from functools import wraps
from typing import Any

from crewai import Crew
from crewai.types.usage_metrics import UsageMetrics

from lockstep.session.native import answers
from lockstep_crewai.canonical import inert
from lockstep_crewai.current import scope


def install() -> None:
    """Puts the seam into CrewAI's class, once."""
    plain = Crew.__dict__["calculate_usage_metrics"]
    if not hasattr(plain, "lockstep_plain"):
        made: Any = _counting(plain)
        made.lockstep_plain = plain
        Crew.calculate_usage_metrics = made


def _counting(plain: Any) -> Any:
    @wraps(plain)
    def calculate_usage_metrics(self: Any) -> Any:
        here = scope.get()
        if here is None or here.of != id(self) or answers.within.get() is not None:
            return plain(self)
        counted = plain(self)
        told = here.root.seams.told.counts(here.lane, inert(counted))
        if told is not None:
            counted = self.usage_metrics = UsageMetrics.model_validate(told)
        return counted

    return calculate_usage_metrics
