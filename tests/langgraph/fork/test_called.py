"""What a fork does with calls: edited, served up to the step, and past it as the policy has it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph
from scripted import Asked, Scripted, Streaming
from threads_to_fork import Bench, on

import lockstep
from lockstep import Refused
from lockstep.errors import AddressError, EditError
from lockstep.log.store import open_store
from lockstep.log.timeline import resolve


def says(messages: list[Any]) -> AIMessage:
    """Looks two orders up, refunds a third one, and tells what it heard."""
    heard = [message for message in messages if isinstance(message, ToolMessage)]
    if not heard:
        looked: list[Any] = [{"name": "look", "args": {"order": number}, "id": f"{number}"} for number in (1, 2)]
        return AIMessage("", tool_calls=looked)
    if len(heard) == 2:
        return AIMessage("", tool_calls=[{"name": "refund", "args": {"order": 7}, "id": "r"}])
    return AIMessage(", ".join(str(message.content) for message in heard))


class Shop:
    """An agent with tools that look and one that acts, and a thread of it: step 2 is the first answer, 3 the two looks,
    4 the second answer, 5 the refund and 6 the last word."""

    def __init__(self, bench: Bench, model: type[Scripted] = Scripted) -> None:
        self.bench = bench
        self.asked = asked = Asked()

        @tool
        def look(order: int) -> str:
            """Looks an order up."""
            return f"order {order}: {asked.tool('look')}"

        @tool
        def refund(order: int) -> str:
            """Refunds an order."""
            return f"refund {order}: {asked.tool('refund')}"

        lockstep.mark(look, effect="read")
        lockstep.mark(refund, effect="mutating")
        model_of_it = model(says=says, asked=asked)
        self.graph: Any = create_agent(model_of_it, [look, refund], checkpointer=bench.saver())
        self.said = self.heard(self.graph.invoke({"messages": [("user", "refund?")]}, on("t")))

    @staticmethod
    def heard(result: Any) -> list[str]:
        return [str(message.content) for message in result["messages"] if isinstance(message, ToolMessage)]

    def fork(self, address: str, **options: Any) -> Any:
        self.asked.clear()
        return self.bench.fork(f"t:{address}", self.graph, **options)


@pytest.fixture(params=[Scripted, Streaming])
def shop(request: Any, bench: Bench) -> Shop:
    return Shop(bench, request.param)


def test_past_the_step_models_and_reads_are_live_and_what_acts_is_reused(shop: Shop) -> None:
    run = shop.fork("2")
    assert (shop.asked.models, shop.asked.tools) == (2, ["look", "look"])
    assert (run.state, run.live, run.reused) == ("complete", 4, 1)
    looked, refunded = shop.heard(run.result)[:2], shop.heard(run.result)[2]
    assert set(looked).isdisjoint(shop.said)
    assert refunded == shop.said[2]


def test_what_is_named_runs(shop: Shop) -> None:
    run = shop.fork("2", live=["refund"])
    assert shop.asked.tools == ["look", "look", "refund"]
    assert (run.live, run.reused) == (5, 0)


def test_the_tail_can_be_the_record_s(shop: Shop) -> None:
    run = shop.fork("4", tail="record")
    assert (shop.asked.models, shop.asked.tools) == (0, [])
    assert shop.heard(run.result) == shop.said
    assert run.reused == 2


def test_an_edited_call_runs_its_own_task_again_and_no_other(shop: Shop) -> None:
    run = shop.fork("3", edits={"3.1": "order 1: lost"})
    assert shop.asked.tools == []
    assert shop.heard(run.result) == ["order 1: lost", *shop.said[1:]]
    assert (run.edited, run.live, run.reused) == (1, 2, 1)
    with open_store(shop.bench.store) as store:
        calls = resolve(store, f"{run.address}:3").step
        assert calls is not None and [effect.name for effect in calls.effects] == ["look", "look"]
    difference = lockstep.diff("langgraph/t", run.address, store=shop.bench.store).first
    assert difference is not None and difference.address_a == "langgraph/t:3.1"
    assert lockstep.replay(run.address, shop.graph, store=shop.bench.store).identical


def test_an_answer_of_a_model_is_edited_whole_by_path_or_as_an_object(shop: Shop) -> None:
    for edits in ({"2.1": {"type": "ai", "content": "no"}}, {"2.1": AIMessage("no")}):
        run = shop.fork("2", edits=edits)
        assert [message.content for message in run.result["messages"]] == ["refund?", "no"]
        assert (shop.asked.models, shop.asked.tools) == (0, [])
    run = shop.fork("2", edits={"2.1:tool_calls[1].args.order": 5})
    assert shop.heard(run.result)[1].startswith("order 5: ")


def test_an_edit_can_raise(shop: Shop) -> None:
    run = shop.fork("3", edits={"3.2": ValueError("no such order")})
    assert (run.state, str(run.error)) == ("failed", "no such order")
    assert shop.asked.tools == []


def test_edits_before_the_step_are_served_past_as_long_as_the_same_is_asked(shop: Shop) -> None:
    same = shop.fork("6", edits={"3.1": shop.said[0]})
    assert (shop.asked.models, shop.asked.tools) == (0, [])
    assert (same.served, same.edited, same.live) == (3, 1, 0)
    assert shop.heard(same.result) == shop.said


def test_a_call_that_nobody_allowed_stops_the_fork(shop: Shop) -> None:
    with pytest.raises(Refused, match=r"LS301 tool refund\(order=8\) would run for real") as stopped:
        shop.fork("4", edits={"4.1:tool_calls[0].args.order": 8})
    run = stopped.value.run
    assert (run.state, shop.asked.tools) == ("refused", [])
    assert "let it run:    --live refund" in run.refused[0]
    shop.asked.clear()
    answered = shop.bench.fork(f"t@{run.branch}:5", shop.graph, edits={"5.1": "refund 8: allowed"})
    assert shop.heard(answered.result)[2] == "refund 8: allowed"
    assert shop.asked.tools == []


def test_a_branch_is_forked_like_the_thread_itself(shop: Shop) -> None:
    first = shop.fork("3", edits={"3.1": "order 1: lost"}, branch="try")
    assert first.address == "langgraph/t@try"
    shop.asked.clear()
    second = shop.bench.fork("t@try:5", shop.graph)
    assert shop.heard(second.result) == shop.heard(first.result)
    assert shop.asked.models == 1
    third = shop.bench.fork("t@try:3", shop.graph, edits={"3.1": "order 1: found"})
    assert shop.heard(third.result) == ["order 1: found", *shop.said[1:]]


def test_the_latest_of_the_thread_stays_what_it_was(shop: Shop) -> None:
    before = shop.graph.get_state(on("t"))
    run = shop.fork("2", branch="try")
    assert shop.graph.get_state(on("t")) == before
    assert next(each.config for each in shop.graph.get_state_history(on("t"))) == before.config
    there = shop.graph.get_state(run.config)
    assert there.values == run.result
    assert run.config["configurable"] == {"thread_id": "t", "lockstep_branch": "try"}


def test_the_program_goes_on_with_a_branch_by_its_name(shop: Shop) -> None:
    run = shop.fork("2", branch="try")
    more = shop.graph.invoke({"messages": [("user", "thanks")]}, run.config)
    assert [message.content for message in more["messages"][: len(run.result["messages"])]] == [
        message.content for message in run.result["messages"]
    ]
    assert shop.graph.get_state(on("t")).values["messages"][-1].content != more["messages"][-1].content


def test_an_edit_of_a_call_that_comes_later_is_told(shop: Shop) -> None:
    with pytest.raises(AddressError, match=r"LS206 a call that was made only after langgraph/t:2"):
        shop.fork("2", edits={"3.1": "x"})
    with pytest.raises(EditError, match=r"LS212 2.1: there is no nix"):
        shop.fork("2", edits={"2.1:nix": "x"})


def test_async_calls_are_edited_and_served(bench: Bench) -> None:
    shop = Shop(bench, Streaming)
    asyncio.run(shop.graph.ainvoke({"messages": [("user", "refund?")]}, on("a")))
    shop.asked.clear()
    run = bench.fork("a:3", shop.graph, edits={"3.1": "order 1: lost"})
    assert shop.heard(run.result)[0] == "order 1: lost"
    assert (shop.asked.models, shop.asked.tools) == (2, [])


def test_forks_of_an_agent_that_a_node_calls_replay_as_they_went(bench: Bench) -> None:
    """Its tools end in any order, and the messages that they become have their ids by the task all the same."""
    shop = Shop(bench)
    builder = StateGraph(MessagesState)
    inner = shop.graph.copy(update={"checkpointer": None})
    builder.add_node("agent", lambda state: {"messages": inner.invoke({"messages": state["messages"]})["messages"]})
    builder.add_edge(START, "agent")
    graph = builder.compile(checkpointer=bench.saver())
    for number in range(3):
        graph.invoke({"messages": [("user", "refund?")]}, on(f"n{number}"))
        assert lockstep.replay(f"langgraph/n{number}", graph, store=bench.store).identical
        run = bench.fork(f"n{number}:2", graph)
        assert lockstep.replay(run.address, graph, store=bench.store).identical
