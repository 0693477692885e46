"""Reads what was recorded of crews."""

from __future__ import annotations

from typing import Any

import crew_runs

from lockstep.log.checkpoints import States
from lockstep.log.model import Event, Kind
from lockstep.log.steps import TURN


def events(run: str, kind: Kind) -> list[tuple[Event, Any]]:
    """The events of a kind, with their bodies."""

    def read(timeline: Any) -> list[tuple[Event, Any]]:
        reader = timeline.reader
        found = [(seq, event) for seq, event in reader.heads(reader.main) if event.kind is kind]
        return [(event, reader.body(reader.main, seq)) for seq, event in found]

    return crew_runs.timeline(run, read)


def steps(run: str) -> list[str]:
    """The lanes in which the steps ran; of those that begin a turn, that of what was kicked off."""
    return [
        event.lane if event.what == "input" else f"{event.lane}/{event.name}" for event, _ in events(run, Kind.STEP)
    ]


def state(run: str, number: int) -> dict[str, Any]:
    """The channels of a step."""

    def read(timeline: Any) -> dict[str, Any]:
        steps = [event for _, event in timeline.reader.heads(timeline.reader.main) if event.kind is Kind.STEP]
        return dict(States(timeline.reader).at(steps[number].pos))

    return crew_runs.timeline(run, read)


def lanes(run: str) -> list[str]:
    """The lanes of its calls, in the order of their first."""
    return list(dict.fromkeys(event.lane for event, _ in events(run, Kind.BEGIN) if event.what != TURN))


def turns(run: str) -> list[tuple[str, str, Any]]:
    """Of each turn its entry, how it ended ("" where it did not) and what it was given."""
    ends = {event.of: event.what for event, _ in events(run, Kind.END)}
    return [
        (event.name, str(ends.get(event.pos, "")), body["request"])
        for event, body in events(run, Kind.BEGIN)
        if event.what == TURN
    ]


def faults(run: str) -> list[str]:
    """What could not be recorded, as the run says it."""
    return [
        fault for event, body in events(run, Kind.CAUSE) if event.what == "faults" for fault in body["faults"]
    ]  # fmt: skip
