"""Races that nothing orders, and that make no other run: who fills a cache first."""

from __future__ import annotations

import select
import threading
from collections.abc import Callable

import pytest

import lockstep
from lockstep.session.session import finish, start_replay


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
    assert not session.unordered, "a strand was waited for in vain"
