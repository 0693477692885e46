"""What a fork's branch has, read from the store."""

from __future__ import annotations

from typing import Any

import crew_runs as runs
import crews

import lockstep
from lockstep.log import checkpoints
from lockstep.log.model import Kind
from lockstep.log.timeline import Effect, Step

_COUNTED = ("token_usage", "usage_metrics")  # by CrewAI, of a model that copies of a crew share: a race


def done(address: str) -> list[Step]:
    """The steps of a run that a task, a method or an agent has made."""
    return [step for step in runs.steps(address) if step.kind == "checkpoint"]


def outputs(address: str) -> dict[tuple[str, str], Any]:
    """What each step came to, by lane and name."""

    def read(timeline: Any) -> dict[tuple[str, str], Any]:
        states = checkpoints.States(timeline.reader)
        heads = [event for _, event in timeline.reader.heads(timeline.stream.id) if event.kind is Kind.STEP]
        return {(event.lane, event.name): states.at(event.pos).get("output") for event in heads}

    return runs.timeline(address, read)


def answers(address: str) -> list[Any]:
    """What every call of a branch was answered."""
    return runs.timeline(
        address, lambda timeline: [timeline.outcome(effect) for step in timeline.steps for effect in step.effects]
    )


def outcome(address: str, effect: Effect) -> Any:
    return runs.timeline(address, lambda timeline: timeline.outcome(effect))


def shared(address: str) -> int:
    """The position of the last event that a branch shares."""
    return runs.timeline(address, lambda timeline: timeline.reader.branches[-1].pos)


def answered_by(address: str, step: Step) -> list[Effect]:
    """The calls of a run that had been answered when a step closed."""

    def read(timeline: Any) -> list[Effect]:
        heads = timeline.reader.heads(timeline.stream.id, step.seq, step.seq + 1)
        pos = next(iter(heads))[1].pos
        effects = [effect for each in timeline.steps for effect in each.effects]
        return [effect for effect in effects if effect.end is not None and effect.end.pos < pos]

    return runs.timeline(address, read)


def asked_past(address: str, kind: str) -> list[str]:
    """The calls of a branch that ran for real."""
    left = shared(address)
    return [
        at for at, effect in runs.calls(address, kind)
        if effect.begin.pos > left and effect.end is not None and not effect.end.name
    ]  # fmt: skip


def is_again(fork: Any, kind: crews.Kind) -> None:
    """Fails unless a fork's branch is replayed as it was."""
    replay = lockstep.replay(fork.address, kind.make)
    assert replay.divergence is None, replay.divergence
    assert replay.identical, replay.report
    assert _alike(replay.result) == _alike(fork.result)
    assert replay.report.live_calls == 0


def _alike(result: Any) -> Any:
    found = crews.alike(result)
    return (
        [{name: value for name, value in each.items() if name not in _COUNTED} for each in found]
        if isinstance(found, list)
        else found
    )
