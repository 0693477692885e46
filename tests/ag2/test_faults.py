"""What goes wrong on our side never reaches the agent, and is told."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import agents
import pytest
from ag2 import Agent
from ag2.middleware import BaseMiddleware, Middleware

import lockstep
import lockstep_ag2
from lockstep_ag2 import attaching, events, models, responses, states, tools


def broken(*_: Any, **__: Any) -> Any:
    raise ZeroDivisionError("a fault of ours")


SEAMS = [
    (models, "_request"), (tools, "_arguments"), (tools, "_variables"), (tools, "_compact"), (responses, "told"),
    (events, "messages"), (events, "dump"), (states.History, "seen"), (states.History, "record"),
]  # fmt: skip


@pytest.mark.parametrize(("owner", "name"), SEAMS, ids=[name for _, name in SEAMS])
def test_a_fault_leaves_the_agent_unharmed_and_is_told(
    record: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, owner: Any, name: str
) -> None:
    plain = asyncio.run(agents.variables(True).ask("Go on."))
    agents.ran.clear()
    monkeypatch.setattr(owner, name, broken)
    with caplog.at_level(logging.WARNING, "lockstep"):
        recorded = record(agents.variables(True))
    assert recorded.said == [plain.body] and recorded.error is None
    assert recorded.ran == ["remember"]
    assert any("a fault of ours" in fault for fault in recorded.faults)
    assert "is incomplete" in caplog.text


def test_a_store_that_cannot_be_opened_leaves_the_agent_unharmed(
    tmp_path: Any, caplog: pytest.LogCaptureFixture
) -> None:
    place = tmp_path / "no.db"
    place.write_text("this is no store")
    agent = lockstep_ag2.attach(agents.tools(True), store=str(place))
    with caplog.at_level(logging.WARNING, "lockstep"):
        assert asyncio.run(agent.ask("Go on.")).body == "It is empty."
    assert "LS201" in attaching.owner(agent).faults[0] and "LS201" in caplog.text
    assert place.read_text() == "this is no store"


def test_middleware_of_the_users_keeps_working_and_keeps_its_order(record: Callable[..., Any]) -> None:
    order: list[str] = []

    class Named(BaseMiddleware):
        def __init__(self, event: Any, context: Any, name: str) -> None:
            super().__init__(event, context)
            self.name = name

        async def on_llm_call(self, call_next: Any, said: Any, context: Any) -> Any:
            order.append(f"{self.name} in")
            found = await call_next(said, context)
            order.append(f"{self.name} out")
            return found

        async def on_tool_execution(self, call_next: Any, event: Any, context: Any) -> Any:
            order.append(f"{self.name} {event.name}")
            return await call_next(event, context)

    def make(live: bool) -> Agent:
        turns = ([agents.call("look", 1, where="the box")], "Empty.")
        middleware = [Middleware(Named, name="outer"), Middleware(Named, name="inner")]
        return Agent(
            "ordered", "You look.", config=agents.says(live, *turns), tools=[agents.look], middleware=middleware
        )

    asyncio.run(make(True).ask("Go on."))
    expected = list(order)
    for run in (lambda: record(make(True)), lambda: lockstep.replay("ag2/ordered", lambda: make(False))):
        order.clear()
        run()
        assert order == expected
    asyncio.run(lockstep_ag2.attach(make(True), run="late").ask("Go on.", middleware=[Middleware(Named, name="asked")]))
    assert "asked in" in order


def test_a_run_without_its_middle_still_replays_to_the_cut(record: Callable[..., Any], tmp_path: Any) -> None:
    """As after Ctrl-C: what was recorded of a turn that has no end is replayed, and forked from its last step."""
    from lockstep.log.store import open_store
    from lockstep.session.native import Journal

    recorded = record(agents.tools(True))
    with open_store(None) as store:
        reader = store.run(recorded.run)
        stop = next(event.pos for _, event in reader.heads(reader.main) if event.name == "look, wait")
        journal = Journal.open(store, recorded.run, {})
        journal.fork("cut", stop, latest=False).close()
        journal.close()
    run = lockstep.fork(
        f"{recorded.run}@cut:2", lambda: _again("Empty, again."), branch="on", tail="live"
    )  # fmt: skip
    assert [reply.body for reply in run.results] == ["Empty, again."]


def _again(*said: Any) -> Agent:
    agent = agents.tools(False)
    agent.config = agents.says(True, *said)
    return agent
