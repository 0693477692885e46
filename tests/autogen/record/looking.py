"""What a test reads of a team's run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from lockstep.log.checkpoints import States
from lockstep.log.drafts import Effect, Step
from lockstep.log.model import Event, Kind
from lockstep.log.store import open_store
from lockstep.log.timeline import Timeline


class Seen:
    """A run, read."""

    def __init__(self, timeline: Timeline) -> None:
        self.timeline = timeline
        self.steps: tuple[Step, ...] = timeline.steps
        self._states = States(timeline.reader)

    @property
    def names(self) -> list[str]:
        """Who spoke in each step, in order; what closes the run left out."""
        return [step.name for step in self.steps if step.kind != "end"]

    def state(self, number: int) -> dict[str, Any]:
        """The channels of a step."""
        pos = next(event.pos for seq, event in self.heads() if seq == self.steps[number].seq)
        return self._states.at(pos)

    def body(self, number: int) -> dict[str, Any]:
        """The record of a step."""
        body: Any = self.timeline.reader.body(self.timeline.reader.main, self.steps[number].seq)
        return body  # type: ignore[no-any-return]

    def heads(self) -> list[tuple[int, Event]]:
        return list(self.timeline.reader.heads(self.timeline.reader.main))

    def effects(self, number: int | None = None) -> list[Effect]:
        steps = self.steps if number is None else (self.steps[number],)
        return [effect for step in steps for effect in step.effects]

    def calls(self, number: int | None = None) -> list[tuple[str, str, str]]:
        """(lane, kind, name) of each effect, in the order in which they were over."""
        return [(each.lane, each.kind, each.name) for each in self.effects(number)]

    def turns(self) -> list[tuple[str, str]]:
        """(entry, how it ended) of each turn; "" where it has no end."""
        return [(turn.name, turn.end.what if turn.end is not None else "") for turn in self.timeline.turns]

    def faults(self) -> list[str]:
        """What could not be recorded, as the log has it."""
        found: list[str] = []
        for seq, event in self.heads():
            if event.kind is Kind.CAUSE and event.what == "faults":
                body: Any = self.timeline.reader.body(self.timeline.reader.main, seq)
                found += body["faults"]
        return found


@contextmanager
def run(name: str) -> Iterator[Seen]:
    """A run of the store that the environment names."""
    with open_store(None) as store:
        yield Seen(Timeline(store.run(name)))


def runs() -> dict[str, str]:
    """The runs of the store, with their states."""
    with open_store(None) as store:
        return {info.name: info.state.value for info in store.runs()}
