"""Which cuts of a steady search are under way, and for how long: what `parting` decides by."""

from __future__ import annotations

import time

from lockstep.debugger import parting
from lockstep.debugger.parting import Course
from lockstep.debugger.search import Search


class Flying:
    """The probes that a search has under way, each at another cut."""

    def __init__(self, course: Course) -> None:
        self._course = course
        self._since: dict[int, float] = {}
        # Seconds for a unit of cost, by the probes that were run.
        self._spent = self._worth = 0.0

    def wanted(self, known: Search, jobs: int) -> list[int]:
        """The cuts that are to be under way now, and are from now on; the others are not any more."""
        now = time.monotonic()
        pace = self._spent / self._worth if self._worth else 0.0
        left = {
            cut: max(0.0, self._course.costs[cut] - ((now - since) / pace if pace else 0.0))
            for cut, since in self._since.items()
        }
        found = parting.at_once(known, left, jobs, self._course) if jobs > 0 else []
        self._since = {cut: self._since.get(cut, now) for cut in found}
        return found

    def ended(self, cut: int, found: bool) -> None:
        """One has ended. `found`: it was run before, so that the time says nothing."""
        since = self._since.pop(cut, None)
        if since is not None and not found:
            self._spent += time.monotonic() - since
            self._worth += self._course.costs[cut]
