"""Time travel as in LangGraph's own savers, and branches of the log from it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt
from saved_graphs import asking, branches, line, thread, told

from lockstep.log.store import open_store
from lockstep_langgraph import LockstepCheckpointer, core

type Saver = LockstepCheckpointer
type Opened = Callable[..., Saver]


def after(graph: Any, node: str) -> Any:
    """The config of the newest checkpoint from which `node` comes next."""
    return next(state.config for state in graph.get_state_history(thread()) if state.next == (node,))


def runs_again(graph: Any) -> None:
    graph.invoke({"seen": []}, thread())
    graph.invoke(Command(resume="yes"), thread())
    graph.invoke(None, after(graph, "act"))


def updated(graph: Any) -> None:
    graph.invoke({"seen": []}, thread())
    graph.invoke(Command(resume="yes"), thread())
    edited = graph.update_state(after(graph, "ask"), {"seen": ["edited"]})
    graph.invoke(None, edited)
    graph.invoke(Command(resume="no"), thread())


def answered_twice(graph: Any) -> None:
    graph.invoke({"seen": []}, thread())
    asked = graph.get_state(thread()).config
    graph.invoke(Command(resume="yes"), thread())
    graph.invoke(Command(resume="no"), asked)


def copied(graph: Any) -> None:
    graph.invoke({"seen": []}, thread())
    graph.update_state(graph.get_state(thread()).config, None, as_node="__copy__")
    graph.invoke(Command(resume="yes"), thread())


def travels_on_and_on(graph: Any) -> None:
    """#4987: the program keeps passing the old config."""
    graph.invoke({"seen": []}, thread())
    old = graph.get_state(thread()).config
    for _ in range(3):
        graph.invoke({"seen": ["again"]}, old)


def rebuilt(graph: Any) -> None:
    from langgraph.types import StateUpdate

    graph.bulk_update_state(
        thread(),
        [
            [StateUpdate({"seen": ["in"]}, "__input__")],
            [StateUpdate({"seen": ["planned"]}, "plan")],
            [StateUpdate({"seen": ["asked"]}, "ask")],
        ],
    )


JOURNEYS = [runs_again, updated, answered_twice, copied, travels_on_and_on, rebuilt]


@pytest.mark.parametrize("journey", JOURNEYS)
def test_time_travel_goes_as_with_the_in_memory_saver(
    saver: Saver, opened: Opened, journey: Callable[[Any], None]
) -> None:
    theirs = asking(InMemorySaver())
    journey(theirs)
    journey(asking(saver))
    for each in (saver, opened()):
        ours = asking(each)
        assert told(ours, thread()) == told(theirs, thread())
        assert ours.get_state(thread()).values == theirs.get_state(thread()).values


def test_what_goes_on_from_the_past_has_a_branch_called_after_what_made_it(saver: Saver, store: str) -> None:
    graph = asking(saver)
    graph.invoke({"seen": []}, thread())
    graph.invoke(Command(resume="yes"), thread())
    assert branches(store) == {"main": ""}
    old = after(graph, "ask")
    graph.invoke(None, after(graph, "act"))
    graph.invoke(None, after(graph, "act"))
    graph.update_state(old, {"seen": ["edited"]})
    graph.invoke({"seen": ["new"]}, old)
    assert set(branches(store)) == {"main", "fork", "fork-2", "update", "branch"}
    assert branches(store)["fork"] == "main"


def test_a_turn_is_whole_in_its_branch(saver: Saver, store: str) -> None:
    graph = asking(saver)
    answered_twice(graph)
    with open_store(store) as opened:
        reader = opened.run("langgraph/t", "branch")
        (own,) = reader.own
        kinds = [event.kind.name for event in reader.stored.events(own.id)]
    assert kinds[:2] == ["FORK", "BEGIN"]
    assert kinds[-1] == "END"
    assert kinds.count("STEP") == 2


def test_a_branch_says_once_that_the_latest_checkpoint_is_there_now(
    saver: Saver, caplog: pytest.LogCaptureFixture
) -> None:
    graph = asking(saver)
    graph.invoke({"seen": []}, thread())
    graph.invoke(Command(resume="yes"), thread())
    with caplog.at_level(logging.WARNING, "lockstep"):
        graph.invoke(None, after(graph, "act"))
        graph.get_state(thread())
    (warned,) = [record.message for record in caplog.records if record.name == "lockstep"]
    assert "'fork'" in warned
    assert "'t'" in warned


