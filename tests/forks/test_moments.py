"""The moment in which a fork goes live: what goes on from the record, and what begins anew."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
from agents import World

import lockstep
from lockstep.log.store import open_store
from lockstep.log.timeline import Timeline


def record(store: str, agent: Callable[[], Any]) -> Any:
    return lockstep.record("agent", store=store)(agent)()


def assert_replays(run: lockstep.Run, agent: Callable[[], Any], store: str) -> None:
    replayed = lockstep.replay(run.address, agent, store=store)
    assert replayed.divergence is None
    assert replayed.identical
    assert replayed.result == run.result


def step_of(store: str, name: str) -> int:
    """The step that the call of this name closed."""
    with open_store(store) as opened:
        steps = Timeline(opened.run("agent")).steps
    return next(step.number for step in steps if step.name == name)


def test_clocks_go_on_the_wall_clock_jumps_to_now_and_draws_are_those_of_the_run(world: World, store: str) -> None:
    def agent() -> dict[str, float]:
        found = {
            "wall": time.time(),
            "steady": time.monotonic(),
            "exact": time.perf_counter(),
            "drawn": random.random(),
        }
        world.look("main", 0)
        return found | {
            "wall after": time.time(), "steady after": time.monotonic(), "exact after": time.perf_counter(),
            "drawn after": random.random(),
        }  # fmt: skip

    recorded = record(store, agent)
    now = time.time()
    run = lockstep.fork("agent:1", agent, store=store)
    for clock in ("wall", "steady", "exact", "drawn", "drawn after"):
        assert run.result[clock] == recorded[clock]
    assert run.result["wall after"] >= now
    assert 0 <= run.result["steady after"] - run.result["steady"] < 30
    assert 0 <= run.result["exact after"] - run.result["exact"] < 30
    assert_replays(run, agent, store)


def test_a_call_in_flight_at_the_cut_is_made_anew_and_one_that_comes_early_waits(world: World, store: str) -> None:
    slow = asyncio.Event

    async def agent() -> list[Any]:
        done = slow()

        @lockstep.tool(effect="read")
        async def long(number: int) -> int:
            world.looks.append(("long", number))
            await done.wait()
            return random.SystemRandom().randrange(10**9)

        async def quick() -> int:
            value: int = (await world.alook("quick", 0))["value"]
            done.set()
            return value

        return list(await asyncio.gather(long(1), quick()))

    recorded = record(store, lambda: asyncio.run(agent()))
    world.forget()
    run = lockstep.fork(f"agent:{step_of(store, 'alook')}", lambda: asyncio.run(agent()), store=store)
    assert run.result[1] == recorded[1]
    assert run.result[0] != recorded[0]
    assert world.looks == [("long", 1)]
    assert run.live == 1
    assert_replays(run, lambda: asyncio.run(agent()), store)


def test_a_stream_that_the_program_reads_goes_on_from_the_record(world: World, store: str) -> None:
    @lockstep.tool(effect="read")
    async def stream() -> AsyncIterator[int]:
        world.looks.append(("stream", 0))
        for _ in range(4):
            await asyncio.sleep(0.01)
            yield random.SystemRandom().randrange(10**9)

    async def agent() -> list[Any]:
        async def reading() -> list[int]:
            return [item async for item in stream()]

        async def looking() -> int:
            await asyncio.sleep(0.025)
            value: int = (await world.alook("main", 0))["value"]
            return value

        return list(await asyncio.gather(reading(), looking()))

    recorded = record(store, lambda: asyncio.run(agent()))
    at = step_of(store, "alook")
    assert at == 1, "the stream was over before the other call"
    world.forget()
    run = lockstep.fork("agent:1", lambda: asyncio.run(agent()), store=store)
    assert run.result == recorded
    assert world.looks == []
    assert_replays(run, lambda: asyncio.run(agent()), store)


def test_a_stream_may_be_closed_earlier_than_it_was(world: World, store: str) -> None:
    most = [3]

    @lockstep.tool(effect="read")
    def stream() -> Iterator[int]:
        for _ in range(5):
            yield random.SystemRandom().randrange(10**9)

    def agent() -> list[int]:
        world.look("main", 0)
        return [item for item, _ in zip(stream(), range(most[0]), strict=False)]

    record(store, agent)
    most[0] = 2
    run = lockstep.fork("agent:1", agent, store=store)
    assert len(run.result) == 2
    assert_replays(run, agent, store)


def test_a_timer_that_had_not_fired_by_the_cut_fires_after_it(world: World, store: str) -> None:
    async def agent() -> list[Any]:
        async def late() -> str:
            try:
                await asyncio.wait_for(asyncio.Event().wait(), 0.05)
            except TimeoutError:
                return "ran out"
            return "never"

        async def looking() -> int:
            value: int = (await world.alook("main", 0))["value"]
            await asyncio.sleep(0.01)
            await world.alook("main", 1)
            return value

        return list(await asyncio.gather(late(), looking()))

    recorded = record(store, lambda: asyncio.run(agent()))
    run = lockstep.fork("agent:1", lambda: asyncio.run(agent()), store=store)
    assert run.result == recorded
    assert_replays(run, lambda: asyncio.run(agent()), store)


def test_a_changed_program_is_told_so_and_its_branch_is_kept(world: World, store: str) -> None:
    def agent() -> int:
        value: int = world.look("main", 0)["value"] + world.look("main", 1)["value"]
        return value

    def changed() -> int:
        value: int = world.look("main", 7)["value"]
        return value

    record(store, agent)
    world.forget()
    run = lockstep.fork("agent:2", changed, store=store)
    assert run.state == "diverged"
    assert run.divergence is not None
    assert "LS101" in run.divergence
    assert world.looks == []
    with open_store(store) as opened:
        assert [branch.name for branch in opened.run("agent").branches if branch.name != "main"] == ["fork"]
    assert lockstep.replay("agent", agent, store=store).identical


def test_a_program_that_fails_past_the_cut_leaves_a_branch_that_says_so(world: World, store: str) -> None:
    def agent() -> int:
        value: int = world.look("main", 0)["value"]
        if world.look("main", 1)["value"] < 0:
            raise ValueError("below nothing")
        return value

    record(store, agent)
    run = lockstep.fork("agent:2", agent, edits={"2:value": -1}, store=store)
    assert run.state == "failed"
    assert isinstance(run.error, ValueError)
    replayed = lockstep.replay(run.address, agent, store=store)
    assert replayed.identical
    assert isinstance(replayed.error, ValueError)


def test_a_program_that_hides_a_refusal_is_refused_all_the_same(world: World, store: str) -> None:
    def agent() -> str:
        world.look("main", 0)
        with suppress(BaseException):
            world.pay(world.look("main", 1)["value"])
        return "all is well"

    record(store, agent)
    world.forget()
    with pytest.raises(lockstep.Refused, match="LS301 tool pay"):
        lockstep.fork("agent:1", agent, store=store)
    assert world.paid == []


def test_a_fork_of_a_fork_of_a_fork_keeps_each_edit(world: World, store: str) -> None:
    def agent() -> list[int]:
        return [world.look("main", number)["value"] for number in range(5)]

    recorded = record(store, agent)
    address, result = "agent", recorded
    for step in range(1, 5):
        run = lockstep.fork(f"{address}:{step}", agent, edits={f"{step}:value": -step}, store=store)
        assert run.result[: step - 1] == result[: step - 1]
        assert run.result[step - 1] == -step
        assert_replays(run, agent, store)
        address, result = run.address, run.result
    assert result[:4] == [-1, -2, -3, -4]


def test_a_fork_at_the_beginning_serves_nothing_and_one_at_the_end_all(world: World, store: str) -> None:
    def agent() -> list[int]:
        return [world.look("main", number)["value"] for number in range(3)]

    recorded = record(store, agent)
    first = lockstep.fork("agent:0", agent, store=store)
    assert first.live == 3
    assert not set(first.result) & set(recorded)
    world.forget()
    last = lockstep.fork("agent:4", agent, store=store)
    assert last.live == 0
    assert last.result == recorded
    assert world.looks == []
    assert_replays(first, agent, store)
    assert_replays(last, agent, store)


def test_an_edit_that_lies_further_back_is_served_past_while_the_calls_are_the_recorded_ones(
    world: World, store: str
) -> None:
    def agent() -> list[int]:
        found = [world.look("main", 0)["value"], world.look("main", 1)["value"]]
        found.append(world.look("main", found[1] % 7 if found[0] > 0 else -1)["value"])
        found.append(world.look("main", 3)["value"])
        return found

    recorded = record(store, agent)
    world.forget()
    same = lockstep.fork("agent:4", agent, edits={"1:value": 5}, store=store)
    assert same.result == [5, *recorded[1:]]
    assert (same.served, same.live) == (3, 0)
    assert world.looks == []
    other = lockstep.fork("agent:4", agent, edits={"1:value": -5}, store=store)
    assert other.result[:2] == [-5, recorded[1]]
    assert (other.served, other.live) == (1, 2)
    assert world.looks == [("main", -1), ("main", 3)]
    assert_replays(same, agent, store)
    assert_replays(other, agent, store)


def test_an_edit_after_the_step_is_refused(world: World, store: str) -> None:
    def agent() -> None:
        for number in range(3):
            world.look("main", number)

    record(store, agent)
    with pytest.raises(lockstep.LockstepError, match="LS206 3 is answered only after agent:1"):
        lockstep.fork("agent:1", agent, edits={"3:value": 1}, store=store)
    with pytest.raises(lockstep.LockstepError, match="LS206"):
        lockstep.fork("agent", agent, store=store)


def test_a_lock_that_is_older_than_the_session_holds_nobody_up(world: World, store: str) -> None:
    kept: list[threading.Lock] = []

    def agent() -> int:
        lock = kept[0] if kept else threading.Lock()
        kept[:] = [lock]
        with lock:
            value: int = world.look("main", 0)["value"]

        def other() -> None:
            with lock:
                world.look("other", 0)

        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        return value

    record(store, agent)
    run = lockstep.fork("agent:1", agent, store=store, deadline=5)
    assert (run.state, run.live) == ("complete", 1)
    with lockstep.record("again", store=store):
        agent()
    again = lockstep.fork("again:1", agent, store=store, deadline=5)
    assert (again.state, again.live) == ("complete", 1)


def test_a_lane_that_has_come_to_the_step_does_not_end_what_others_are_served_up_to_it(
    world: World, store: str
) -> None:
    async def agent() -> list[Any]:
        done = asyncio.Event()

        @lockstep.tool(effect="read")
        async def long() -> int:
            world.looks.append(("long", 0))
            await done.wait()
            return 7

        async def looking() -> list[int]:
            found = []
            for number in range(3):
                found.append((await world.alook("main", number))["value"])
                await asyncio.sleep(0)
                await asyncio.sleep(0)
            done.set()
            return found

        return list(await asyncio.gather(long(), looking()))

    recorded = record(store, lambda: asyncio.run(agent()))
    world.forget()
    run = lockstep.fork("agent:3", lambda: asyncio.run(agent()), edits={"1:value": 5}, store=store)
    assert run.result == [7, [5, *recorded[1][1:]]]
    assert world.looks == [("long", 0)]
    assert (run.live, run.served, run.edited) == (1, 2, 1)
    assert_replays(run, lambda: asyncio.run(agent()), store)
