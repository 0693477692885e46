"""What ran at once may be done in any order, but what waited for something else may not come before it."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import crew_runs
import crews
import pytest
import recorded_crews as of
from crewai.flow import Flow, and_, listen, start

import lockstep
import lockstep_crewai
from lockstep.errors import Code
from lockstep.testing import Provider

slow = 0.0
"""For how long the methods of `AtOnce` that are first in the recording wait before they are done."""


class AtOnce(Flow[dict[str, Any]]):
    """Three methods at once: in threads and on the loop, with a model and without."""

    @start()
    def plain(self) -> str:
        time.sleep(slow)
        self.state["plain"] = 1
        return "plain"

    @start()
    async def asks(self) -> str:
        said = await crews.agent("writer").kickoff_async("a letter")
        self.state["asks"] = str(said)
        return str(said)

    @start()
    def crew(self) -> str:
        said = crews.paying().kickoff(inputs={"order": 7})
        self.state["crew"] = str(said)
        return str(said)

    @listen(and_(plain, asks, crew))
    def together(self) -> list[str]:
        return sorted(str(each) for each in self.state.values() if each != self.state["id"])


def test_methods_at_once_are_replayed_whichever_is_done_first(
    provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow = lockstep_crewai.wrap(AtOnce())
    result = flow.kickoff()
    assert of.steps("crewai/AtOnce")[1] == "AtOnce/plain"
    crew_runs.silence(provider, monkeypatch)
    for seconds in (0.0, 0.0, 0.0, 0.3):
        monkeypatch.setattr(f"{__name__}.slow", seconds)
        replay = lockstep.replay("crewai/AtOnce", AtOnce)
        assert replay.divergence is None, replay.divergence
        assert replay.identical
        assert replay.result == result
    assert crews.ran == []


def test_tasks_at_once_are_replayed_each_time(provider: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
    provider.jitter = (0.0, 0.02)
    result = lockstep_crewai.wrap(crews.async_tasks()).kickoff(crews.INPUTS)
    crew_runs.silence(provider, monkeypatch)
    for _ in range(5):
        crew_runs.is_again(lockstep.replay("crewai/at-once", crews.async_tasks), result)


def in_turn(after: bool) -> type[Flow[Any]]:
    """Two methods, of which one waits for the other, or runs beside it."""

    class InTurn(Flow[dict[str, Any]]):
        @start()
        async def first(self) -> str:
            await asyncio.sleep(0.1)
            return "first"

        @(listen(first) if after else start())
        def second(self) -> str:
            return "second"

    return InTurn


def test_what_waited_for_another_method_may_not_come_first() -> None:
    lockstep_crewai.wrap(in_turn(True)()).kickoff()
    assert lockstep.replay("crewai/InTurn", in_turn(True)).identical
    found = lockstep.replay("crewai/InTurn", in_turn(False)).report.difference
    assert found is not None
    assert (found.code, found.expected, found.actual) == (Code.ORDER, "first", "second")


def test_a_task_s_thread_that_is_stopped_stops_its_crew(provider: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
    """CrewAI hands exceptions on from there, and nothing else: whoever waits for the task would wait for ever."""
    crews.kickoff(lockstep_crewai.wrap(crews.async_tasks()))
    crew_runs.silence(provider, monkeypatch)

    def other() -> Any:
        crew = crews.async_tasks()
        crew.agents[0].backstory = "You are another."
        return crew

    began = time.monotonic()
    replay = lockstep.replay("crewai/at-once", other)
    assert time.monotonic() - began < 10
    assert replay.report.difference is not None
    assert replay.report.difference.lane == "at-once/research"
    assert "lockstep-kickoff" not in {thread.name for thread in threading.enumerate()}