def test_a_branch_of_lockstep_s_own_is_never_the_latest_and_is_there_when_it_is_named(
    saver: Saver, opened: Opened, store: str
) -> None:
    graph = line(saver, "a", "b")
    graph.invoke({"seen": []}, thread())
    with saver._core.threads.using("t") as found:
        assert found is not None
        first = found.newest("")
        assert first is not None
        above = found.kept("", first.parent)
        assert above is not None
        made = found.book.fork("try", "main", above.pos, latest=False)
    named = thread(lockstep_branch=made.name)
    again = line(opened(), "a", "b")
    assert again.get_state(named).next == ("b",)
    assert again.invoke(None, named)["seen"] == ["a", "b"]
    again.update_state(named, {"seen": ["tried"]}, as_node="b")
    for each in (again, line(opened(), "a", "b")):
        assert each.get_state(thread()).values["seen"] == ["a", "b"]
        assert len(list(each.get_state_history(thread()))) == 4
        assert each.get_state(named).values["seen"] == ["a", "b", "tried"]
        assert [state.values.get("seen") for state in each.get_state_history(named)][:2] == [
            ["a", "b", "tried"],
            ["a", "b"],
        ]
        assert "lockstep_branch" not in each.get_state(named).metadata
    assert set(branches(store)) == {"main", "try"}


def test_a_checkpoint_that_is_not_there_is_told_of(saver: Saver, caplog: pytest.LogCaptureFixture) -> None:
    line(saver, "a").invoke({"seen": []}, thread())
    with caplog.at_level(logging.WARNING, "lockstep"):
        assert saver.get_tuple(thread(checkpoint_id="1f1eaaaa-0000-6000-8000-000000000000")) is None
    assert "1f1eaaaa" in caplog.text
    assert "empty state" in caplog.text


def test_a_question_that_gets_the_answer_of_another_is_told_of(saver: Saver, caplog: pytest.LogCaptureFixture) -> None:
    """#8837"""

    def ask(state: Any) -> Any:
        return {"seen": [f"{interrupt('first')}+{interrupt('second')}"]}

    graph = line(saver, "ask", ask=ask)
    with caplog.at_level(logging.WARNING, "lockstep"):
        for id in ("asked", "not asked"):
            graph.invoke({"seen": []}, thread(id))
            graph.invoke(Command(resume="A"), thread(id))
        assert graph.invoke(Command(resume="B"), thread("asked"))["seen"] == ["A+B"]
        assert caplog.records == []
        assert graph.invoke(None, thread("not asked"))["seen"] == ["A+A"]
    (warned,) = caplog.records
    assert "'not asked'" in warned.message
    assert "'ask'" in warned.message


def test_subgraphs_keep_their_checkpoints_beside_those_of_the_graph(saver: Saver, opened: Opened) -> None:
    from langgraph.graph import START, StateGraph
    from saved_graphs import Trail

    def build(each: Any) -> Any:
        inner = asking(None)
        outer = StateGraph(Trail).add_node("inner", inner).add_edge(START, "inner")
        return outer.compile(checkpointer=each)

    theirs = build(InMemorySaver())
    for graph in (theirs, build(saver)):
        graph.invoke({"seen": []}, thread())
        graph.invoke(Command(resume="yes"), thread())
    ours = build(opened())
    assert told(ours, thread()) == told(theirs, thread())
    spaces = {each.config["configurable"]["checkpoint_ns"].split(":")[0] for each in opened().list(thread())}
    assert spaces == {"", "inner"}
    assert ours.get_state(thread(), subgraphs=True).values == theirs.get_state(thread(), subgraphs=True).values


def test_a_thread_with_as_many_branches_as_it_may_have_goes_on_as_before(
    saver: Saver, opened: Opened, store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(core, "MOST_BRANCHES", 2)
    theirs = asking(InMemorySaver())
    for graph in (theirs, asking(saver)):
        for journey in (runs_again, updated, answered_twice):
            journey(graph)
    for each in (saver, opened()):
        assert told(asking(each), thread()) == told(theirs, thread())
    assert len(branches(store)) == 2
