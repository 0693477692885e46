"""A fresh team that gets the state of a step goes on exactly as the recorded one did."""

from __future__ import annotations

import asyncio
import re
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
def test_it_goes_on_from_each_step_as_recorded(name: str, settled: Provider) -> None:
    kind = teams.named(name)
    recorded = kept.record(kind)
    cuts = [step for step in recorded.steps if step.source == MESSAGE and step.consistent]
    for step, ran in zip(cuts[:-1], recorded.ran, strict=False):
        fresh: Any = kind.make()
        assert not restoring.refusal(fresh, step.channels)
        teams.ran[:] = ran
        tail, state = asyncio.run(_continued(fresh, step.channels))
        assert state == {name: said for name, said in step.channels.items() if name not in (MESSAGES, SELECTED, STOP)}
        assert _alike(tail, recorded.messages[-len(tail) :])
    assert "nothing is left of its run" in restoring.refusal(kind.make(), cuts[-1].channels) or name == "graph"


async def _continued(fresh: Any, channels: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    lockstep_autogen.attach(fresh, run="restored")
    await restoring.restore(fresh, channels)
    state = await states.channels(fresh)
    return teams.messages(await teams.running(fresh)), state


def _alike(one: list[Any], other: list[Any]) -> bool:
    """Those who speak at once may do so in another order, and then who hears them is asked something else."""
    return sorted(map(_unordered, one)) == sorted(map(_unordered, other))


def _unordered(message: dict[str, Any]) -> str:
    return re.sub(r"\(\d+\)", "", str(message)) if message["source"] == "joiner" else str(message)
