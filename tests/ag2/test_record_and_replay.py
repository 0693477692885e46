"""A recorded agent replays identical, with nobody to ask and no tool run, whatever it is made of."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import agents
import pytest
from ag2 import Agent
from ag2.events import BinaryInput, BinaryType, ModelRequest
from ag2.tools import tool

import lockstep
import lockstep_ag2
from lockstep.debugger import listing
from lockstep.log.store import open_store
from lockstep.log.timeline import resolve
from lockstep_ag2 import attaching


def heard(ran: list[str]) -> list[str]:
    return [each for each in ran if each.startswith("heard")]


@pytest.mark.parametrize("kind", agents.MAKERS)
def test_an_agent_replays_identical(record: Callable[..., Any], kind: str) -> None:
    make = agents.MAKERS[kind]
    questions = ("One?", "Two?", "Three?") if kind == "compacting" else ("Go on.",)
    recorded = record(make(True), *questions)
    assert not recorded.faults
    replay = lockstep.replay(recorded.run, lambda: make(False))
    assert replay.identical, replay.divergence
    assert [str(reply.body) for reply in replay.results if reply is not None] == recorded.said
    assert str(replay.error or "") == str(recorded.error or "")
    # Observers are the program's own, and hear again what they heard; of tools, none runs.
    assert agents.ran == heard(recorded.ran)


def test_a_conversation_is_a_run_and_each_question_a_turn(record: Callable[..., Any]) -> None:
    recorded = record(agents.compacting(True), "One?", "Two?")
    assert recorded.runs == ["ag2/compacting"]
    with open_store(None) as store:
        told = listing.log(recorded.run, resolve(store, recorded.run).timeline)
    assert [turn.name for turn in told.turns] == ["ask", "reply"]
    assert told.state == "complete"


def test_another_conversation_is_another_run() -> None:
    agent = lockstep_ag2.attach(agents.plain(True))

    async def talk() -> None:
        await asyncio.gather(agent.ask("One?"), agent.ask("Two?"))

    asyncio.run(talk())
    owner = attaching.owner(agent)
    owner.close()
    assert owner.runs() == ["ag2/plain", "ag2/plain-2"]
    for run in owner.runs():
        assert lockstep.replay(run, lambda: agents.plain(False)).identical


def test_a_run_has_the_name_that_it_is_given(record: Callable[..., Any]) -> None:
    agent = lockstep_ag2.attach(agents.plain(True), run="hello/you")
    asyncio.run(agent.ask("Hello?"))
    attaching.owner(agent).close()
    assert attaching.owner(agent).runs() == ["ag2/hello%2Fyou"]


def test_a_factory_may_attach_its_agent_itself_and_be_asynchronous(record: Callable[..., Any]) -> None:
    recorded = record(agents.tools(True))

    async def make() -> Agent:
        return lockstep_ag2.attach(agents.tools(False), run="again")

    assert lockstep.replay(recorded.run, make).identical
    with open_store(None) as store:
        assert store.names() == ["ag2/tools"]


def test_a_replay_in_a_running_loop_is_awaited(record: Callable[..., Any]) -> None:
    recorded = record(agents.tools(True))

    async def both() -> Any:
        with pytest.raises(lockstep.errors.TargetError, match="areplay"):
            lockstep.replay(recorded.run, lambda: agents.tools(False))
        return await lockstep.areplay(recorded.run, lambda: agents.tools(False))

    assert asyncio.run(both()).identical


def test_pictures_data_and_resumed_histories_come_back() -> None:
    agent = lockstep_ag2.attach(agents.plain(True))

    async def talk() -> None:
        picture = BinaryInput(b"\x89PNG\0", media_type="image/png", kind=BinaryType.IMAGE)
        reply = await agent.ask("See?", picture, {"of": 1})
        history = list(await reply.history.get_events())
        await agent.resume(*history, ModelRequest.ensure_request(["And now?"]))

    asyncio.run(talk())
    owner = attaching.owner(agent)
    owner.close()
    for run in owner.runs():
        replay = lockstep.replay(run, lambda: agents.plain(False))
        assert replay.identical, replay.divergence


def test_a_turn_that_was_cancelled_is_cancelled_again(record: Callable[..., Any]) -> None:
    def make(live: bool) -> Agent:
        turn = [agents.call("wait", 1, seconds=60), agents.call("look", 2, where="the box")]
        return Agent("slow", "You wait.", config=agents.says(live, turn), tools=[agents.wait, agents.look])

    agent = lockstep_ag2.attach(make(True))

    async def talk() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(agent.ask("Wait."), 0.5)

    asyncio.run(talk())
    attaching.owner(agent).close()
    agents.ran.clear()
    replay = lockstep.replay("ag2/slow", lambda: make(False))
    assert replay.identical, replay.divergence
    assert not agents.ran


# What differs.


def test_changed_code_is_told_where(record: Callable[..., Any]) -> None:
    recorded = record(agents.tools(True))

    def changed() -> Agent:
        return Agent("tools", "You do not.", config=agents.says(False), tools=[agents.look, agents.wait, agents.count])

    replay = lockstep.replay(recorded.run, changed)
    told = replay.report.difference
    assert told is not None and (told.step, told.path) == (1, "messages[0].content")
    assert "You do not." in told.actual
    assert not agents.ran


def test_a_tool_that_was_given_with_the_question_is_named_where_it_is_missing() -> None:
    agent = lockstep_ag2.attach(agents.plain(True))
    asyncio.run(agent.ask("Hello?", tools=[agents.look]))
    attaching.owner(agent).close()
    told = lockstep.replay("ag2/plain", lambda: agents.plain(False)).report.difference
    assert told is not None and told.path == "tools" and "look" in told.expected


def test_a_prompt_that_reaches_outside_stops_the_replay(record: Callable[..., Any]) -> None:
    import socket

    asks = [False]

    def prompt() -> str:
        if asks[0]:
            socket.create_connection(("127.0.0.1", 9), 0.1).close()
        return "You answer."

    def make(live: bool) -> Agent:
        return Agent("reaches", tools=[], config=agents.says(live, "Hello."), prompt=lambda: prompt())

    recorded = record(make(True))
    asks[0] = True
    told = lockstep.replay(recorded.run, lambda: make(False)).report.difference
    assert told is not None and told.code == "LS210" and "127.0.0.1:9" in told.reason


def test_what_could_not_be_recorded_is_named_and_not_called_identical(record: Callable[..., Any]) -> None:
    import threading

    lock = threading.Lock()

    def make(live: bool) -> Agent:
        return Agent("locked", "You lock.", config=agents.says(live, "Locked."), variables={"lock": lock})

    recorded = record(make(True))
    replay = lockstep.replay(recorded.run, lambda: make(False))
    assert not replay.identical
    assert [each.detail for each in replay.report.uncovered] == ["lock of turn 1 could not be recorded"]


# Targets.


def test_an_agent_itself_is_no_target(record: Callable[..., Any]) -> None:
    recorded = record(agents.plain(True))
    with pytest.raises(lockstep.errors.TargetError, match=r"LS402 .*function without arguments that makes a fresh one"):
        lockstep.replay(recorded.run, agents.plain(False))
    with pytest.raises(lockstep.errors.TargetError, match=r"LS402 .*wants some"):
        lockstep.replay(recorded.run, agents.plain)
    with pytest.raises(lockstep.errors.TargetError, match=r"LS402 .*made a str"):
        lockstep.replay(recorded.run, lambda: "agent")


def test_what_cannot_be_attached_is_told_why() -> None:
    class ConversableAgent:
        """As of the classic API."""

    with pytest.raises(lockstep.errors.TargetError, match=r"LS402 .*classic API .*lockstep record"):
        lockstep_ag2.attach(ConversableAgent())
    with pytest.raises(lockstep.errors.TargetError, match=r"LS402 .*not a int"):
        lockstep_ag2.attach(7)
    agent = lockstep_ag2.attach(agents.plain(True))
    with pytest.raises(lockstep.errors.TargetError, match="attached already"):
        lockstep_ag2.attach(agent)


def test_an_agent_that_nobody_attached_is_left_alone() -> None:
    agent = agents.tools(True)
    assert asyncio.run(agent.ask("Go on.")).body == "It is empty."
    with pytest.raises(lockstep.errors.StoreError), open_store(None):
        pass


@tool
def secret(key: str) -> str:
    """Takes a key."""
    return f"used {key}"


def test_keys_are_not_in_the_store(record: Callable[..., Any], tmp_path: Any) -> None:
    key = "sk-proj-" + "Ag2TestOnly0" * 3

    def make(live: bool) -> Agent:
        turns = ([agents.call("secret", 1, key=key)], f"Used {key}.")
        return Agent("secret", "You hide.", config=agents.says(live, *turns), tools=[secret])

    recorded = record(make(True), f"Use {key}")
    assert recorded.said == [f"Used {key}."]
    assert lockstep.replay(recorded.run, lambda: make(False)).identical
    for file in tmp_path.rglob("*"):
        if file.is_file() and "vault" not in str(file):
            assert key.encode() not in file.read_bytes(), file
