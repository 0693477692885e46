"""Records teams in the default store, and stops the provider: what is replayed then can ask nobody."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import teams

import lockstep_autogen
from lockstep.log.store import open_store
from lockstep.log.timeline import Effect, Step, Timeline, resolve
from lockstep.testing import Provider

NOWHERE = "http://127.0.0.1:9/v1"


def recorded(kind: teams.Kind) -> tuple[str, Any]:
    """The run that a team of a kind is recorded as, and what the team returned."""
    team: Any = lockstep_autogen.attach(kind.make())
    result = teams.run(team, kind.asked())
    return f"autogen/{team.name}", result


async def turns(team: Any, tasks: Sequence[Any]) -> list[Any]:
    """Runs a team once for each task, in one loop."""
    return [await teams.running(team, task) for task in tasks]


def silence(provider: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on no request is answered, and no tool has run."""
    provider.stop()
    monkeypatch.setenv("OPENAI_BASE_URL", NOWHERE)
    teams.ran.clear()


def steps(address: str) -> tuple[Step, ...]:
    with open_store(None) as store:
        return resolve(store, address).timeline.steps


def timeline[T](address: str, read: Callable[[Timeline], T]) -> T:
    with open_store(None) as store:
        return read(resolve(store, address).timeline)


def calls(address: str, kind: str) -> list[tuple[str, Effect]]:
    """The calls of a kind, by their addresses."""
    return [
        (f"{step.number}.{effect.number}", effect)
        for step in steps(address) for effect in step.effects if effect.kind == kind
    ]  # fmt: skip


def is_again(replay: Any, result: Any) -> None:
    """Fails unless a replay was identical, and returned what the recorded team did."""
    assert replay.divergence is None, replay.divergence
    assert replay.identical, replay.report
    assert teams.messages(replay.result) == teams.messages(result)
    assert replay.result.stop_reason == result.stop_reason
    assert replay.report.live_calls == 0


def first_other(was: Any, now: Any) -> int:
    """The number of the first message in which two results differ; that behind the last, where none does."""
    before, after = teams.messages(was), teams.messages(now)
    both = zip(before, after, strict=False)
    return next((at for at, (one, other) in enumerate(both) if one != other), min(len(before), len(after)))


def with_prompt(make: Callable[[], Any], name: str, text: str) -> Callable[[], Any]:
    """A factory of the same team in which one agent is told something else."""
    from autogen_core.models import SystemMessage

    def made() -> Any:
        team = make()
        agent = next(each for each in team._participants if each.name == name)
        agent._system_messages = [SystemMessage(content=text)]
        return team

    return made


def alone[T](running: Callable[[], Any]) -> T:
    """What a coroutine function gives, under a running loop; nothing of it is left in the loop."""

    async def run() -> T:
        result: T = await running()
        assert asyncio.all_tasks() == {asyncio.current_task()}
        return result

    return asyncio.run(run())
