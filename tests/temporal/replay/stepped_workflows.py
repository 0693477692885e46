"""What has become of `kitchen_sink.Steps`, of which there is a history."""

from __future__ import annotations

import os
import sys
from datetime import timedelta

from kitchen_sink import SOON, add
from temporalio import workflow


@workflow.defn(name="Steps")
class OtherArguments:
    @workflow.run
    async def run(self, count: int) -> list[int]:
        done: list[int] = []
        for number in range(1, count + 1):
            before = done[-1:] if number > 2 else list(done)
            done.append(await workflow.execute_activity(add, args=[number, before], start_to_close_timeout=SOON))
        return done


@workflow.defn(name="Steps")
class OtherTimeouts:
    @workflow.run
    async def run(self, count: int) -> list[int]:
        done: list[int] = []
        for number in range(1, count + 1):
            lasts = SOON if number < 5 else timedelta(seconds=21)
            done.append(await workflow.execute_activity(add, args=[number, list(done)], start_to_close_timeout=lasts))
        return done


@workflow.defn(name="Steps")
class OtherResult:
    @workflow.run
    async def run(self, count: int) -> list[int]:
        done: list[int] = []
        for number in range(1, count + 1):
            done.append(await workflow.execute_activity(add, args=[number, list(done)], start_to_close_timeout=SOON))
        return done[::-1]


@workflow.defn(name="Steps")
class Fewer:
    @workflow.run
    async def run(self, count: int) -> list[int]:
        done: list[int] = []
        for number in range(1, count):
            done.append(await workflow.execute_activity(add, args=[number, list(done)], start_to_close_timeout=SOON))
        return done


@workflow.defn(name="Steps")
class Raising:
    @workflow.run
    async def run(self, count: int) -> list[int]:
        done: list[int] = []
        for number in range(1, count + 1):
            done.append(await workflow.execute_activity(add, args=[number, list(done)], start_to_close_timeout=SOON))
            done[number - 1 if number < 3 else number] += 0
        return done


@workflow.defn(name="Steps", sandboxed=False)
class Drifting:
    """It draws nothing else than what it is called with, and says so in each call."""

    @workflow.run
    async def run(self, count: int) -> list[int]:
        done: list[int] = []
        for _ in range(count):
            noise = int.from_bytes(os.urandom(4))
            done.append(await workflow.execute_activity(add, args=[noise, list(done)], start_to_close_timeout=SOON))
        return done


@workflow.defn(name="Steps")
class NeverStops:
    @workflow.run
    async def run(self, count: int) -> list[int]:
        done: list[int] = []
        for number in range(1, count + 1):
            done.append(await workflow.execute_activity(add, args=[number, list(done)], start_to_close_timeout=SOON))
            while number == 3:
                done.append(done.pop())
        return done


@workflow.defn(name="Steps", sandboxed=False)
class Exits:
    @workflow.run
    async def run(self, count: int) -> list[int]:
        first = await workflow.execute_activity(add, args=[1, []], start_to_close_timeout=SOON)
        sys.exit(first - 1)
