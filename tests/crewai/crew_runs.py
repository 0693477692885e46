"""Records crews in the default store, and stops the provider: what is replayed then can ask nobody."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import crews
import pytest

import lockstep_crewai
from lockstep.log.store import open_store
from lockstep.log.timeline import Effect, Step, Timeline, resolve
from lockstep.testing import Provider

type Command = Callable[..., str]  # the words of one of Lockstep's commands, and what it prints

NOWHERE = "http://127.0.0.1:9/v1"


def recorded(kind: crews.Kind) -> tuple[str, Any]:
    """The run that one of a kind is recorded as, and what it returned."""
    result = kind.how(lockstep_crewai.wrap(kind.make()))
    return f"crewai/{kind.run}", result


def silence(provider: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on no request is answered, and no tool has run."""
    provider.stop()
    monkeypatch.setenv("OPENAI_BASE_URL", NOWHERE)
    crews.ran.clear()


def timeline[T](address: str, read: Callable[[Timeline], T]) -> T:
    with open_store(None) as store:
        return read(resolve(store, address).timeline)


def steps(address: str) -> tuple[Step, ...]:
    return timeline(address, lambda timeline: timeline.steps)


def calls(address: str, kind: str) -> list[tuple[str, Effect]]:
    """The calls of a kind, by their addresses."""
    return [
        (f"{step.number}.{effect.number}", effect)
        for step in steps(address) for effect in step.effects if effect.kind == kind
    ]  # fmt: skip


def is_again(replay: Any, result: Any) -> None:
    """Fails unless a replay was identical, and returned what the recorded one did."""
    assert replay.divergence is None, replay.divergence
    assert replay.identical, replay.report
    assert crews.alike(replay.result) == crews.alike(result)
    assert replay.report.live_calls == 0
