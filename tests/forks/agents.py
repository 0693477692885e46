"""Agents to fork, each with an outside world of its own that counts what reaches it."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Callable
from typing import Any

import lockstep

_chance = random.SystemRandom()


class World:
    """What lies outside of an agent: answers nobody can foresee, and payments that are counted."""

    def __init__(self) -> None:
        self.looks: list[tuple[str, int]] = []
        self.paid: list[int] = []
        self._lock = threading.Lock()

        @lockstep.tool(effect="read")
        def look(lane: str, number: int) -> dict[str, Any]:
            with self._lock:
                self.looks.append((lane, number))
            return {"lane": lane, "number": number, "value": _chance.randrange(10**9)}

        @lockstep.tool(effect="read")
        async def alook(lane: str, number: int) -> dict[str, Any]:
            self.looks.append((lane, number))
            await asyncio.sleep(_chance.random() / 500)
            return {"lane": lane, "number": number, "value": _chance.randrange(10**9)}

        @lockstep.tool(effect="mutating")
        def pay(cents: int) -> dict[str, Any]:
            self.paid.append(cents)
            return {"receipt": _chance.randrange(10**9)}

        self.look, self.alook, self.pay = look, alook, pay

    def forget(self) -> None:
        self.looks.clear()
        self.paid.clear()


def one_by_one(world: World, steps: int) -> Callable[[], list[int]]:
    """An agent that looks `steps` times and says what it saw."""

    def agent() -> list[int]:
        return [world.look("main", number)["value"] for number in range(steps)]

    return agent


def three_lanes(world: World, steps: int) -> Callable[[], dict[str, list[int]]]:
    """Three tasks at once, each with `steps` looks."""

    async def lane(name: str) -> list[int]:
        return [(await world.alook(name, number))["value"] for number in range(steps)]

    async def agent() -> dict[str, list[int]]:
        names = ("a", "b", "c")
        found = await asyncio.gather(*map(lane, names))
        return dict(zip(names, found, strict=True))

    return lambda: asyncio.run(agent())


def three_threads(world: World, steps: int) -> Callable[[], dict[str, list[int]]]:
    """Three threads at once, each with `steps` looks."""

    def agent() -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}

        def lane(name: str) -> None:
            found[name] = [world.look(name, number)["value"] for number in range(steps)]

        threads = [threading.Thread(target=lane, args=(name,)) for name in ("a", "b", "c")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return {name: found[name] for name in ("a", "b", "c")}

    return agent
