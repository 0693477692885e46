"""Steps in which somebody of a team spoke: what was said, why that one spoke, and why the team stopped.

Their records have what was said in a channel `messages`, who was chosen to say it in `selected`, and the reason to stop
in `stop`, see `lockstep.log.checkpoints`. Read from inert data: neither the framework nor its adapter is needed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from lockstep.debugger import outcomes
from lockstep.log import checkpoints, threads
from lockstep.log.native import END
from lockstep.log.timeline import Effect, Step, Timeline

MESSAGES, SELECTED, STOP, HEARD = "messages", "selected", "stop", "heard"
CHANNELS = frozenset({MESSAGES, SELECTED, STOP, HEARD})  # that are no part of what the team remembers
MANAGER = "manager"  # the last part of the lane of who chooses


class Spoken(msgspec.Struct, frozen=True):
    """What such a step says.

    messages  {"source", "content", "type", "inner": […]}, as their framework has them
    selected  who was chosen to speak; () where nobody was, or who had spoken before
    chosen    numbers of the calls by which they were chosen: of a selecting or orchestrating model
    stop      why the team stopped here, "" where it went on
    """

    messages: tuple[dict[str, Any], ...]
    selected: tuple[str, ...]
    chosen: tuple[str, ...]
    stop: str


def is_said(timeline: Timeline, step: Step) -> bool:
    """Whether a step is of this sort."""
    if step.kind == END or step.seq < 0:
        return False
    return isinstance(timeline.reader.field(step.stream, step.seq, checkpoints.WAS), list)


def read(timeline: Timeline, step: Step) -> Spoken | None:
    """What a step says; None where it is of another sort."""
    if not is_said(timeline, step):
        return None
    body = timeline.reader.body(step.stream, step.seq)
    changes: Any = body.get(checkpoints.CHANNELS) if isinstance(body, dict) else None
    said = changes if isinstance(changes, Mapping) else {}
    messages, selected, stop = (_new(said.get(name)) for name in (MESSAGES, SELECTED, STOP))
    if messages is None:  # the same words as before: the record does not repeat them
        messages = outcomes.to_json(_state(timeline, step).get(MESSAGES))
    chosen = [f".{each.number}" for each in step.effects if _lane(timeline, each).rpartition("/")[2] == MANAGER]
    return Spoken(
        tuple(each for each in messages if isinstance(each, dict)) if isinstance(messages, list) else (),
        tuple(map(str, selected)) if isinstance(selected, list) else (),
        tuple(chosen),
        stop if isinstance(stop, str) else "",
    )


def _lane(timeline: Timeline, effect: Effect) -> str:
    """Who of the team made a call: in a session's run that is beside it, and its lane is a strand of the program."""
    if timeline.is_native:
        return effect.lane
    found = timeline.reader.field(effect.stream, effect.seq, threads.THREAD)
    return found if isinstance(found, str) else ""


def _state(timeline: Timeline, step: Step) -> checkpoints.State:
    event = next(iter(timeline.reader.heads(step.stream, step.seq, step.seq + 1)))[1]
    return checkpoints.States(timeline.reader, step.stream).at(event.pos)


def _new(change: Any) -> Any:
    """A channel's value, where the record says it without the one before."""
    return outcomes.to_json(change.get(checkpoints.VALUE)) if isinstance(change, dict) else None
