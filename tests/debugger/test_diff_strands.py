"""Runs with several strands are compared strand by strand, whatever came first."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
from tests.debugger.conftest import Agent

import lockstep
from lockstep.debugger.diff import Diff
from lockstep.testing import Answer, Provider, Request


@lockstep.tool(effect="read")
async def look(number: int, delay: float = 0.0) -> int:
    await asyncio.sleep(delay)
    return number * 10


@lockstep.tool(effect="read")
def fetch(number: int) -> int:
    return number * 10


async def worker(*numbers: int) -> None:
    for number in numbers:
        await look(number)


async def other_worker(*numbers: int) -> None:
    await worker(*numbers)


def together(*works: Sequence[int], function: Callable[..., Any] = worker) -> Callable[[Agent], Any]:
    async def run(agent: Agent) -> None:
        await asyncio.gather(*(function(*numbers) for numbers in works))

    return run


def told(found: Diff) -> list[tuple[str, str, str, str]]:
    return [(entry.kind, entry.effect, entry.lane, entry.a + " " + entry.b) for entry in found.differences]


def test_concurrent_calls_that_end_in_another_order_are_the_same(record: Callable[..., str], model: Provider) -> None:
    order: list[list[str]] = []

    async def program(agent: Agent) -> None:
        ended: list[str] = []

        async def ask(client: httpx.AsyncClient, number: int) -> None:
            body = {"model": "gpt-4o", "messages": [{"role": "user", "content": f"side {number}"}]}
            await client.post("/v1/chat/completions", json=body)
            ended.append(str(number))

        async with httpx.AsyncClient(base_url=agent.url, trust_env=False) as client:
            await asyncio.gather(*(ask(client, number) for number in range(3)))
        order.append(ended)

    def paced(slow: str) -> Callable[[Request], Answer]:
        return lambda request: Answer("fine", delay=0.15 if slow in request.prompt else 0.0)

    model.script = paced("side 0")
    record("a", program)
    model.script = paced("side 2")
    record("b", program)
    assert order[0][-1] == "0" and order[1][-1] == "2"
    assert lockstep.diff("a", "b").differences == ()
    moved = lockstep.diff("a:3", "b:3")  # the steps are numbered as they ended
    assert moved.first is not None and moved.first.path == "messages[0].content"


def test_one_task_more_among_its_like_is_one_difference(record: Callable[..., str]) -> None:
    record("a", together([1, 2], [3, 4], [5, 6]))
    record("b", together([1, 2], [9], [3, 4], [5, 6]))
    assert told(lockstep.diff("a", "b")) == [("added", "tool", "main/worker.2", '(absent) {"number": 9}')]
    assert told(lockstep.diff("b", "a")) == [("removed", "tool", "main/worker.2", '{"number": 9} (absent)')]


def test_a_change_in_one_task_is_found_in_it(record: Callable[..., str]) -> None:
    record("a", together([1, 2], [3, 4], [5, 6]))
    record("b", together([1, 2], [3, 7], [5, 6]))
    assert told(lockstep.diff("a", "b")) == [("changed", "tool", "main/worker.2", "4 7")]


def test_tasks_that_changed_places_moved(record: Callable[..., str]) -> None:
    record("a", together([1, 2], [3, 4], [5, 6]))
    record("b", together([3, 4], [1, 2], [5, 6]))
    found = lockstep.diff("a", "b")
    [entry] = found.differences
    assert (entry.kind, entry.effect, entry.reason) == ("moved", "strand", "began at another place")


def test_a_function_by_another_name_is_a_strand_that_moved(record: Callable[..., str]) -> None:
    record("a", together([1, 2]))
    record("b", together([1, 2], function=other_worker))
    assert told(lockstep.diff("a", "b")) == [
        ("moved", "strand", "main/worker.1", '"main/worker.1" "main/other_worker.1"')
    ]


def test_calls_that_went_into_a_task_moved(record: Callable[..., str]) -> None:
    async def inline(agent: Agent) -> None:
        await worker(1)
        await worker(2)

    async def split(agent: Agent) -> None:
        await worker(1)
        await asyncio.create_task(worker(2))

    record("a", inline)
    record("b", split)
    [entry] = lockstep.diff("a", "b").differences
    assert (entry.kind, entry.path, entry.a, entry.b) == ("moved", "lane", '"main"', '"main/worker.1"')
    assert entry.reason == "comes in another strand"


def test_a_task_that_does_nothing_is_told_and_does_not_count(record: Callable[..., str]) -> None:
    record("a", together([1]))
    record("b", together([1], []))
    found = lockstep.diff("a", "b")
    assert found.same
    assert [(each.what, each.b) for each in found.left_out] == [("strand that asked nothing", '"main/worker.2"')]
    assert told(lockstep.diff("a", "b", exact=True))[-1][:2] == ("added", "strand")


def test_work_items_of_a_pool_are_compared_as_they_were_submitted(record: Callable[..., str]) -> None:
    def program(workers: int, *numbers: int) -> Callable[[Agent], None]:
        def run(agent: Agent) -> None:
            with ThreadPoolExecutor(workers) as pool:
                list(pool.map(fetch, numbers))

        return run

    record("a", program(1, 1, 2, 3, 4))
    record("b", program(4, 1, 2, 3, 4))
    record("c", program(4, 1, 2, 7, 3, 4))
    assert lockstep.diff("a", "b").same
    [entry] = lockstep.diff("a", "c").differences
    assert (entry.kind, entry.b) == ("added", '{"number": 7}')


def test_what_concurrent_strands_print_is_compared_strand_by_strand(record: Callable[..., str]) -> None:
    def program(first: float, second: float) -> Callable[[Agent], Any]:
        async def say(text: str, delay: float) -> None:
            await asyncio.sleep(delay)
            print(text)

        async def run(agent: Agent) -> None:
            await asyncio.gather(say("one", first), say("two", second))

        return run

    record("a", program(0.0, 0.02))
    record("b", program(0.02, 0.0))
    assert lockstep.diff("a", "b").same
