"""Steps of moments: each against the one before in its lane, as it is recorded and as it is compared."""

from __future__ import annotations

from collections.abc import Mapping

from lockstep.log.model import Value
from lockstep.session.native.steps import Last, key_of
from lockstep_crewai import layout
from lockstep_crewai.layout import Moment

_NONE = Last(0, {}, b"")


class Steps:
    """The last step of each lane. Not for several threads at once."""

    def __init__(self) -> None:
        self.last: dict[str, Last] = {}
        self.count = 0

    def turn(self) -> None:
        """A turn begins: in each lane its steps are counted anew."""
        for last in self.last.values():
            last.number = 0

    def next(self, moment: Moment) -> tuple[dict[str, Value], Last]:
        """The record of a moment, not hidden, and what it will be the step before with; its position is not known yet,
        and stands for that of the one before."""
        last = self.last.get(moment.lane, _NONE)
        moment = layout.settled(moment, last.channels)
        body = layout.body_of(last.channels if last is not _NONE else None, moment, last.number)
        counted = moment.source == layout.DONE
        return body, Last(last.pos, moment.channels, last.key, last.number + counted)

    def made(self, moment: Moment, next: Last, body: Mapping[str, Value]) -> bytes:
        """The key of a step, by its hidden record; the next one of its lane is made against it."""
        next.key = key_of(next.key, moment.source, moment.name, body)
        self.last[moment.lane] = next
        self.count += 1
        return next.key
