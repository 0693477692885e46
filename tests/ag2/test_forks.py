"""Forks of conversations: what came before is served, the edited answer is what differs first, the rest is live."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import agents
import pytest
from ag2 import Agent

import lockstep
from lockstep.debugger import listing
from lockstep.errors import AddressError, TargetError
from lockstep.log.store import open_store
from lockstep.log.timeline import resolve

KINDS = ("tools", "variables", "delegating", "by_hand", "inbox", "humans", "streaming")


def effects(run: str) -> list[Any]:
    with open_store(None) as store:
        log = listing.log(run, resolve(store, run).timeline)
    return [effect for step in log.steps for effect in step.effects]


def step_of(address: str) -> int:
    return int(address.rpartition(":")[2].partition(".")[0])


@pytest.mark.parametrize("kind", KINDS)
def test_a_fork_at_each_model_answer_goes_on_from_the_edited_one(record: Callable[..., Any], kind: str) -> None:
    make = agents.MAKERS[kind]
    recorded = record(make(True))
    for effect in effects(recorded.run):
        if effect.kind != "model" or effect.lane != "main":
            continue
        path = effect.address.rpartition(":")[2]
        agents.ran.clear()
        run = lockstep.fork(
            f"{recorded.run}:{step_of(path)}", lambda: make(False), edits={path: "Stop here."}, branch=f"at-{path}"
        )
        assert run.state == "complete", (path, run.error)
        assert [reply.body for reply in run.results] == ["Stop here."]
        assert run.live == 0
        assert agents.ran == [each for each in agents.ran if each.startswith("heard")]
        first = lockstep.diff(recorded.run, run.address).first
        assert first is not None and step_of(str(first.address_a)) == step_of(path)
        replay = lockstep.replay(run.address, lambda: make(False))
        assert replay.identical, (path, replay.divergence)


def test_what_follows_the_cut_runs_for_real(record: Callable[..., Any]) -> None:
    recorded = record(agents.tools(True))

    def make() -> Agent:
        tools = [agents.look, agents.wait, agents.count]
        return Agent("tools", "You look.", config=agents.says(True, "Something else."), tools=tools)

    # 1: the model wants look and wait, 2: their results, 3: it wants count, 4: its result, 5: the answer.
    expected = {0: ([], 1), 1: (["look the box", "wait"], 3), 2: ([], 1), 3: (["count"], 2), 4: ([], 1), 5: ([], 0)}
    for step, (ran, live) in expected.items():
        agents.ran.clear()
        run = lockstep.fork(f"{recorded.run}:{step}", make)
        assert (sorted(agents.ran), run.live) == (ran, live), step
        words = "It is empty." if step == 5 else "Something else."
        assert [reply.body for reply in run.results] == [words]


def test_an_edited_tool_answer_is_what_the_model_is_told(record: Callable[..., Any]) -> None:
    recorded = record(agents.tools(True))

    def make() -> Agent:
        tools = [agents.look, agents.wait, agents.count]
        return Agent("tools", "You look.", config=agents.says(True, "Gold!"), tools=tools)

    look = next(effect for effect in effects(recorded.run) if effect.name == "look")
    path = look.address.rpartition(":")[2]
    run = lockstep.fork(f"{recorded.run}:2", make, edits={path: "gold in the box"})
    with open_store(None) as store:
        state: Any = listing.show(resolve(store, f"{run.address}:2")).outcome
    assert [each["content"] for each in state["messages"] if each["type"] == "tool"] == [
        "gold in the box", "waited 0.01",
    ]  # fmt: skip
    assert [reply.body for reply in run.results] == ["Gold!"]


def test_a_tool_can_be_made_to_fail(record: Callable[..., Any]) -> None:
    recorded = record(agents.tools(True))

    def make() -> Agent:
        tools = [agents.look, agents.wait, agents.count]
        return Agent("tools", "You look.", config=agents.says(True, "Sorry."), tools=tools)

    look = next(effect for effect in effects(recorded.run) if effect.name == "look")
    run = lockstep.fork(f"{recorded.run}:2", make, edits={look.address.rpartition(":")[2]: ValueError("locked")})
    with open_store(None) as store:
        state: Any = listing.show(resolve(store, f"{run.address}:2")).outcome
    failed = next(each for each in state["messages"] if each["type"] == "tool" and each["name"] == "look")
    assert failed["error"] == "ValueError: locked" and "ValueError: locked" in failed["content"]


def test_a_human_can_be_made_to_say_no(record: Callable[..., Any]) -> None:
    recorded = record(agents.humans(True))
    asked = next(effect for effect in effects(recorded.run) if effect.kind == "human")

    def make() -> Agent:
        tools = [agents.pay, agents.inquire]
        return Agent("humans", "You ask.", config=agents.says(True, "Not paid."), tools=tools)

    run = lockstep.fork(f"{recorded.run}:2", make, edits={asked.address.rpartition(":")[2]: "no"}, tail="reuse")
    assert [reply.body for reply in run.results] == ["Not paid."]
    assert "pay" not in agents.ran
    paid = next(effect for effect in effects(recorded.run) if effect.name == "pay")
    assert not [effect for effect in effects(run.address) if effect.name == "pay"], paid


def test_a_tool_that_nobody_declared_is_refused_and_may_be_allowed(record: Callable[..., Any]) -> None:
    def make(cents: int) -> Agent:
        turns = ([agents.call("pay", 2, cents=cents)], "Paid.")
        return Agent(
            "payer", "You pay.", config=agents.says(True, *turns), tools=[agents.pay], hitl_hook=lambda _: "yes"
        )

    recorded = record(make(400))
    with pytest.raises(lockstep.Refused, match="pay") as refused:
        lockstep.fork(f"{recorded.run}:0", lambda: make(500))
    assert refused.value.run.state == "refused" and "pay" not in agents.ran
    run = lockstep.fork(f"{recorded.run}:0", lambda: make(500), live=["pay"])
    assert run.state == "complete" and agents.ran.count("pay") == 1


def test_later_turns_follow_with_their_questions(record: Callable[..., Any]) -> None:
    recorded = record(agents.compacting(True), "One?", "Two?", "Three?")

    def make() -> Agent:
        agent = agents.compacting(True)
        agent.config = agents.says(True, "New.", "Newer.")
        return agent

    run = lockstep.fork(f"{recorded.run}:1", make, edits={"1.1": "Edited."})
    assert [reply.body for reply in run.results] == ["Edited.", "New.", "Newer."]
    with open_store(None) as store:
        log = listing.log(run.address, resolve(store, run.address).timeline)
        state: Any = listing.show(resolve(store, log.steps[-2].address)).outcome
    # What the agent compacts, it compacts here too.
    assert [each["content"] for each in state["messages"]][-1] == "Newer."
    assert len(state["messages"]) < 6


def test_a_fork_of_a_fork_knows_both(record: Callable[..., Any]) -> None:
    recorded = record(agents.tools(True))

    def make() -> Agent:
        tools = [agents.look, agents.wait, agents.count]
        return Agent("tools", "You look.", config=agents.says(True, "Gold!"), tools=tools)

    look = next(effect for effect in effects(recorded.run) if effect.name == "look").address.rpartition(":")[2]
    first = lockstep.fork(f"{recorded.run}:2", make, edits={look: "gold in the box"}, branch="gold")
    second = lockstep.fork(f"{first.address}:3", make, edits={"3.1": "Silver!"}, branch="silver")
    assert [reply.body for reply in second.results] == ["Silver!"]
    assert second.live == 0
    for branch in (first, second):
        assert lockstep.replay(branch.address, make).identical


def test_an_edit_of_what_comes_later_is_refused(record: Callable[..., Any]) -> None:
    recorded = record(agents.tools(True))
    with pytest.raises(AddressError, match="LS206"):
        lockstep.fork(f"{recorded.run}:1", lambda: agents.tools(False), edits={"3.1": "later"})


def test_a_tool_is_what_it_was_marked_as_whether_by_itself_or_by_its_function(record: Callable[..., Any]) -> None:
    @agents.tool
    def marked(n: int) -> str:
        """Is marked as it is."""
        return str(n)

    def plain(n: int) -> str:
        """Is marked as a function."""
        return str(n)

    lockstep.mark(marked, effect="read")
    lockstep.mark(plain, effect="mutating")
    asked = [agents.call(name, 1, n=1) for name in ("marked", "plain")]
    recorded = record(Agent("marks", "", config=agents.says(True, asked, "Done."), tools=[marked, plain]))
    classes = {effect.name: effect.effect_class for effect in effects(recorded.run) if effect.kind == "tool"}
    assert classes == {"marked": "read", "plain": "mutating"}


# By the history.


@pytest.mark.parametrize("kind", ["tools", "variables", "streaming", "plain"])
def test_restoring_comes_to_what_re_executing_comes_to(record: Callable[..., Any], kind: str) -> None:
    make = agents.MAKERS[kind]
    agent = make(True)
    if kind == "plain":
        agent.config = agents.says(True, "One.", "Two.")
    recorded = record(agent, *(("One?", "Two?") if kind == "plain" else ()))
    steps = {step_of(effect.address) for effect in effects(recorded.run)}
    for step in range(max(steps) + 1):
        asked = [agents.call("look", 1, where="elsewhere")] if kind == "tools" else ()
        tail = (*([asked] if asked else []), "Another end.")

        def again(tail: tuple[Any, ...] = tail) -> Agent:
            agent = make(False)
            agent.config = agents.says(True, *tail)
            return agent

        executed = lockstep.fork(f"{recorded.run}:{step}", again, tail="live")
        agents.ran.clear()
        restored = lockstep.fork(f"{recorded.run}:{step}", again, tail="live", by="state")
        said = [reply.body for reply in restored.results]
        assert said == [reply.body for reply in executed.results][len(executed.results) - len(said) :], step
        assert lockstep.replay(restored.address, lambda: make(False)).identical, step


def test_restoring_is_refused_where_it_would_not_be_exact(record: Callable[..., Any]) -> None:
    recorded = record(agents.delegating(True))
    with pytest.raises(TargetError, match=r"LS402 .*agents that are tools or subtasks have run before it"):
        lockstep.fork(f"{recorded.run}:2", lambda: agents.delegating(False), by="state")
    recorded = record(agents.tools(True))
    with pytest.raises(TargetError, match=r"LS402 by= is 'code' or 'state', not 'magic'"):
        lockstep.fork(f"{recorded.run}:2", lambda: agents.tools(False), by="magic")
    with pytest.raises(TargetError, match=r"LS402 .*edited answer"):
        lockstep.fork(f"{recorded.run}:2", lambda: agents.tools(False), edits={"1.1": "x"}, by="state")


# Searching.


def test_bisect_names_the_answer_that_made_a_run_bad(record: Callable[..., Any]) -> None:
    places = ("door", "window", "roof")

    def make(bad: str) -> Agent:
        turns = [[agents.call("see", n, where=where)] for n, where in enumerate(places)]

        @agents.tool
        def see(where: str) -> str:
            """Looks somewhere."""
            return f"{'broken' if where == bad else 'fine'} {where}"

        lockstep.mark(see.model.call, effect="read")
        return Agent("inspector", "You inspect.", config=agents.says(True, *turns, "Seen."), tools=[see])

    asyncio.run(_inspect(make("window")))

    def bad(view: Any) -> bool:
        with open_store(None) as store:
            timeline = resolve(store, view.address).timeline
            last = next(step for step in reversed(listing.log(view.address, timeline).steps) if step.kind != "end")
            return "broken" in str(listing.show(resolve(store, last.address)).outcome)

    verdict = lockstep.bisect("ag2/inspector", lambda: make(""), bad=bad)
    assert (verdict.verdict, verdict.step, verdict.effect) == ("culprit", 4, "4.1")


async def _inspect(agent: Agent) -> None:
    import lockstep_ag2
    from lockstep_ag2 import attaching

    await lockstep_ag2.attach(agent).ask("Go on.")
    attaching.owner(agent).close()


def test_bisect_with_a_good_run_names_the_pair_of_which_either_is_enough() -> None:
    places = ("door", "window", "roof", "floor")
    ran: list[str] = []

    def make(bad: tuple[str, ...] = (), name: str = "inspector") -> Agent:
        turns = [[agents.call("see", n, where=where)] for n, where in enumerate(places)]

        @agents.tool
        def see(where: str) -> str:
            """Looks somewhere."""
            ran.append(where)
            return f"{'broken' if where in bad else 'fine'} {where}"

        lockstep.mark(see.model.call, effect="read")
        return Agent(name, "You inspect.", config=agents.says(True, *turns, "Seen."), tools=[see])

    def bad(view: Any) -> bool:
        with open_store(None) as store:
            timeline = resolve(store, view.address).timeline
            effects = [effect for step in timeline.steps for effect in step.effects if effect.kind == "tool"]
            return any("broken" in str(timeline.outcome(effect)) for effect in effects)

    asyncio.run(_inspect(make(name="good")))
    asyncio.run(_inspect(make(("window", "floor"))))
    ran.clear()
    found = lockstep.bisect("ag2/inspector", make, bad=bad, good="ag2/good")
    assert (found.verdict, found.causes, found.minimal) == ("culprit", ("4.1", "8.1"), True)
    # Where the model hears one wrong answer of two, it asks once more: what it asks is known.
    assert ran == []
