"""A fork at every step of an agent, with an edit at each: the agent gets it, and only what follows is live."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import agents
import pytest
from agents import World

import lockstep
from lockstep.log.store import open_store
from lockstep.log.timeline import Timeline

STEPS = 25
EACH = 6  # of three lanes
EDITED = -7


def recorded(path: Path, agent: Callable[[], Any]) -> tuple[str, Any]:
    """Records the agent: the store and what the agent found."""
    store = str(path / "store.db")

    @lockstep.record("agent", store=store)
    def run() -> Any:
        return agent()

    return store, run()


def closing(store: str) -> list[tuple[str, int]]:
    """Lane and number of the look that closed each step, from step 1."""
    with open_store(store) as opened:
        timeline = Timeline(opened.run("agent"))
        found = []
        for step in timeline.steps[1:-1]:
            request: Any = timeline.request(step.effects[0])
            found.append((request["arguments"]["lane"], request["arguments"]["number"]))
        return found


def test_each_answer_of_25_steps_is_edited_and_reaches_the_agent(tmp_path: Path) -> None:
    world = World()
    agent = agents.one_by_one(world, STEPS)
    store, found = recorded(tmp_path, agent)
    for step in range(1, STEPS + 1):
        world.forget()
        run = lockstep.fork(f"agent:{step}", agent, edits={f"{step}:value": EDITED}, store=store)
        assert run.state == "complete"
        assert run.result[:step] == [*found[: step - 1], EDITED]
        assert not set(run.result[step:]) & set(found)
        assert world.looks == [("main", number) for number in range(step, STEPS)]
        assert (run.live, run.edited, run.reused, run.served) == (STEPS - step, 1, 0, 0)
        first = lockstep.diff("agent", run.address, store=store).first
        assert first is not None
        assert (first.address_a, first.path, first.b) == (f"agent:{step}", "answer.value", str(EDITED))
        if step % 6 == 1:
            replayed = lockstep.replay(run.address, agent, store=store)
            assert replayed.identical
            assert replayed.result == run.result


@pytest.mark.parametrize("lanes", [agents.three_lanes, agents.three_threads])
def test_each_answer_of_three_lanes_is_edited_and_reaches_the_agent(
    lanes: Callable[[World, int], Callable[[], Any]], tmp_path: Path
) -> None:
    world = World()
    agent = lanes(world, EACH)
    store, found = recorded(tmp_path, agent)
    order = closing(store)
    assert len(order) == 3 * EACH
    for step, (lane, number) in enumerate(order, 1):
        world.forget()
        run = lockstep.fork(f"agent:{step}", agent, edits={f"{step}:value": EDITED}, store=store)
        assert run.state == "complete"
        assert run.result[lane][number] == EDITED
        before = set(order[: step - 1])
        for name, values in run.result.items():
            same = [value == found[name][at] for at, value in enumerate(values)]
            assert same == [(name, at) in before for at in range(EACH)]
        assert sorted(world.looks) == sorted(set(order) - before - {(lane, number)})
        first = lockstep.diff("agent", run.address, store=store).first
        assert first is not None
        assert first.address_a == f"agent:{step}"
        if step % 4 == 1:
            assert lockstep.replay(run.address, agent, store=store).identical


def test_no_payment_is_made_by_a_fork(tmp_path: Path) -> None:
    world = World()

    def agent() -> int:
        total: int = sum(world.look("main", number)["value"] for number in range(3))
        world.pay(100)
        world.pay(total)
        return total

    store, total = recorded(tmp_path, agent)
    assert world.paid == [100, total]
    for step in range(4):
        world.forget()
        with pytest.raises(lockstep.Refused) as refused:
            lockstep.fork(f"agent:{step}", agent, edits={f"{step}:value": EDITED} if step else {}, store=store)
        assert world.paid == []
        assert refused.value.code == "LS301"
        assert refused.value.run.state == "refused"
        # The one that equals a recorded call is answered by that, and the other one stopped.
        assert refused.value.run.reused == 1
        kept = lockstep.replay(refused.value.run.address, agent, store=store)
        assert kept.identical
        assert kept.report.cut
    allowed = lockstep.fork("agent:2", agent, live=["pay"], store=store)
    assert world.paid == [100, allowed.result]
