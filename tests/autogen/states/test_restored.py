"""A fresh team that gets the state of a step goes on exactly as the recorded one did."""

from __future__ import annotations

import asyncio
from typing import Any

import kept
import pytest
import teams

import lockstep_autogen
from lockstep.testing import Provider
from lockstep_autogen import restoring, states
from lockstep_autogen.layout import MESSAGE, MESSAGES, SELECTED, STOP

EXACT = [
    "round_robin", "capped", "selector", "swarm", "graph", "looping", "nested", "user_proxy", "executor", "streaming",
    "parallel", "structured",
]  # fmt: skip


@pytest.mark.parametrize("name", EXACT)
def test_it_goes_on_from_each_step_as_recorded(name: str, settled: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
    kind = teams.named(name)
    monkeypatch.setattr(teams, "ran", Counted())
    recorded = kept.record(kind)
    ran = [*teams.ran]
    offered = 0
    for step in recorded.steps:
        fresh: Any = kind.make()
        if step.source != MESSAGE or restoring.refusal(fresh, step.channels, consistent=step.consistent):
            continue
        offered += 1
        teams.ran.clear()
        tail, state = asyncio.run(_continued(fresh, step.channels))
        assert state == {name: said for name, said in step.channels.items() if name not in (MESSAGES, SELECTED, STOP)}
        assert _alike(tail, recorded.messages[-len(tail) :])
        again = [*teams.ran]
        assert again == ran[len(ran) - len(again) :]
    assert offered == len([step for step in recorded.steps if step.source == MESSAGE and step.consistent]) - 1


async def _continued(fresh: Any, channels: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    lockstep_autogen.attach(fresh, run="restored")
    await restoring.restore(fresh, channels)
    state = await states.channels(fresh)
    return teams.messages(await teams.running(fresh)), state


def _alike(one: list[Any], other: list[Any]) -> bool:
    """Those who speak at once may do so in another order."""
    return sorted(map(str, one)) == sorted(map(str, other))


class Counted(list[str]):
    """What was asked for real, where its answers are not to say how often."""

    def __len__(self) -> int:
        return 0
