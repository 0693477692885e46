"""What the program cancels while it waits for its fork to go live, and just after: a branch ends it where it ended."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any

import pytest
from agents import World

import lockstep

chance = random.SystemRandom()


@lockstep.tool(effect="read")
async def stream() -> AsyncIterator[int]:
    yield chance.randrange(10**9)
    await asyncio.Event().wait()


@lockstep.tool(effect="read")
async def long() -> int:
    await asyncio.Event().wait()
    return 0


async def reads_a_stream(shown: asyncio.Event) -> None:
    async for _ in stream():
        shown.set()


async def waits_for_a_call(shown: asyncio.Event) -> None:
    shown.set()
    await long()


def asks_after(ticks: int) -> Callable[[asyncio.Event], Coroutine[Any, Any, None]]:
    async def asks(shown: asyncio.Event) -> None:
        shown.set()
        for _ in range(ticks):
            await asyncio.sleep(0)
        await long()

    return asks


def agent(
    world: World, waits: Callable[[asyncio.Event], Awaitable[None]], before: int, between: int, after: int
) -> Callable[[], list[str]]:
    """Looks `before` times, lets the loop turn `after` times, and cancels a task that waits for an answer; says in
    which order all that moves went on. A neighbour makes `between` looks, which the part served may still have then."""

    async def main() -> list[str]:
        said: list[str] = []
        shown = asyncio.Event()

        async def waiting() -> None:
            try:
                await waits(shown)
            except asyncio.CancelledError:
                said.append("cancelled")
                await asyncio.sleep(0)
                said.append("cleaned")
                raise

        async def turning() -> None:
            for number in range(12):
                said.append(f"turn {number}")
                await asyncio.sleep(0)

        async def neighbour() -> None:
            for number in range(between):
                await world.alook("neighbour", number)
                said.append(f"neighbour {number}")

        task = asyncio.create_task(waiting())
        await shown.wait()
        for number in range(before):
            await world.alook("main", number)
        said.append("looked")
        others = [asyncio.create_task(turning()), asyncio.create_task(neighbour())]
        for _ in range(after):
            await asyncio.sleep(0)
        said.append("cancels")
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        said.append("is told")
        await asyncio.gather(*others)
        await world.alook("main", 99)
        return said

    return lambda: asyncio.run(main())


@pytest.mark.parametrize("waits", [reads_a_stream, waits_for_a_call, asks_after(1), asks_after(2)])
@pytest.mark.parametrize("between", [0, 2])
def test_what_is_given_up_about_the_moment_ends_where_it_ended(
    world: World, store: str, waits: Callable[[asyncio.Event], Awaitable[None]], between: int
) -> None:
    for after in range(4):
        program = agent(world, waits, 2, between, after)
        recorded = lockstep.record(f"agent-{after}", store=store)(program)()
        assert "cancelled" in recorded
        for step in range(1, 4):
            run = lockstep.fork(f"agent-{after}:{step}", program, store=store)
            assert run.state == "complete", (after, step, run.divergence)
            replayed = lockstep.replay(run.address, program, store=store)
            assert (replayed.divergence, replayed.result) == (None, run.result), (after, step)
            assert replayed.identical
