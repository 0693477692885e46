"""What a replay or fork of a framework's own run is refused for, in the same words by each adapter."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from lockstep.adapter import ReplayOptions
from lockstep.adapter.native import check_range, no_loop
from lockstep.errors import Code, TargetError


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"turn": 0}, "langgraph/t has no turn 0: it has 2"),
        ({"turn": 3}, "langgraph/t has no turn 3: it has 2"),
        ({"until": -1}, "langgraph/t has no step -1: its last is 4"),
        ({"turn": 2, "until": 5}, "langgraph/t has no step 5: its last is 4"),
    ],
)
def test_a_turn_or_step_that_is_not_there_is_refused_with_what_there_is(asked: dict[str, Any], told: str) -> None:
    with pytest.raises(TargetError) as raised:
        check_range(ReplayOptions(store="", **asked), "langgraph/t", turns=2, steps=5)
    assert (raised.value.code, raised.value.message) == (Code.BAD_TARGET, told)


@pytest.mark.parametrize("asked", [{}, {"turn": 1}, {"turn": 2, "until": 4}, {"until": 0}])
def test_those_that_are_there_are_not_refused(asked: dict[str, Any]) -> None:
    check_range(ReplayOptions(store="", **asked), "langgraph/t", turns=2, steps=5)


def test_what_needs_a_loop_of_its_own_is_refused_where_one_runs_with_what_to_await() -> None:
    async def under_a_loop() -> str:
        with pytest.raises(TargetError) as raised:
            no_loop("teams run in an event loop", "areplay")
        return raised.value.message

    no_loop("teams run in an event loop", "areplay")
    told = "teams run in an event loop, and an event loop is running here: await lockstep.areplay instead"
    assert asyncio.run(under_a_loop()) == told
