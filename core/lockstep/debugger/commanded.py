"""Steps of a workflow, as their records tell them: what came, and what the code asked for then.

Such a step has no state that could be shown: all that its program knows is what it was given and answered. Its record
has `jobs` and `commands` in the place of channels, see `lockstep.log.checkpoints`. Read from inert data, as all of a
native run is: neither the framework nor its adapter is needed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec.structs import replace

from lockstep.debugger import calls, outcomes
from lockstep.log import checkpoints
from lockstep.log.drafts import Effect, Step
from lockstep.log.model import Kind, Status
from lockstep.log.native import ATTEMPT, END
from lockstep.log.timeline import Timeline


class Commanded(msgspec.Struct, frozen=True):
    """What such a step says. `clock`: the program's own, in ns since the epoch; 0 where it is not told. `notes`: what
    failed before it got there, and what it would not take."""

    jobs: tuple[str, ...]
    commands: tuple[str, ...]
    clock: int = 0
    notes: tuple[str, ...] = ()


class Attempt(msgspec.Struct, frozen=True, omit_defaults=True):
    """One of the times that a call was tried.

    status      "" while it is under way, or where its worker was lost; "pending" where somebody else was to answer
    duration    in ns
    heartbeats  how many it sent, and the last one's details
    given, returned  the types of what it was called with and of what it answered, where its adapter says these
    """

    address: str
    name: str
    status: str
    duration: int | None
    error: str = ""
    heartbeats: int = 0
    details: Any = None
    given: tuple[str, ...] = ()
    returned: str = ""


def read(timeline: Timeline, step: Step) -> Commanded | None:
    """What a step says; None where it is of another sort."""
    if not timeline.is_native or step.kind == END or step.seq < 0:
        return None
    reader = timeline.reader
    commands = reader.field(step.stream, step.seq, checkpoints.COMMANDS)
    if not isinstance(commands, list):
        return None
    jobs = reader.field(step.stream, step.seq, checkpoints.JOBS)
    clock = reader.field(step.stream, step.seq, checkpoints.CLOCK)
    return Commanded(
        tuple(map(str, jobs)) if isinstance(jobs, list) else (), tuple(map(str, commands)),
        clock if isinstance(clock, int) else 0, tuple(_notes(timeline, step)),
    )  # fmt: skip


def _notes(timeline: Timeline, step: Step) -> Iterator[str]:
    failed = timeline.reader.field(step.stream, step.seq, checkpoints.FAILED)
    for one in failed if isinstance(failed, list) else ():
        if isinstance(one, dict) and (causes := calls.causes(one.get("failure"))):
            times = one.get("times")
            how = f"failed {times} times before" if isinstance(times, int) and times > 1 else "failed once before"
            yield f"{how}: {calls.exception(causes[-1])}"
    rejected = timeline.reader.field(step.stream, step.seq, checkpoints.REJECTED)
    for one in rejected if isinstance(rejected, list) else ():
        yield f"rejected {one!s}"


def failure(timeline: Timeline, effect: Effect) -> list[str]:
    """The error of an effect and what caused it, the first cause last; "" where there is none."""
    failed = effect.status is Status.ERROR
    return [calls.exception(form) for form in calls.causes(timeline.outcome(effect) if failed else None)] or [""]


def _outlived(timeline: Timeline, child: Effect, since: int) -> Effect:
    """An attempt with what came of it once its call had its answer: a workflow need not wait for what it cancels."""
    parts = list(child.parts)
    for seq, event in timeline.reader.heads(child.stream, since):
        if event.of != child.begin.pos:
            continue
        if event.kind is Kind.END:
            return replace(child, parts=tuple(parts), end_seq=seq, end=event)
        if seq not in parts:
            parts.append(seq)
    return replace(child, parts=tuple(parts))


def attempts(timeline: Timeline, effect: Effect, address: str) -> Iterator[Attempt]:
    """The attempts of an effect with that address, in order."""
    for child in effect.children:
        if child.kind != ATTEMPT:
            continue
        if child.end is None and effect.end is not None:
            child = _outlived(timeline, child, effect.end_seq)
        beats = len(child.parts)
        yield Attempt(
            address=f"{address}/{child.number}", name=child.name,
            status=child.end.name or str(child.end.what) if child.end is not None else "", duration=child.duration,
            error=failure(timeline, child)[-1],
            heartbeats=beats,
            details=outcomes.to_json(timeline.reader.body(child.stream, child.parts[-1])) if beats else None,
            given=tuple(map(str, _field(timeline.request(child), "given") or ())),
            returned=str(_field(timeline.outcome(child), "returned") or ""),
        )  # fmt: skip


def _field(said: Any, name: str) -> Any:
    return said.get(name) if isinstance(said, dict) else None
