"""Races whose winner is in no record: who fills a cache first, who words a cancellation."""

from __future__ import annotations

import asyncio
import select
import threading
from collections.abc import Callable

import httpx
import pytest

import lockstep
from lockstep.session.session import finish, start_replay
from lockstep.testing import Provider


@lockstep.tool
def ask(question: str) -> str:
    return f"answer to {question}"


def agent(delays: tuple[float, ...]) -> Callable[[], list[str]]:
    """Threads that fill a cache under its lock where they find it empty, each after a delay that no tap knows."""

    def run() -> list[str]:
        lock, cache = threading.Lock(), dict[str, str]()
        answers = [""] * len(delays)

        def work(n: int) -> None:
            select.select([], [], [], delays[n])
            if not cache:
                select.select([], [], [], 0.1)
                with lock:
                    cache["filled"] = "by somebody"
            answers[n] = ask(f"question {n}")

        threads = [threading.Thread(target=work, args=(n,)) for n in range(len(delays))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        with lock:
            return answers

    return run


@pytest.mark.parametrize(
    "delays", [(0.0, 0.0, 0.3), (0.3, 0.3, 0.0), (0.0, 0.3, 0.3), (0.3, 0.0, 0.0), (0.0, 0.0, 0.0)]
)
def test_who_fills_a_cache_first_makes_no_other_run(delays: tuple[float, ...]) -> None:
    recorded = agent((0.0, 0.0, 0.3))
    with lockstep.record("case") as session:
        answers = recorded()
    assert session.report is not None and session.report.faults == ()
    session = start_replay(None, "case")
    again = agent(delays)()
    report = finish(session, None, None)
    assert (report.identical, report.difference, again) == (True, None, answers)
    assert not session.standstill.unordered, "a strand was waited for in vain"


def test_a_cancellation_has_the_words_that_the_client_gave_it() -> None:
    """Where a connection is made in the moment of the program's `cancel`, anyio's own cancellation wins."""

    async def cancelled_after(turns: int, client: httpx.AsyncClient) -> str:
        task = asyncio.create_task(client.get(f"{provider.url}/{turns}"))
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel("by the program")
        try:
            return (await task).text
        except asyncio.CancelledError as error:
            return str(error)

    async def agent() -> list[str]:
        async with httpx.AsyncClient(trust_env=False) as client:
            return [await cancelled_after(turns, client) for turns in range(60)]

    with Provider() as provider, lockstep.record("case"):
        recorded = asyncio.run(agent())
    assert any("cancel scope" in words for words in recorded)
    assert "by the program" in recorded
    again = lockstep.replay("case", agent)
    assert (again.divergence, again.identical, again.result) == (None, True, recorded)
