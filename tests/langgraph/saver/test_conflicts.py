"""Two turns at once on one thread (#8796): each is kept, and the program is told or the later one is refused."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from typing import Any

import pytest
from langgraph.types import Command
from saved_graphs import asking, branches, line, thread

from lockstep_langgraph import ConflictError, LockstepCheckpointer

type Saver = LockstepCheckpointer
type Opened = Callable[..., Saver]


def meeting(saver: Any, *, parties: int = 2) -> Any:
    """A graph whose turns wait for each other in their node."""
    met = threading.Barrier(parties, timeout=20)

    def work(state: Any) -> Any:
        met.wait()
        return {"seen": [state["word"]]}

    return line(saver, "work", "rest", work=work)


def at_once(graphs: list[Any], words: list[str]) -> list[Any]:
    found: list[Any] = [None] * len(words)

    def run(number: int) -> None:
        try:
            found[number] = graphs[number % len(graphs)].invoke({"word": words[number]}, thread())
        except BaseException as error:
            found[number] = error

    running = [threading.Thread(target=run, args=(number,)) for number in range(len(words))]
    for each in running:
        each.start()
    for each in running:
        each.join(30)
    return found


def warned(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.message for record in caplog.records if "LS409" in record.message]


def words_of(saver: Saver) -> set[str]:
    """What the last checkpoints of a thread's turns say, of all that can be listed."""
    return {
        word
        for found in saver.list(thread())
        for word in found.checkpoint["channel_values"].get("seen", [])
        if word != "rest"
    }


def test_both_turns_are_kept_and_the_program_is_told(
    saver: Saver, opened: Opened, store: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "lockstep"):
        results = at_once([meeting(saver)], ["one", "two"])
    assert sorted(result["seen"] for result in results) == [["one", "rest"], ["two", "rest"]]
    (message,) = warned(caplog)
    assert "'t'" in message
    for each in (saver, opened()):
        assert words_of(each) == {"one", "two"}
    assert branches(store) == {"main": "", "branch": "main"}


def test_in_a_thread_that_has_gone_on_before_too(
    saver: Saver, opened: Opened, store: str, caplog: pytest.LogCaptureFixture
) -> None:
    line(saver, "work", "rest").invoke({"seen": ["before"]}, thread())
    with caplog.at_level(logging.WARNING, "lockstep"):
        results = at_once([meeting(saver, parties=3)], ["one", "two", "three"])
    assert {result["seen"][-2] for result in results} == {"one", "two", "three"}
    assert len(warned(caplog)) == 2
    assert words_of(opened()) == {"before", "work", "one", "two", "three"}
    assert set(branches(store)) == {"main", "branch", "branch-2"}


def test_two_checkpointers_of_one_store_see_each_other(
    saver: Saver, opened: Opened, caplog: pytest.LogCaptureFixture
) -> None:
    met = threading.Barrier(2, timeout=20)

    def work(state: Any) -> Any:
        met.wait()
        return {"seen": [state["word"]]}

    with caplog.at_level(logging.WARNING, "lockstep"):
        at_once([line(each, "work", "rest", work=work) for each in (saver, opened())], ["one", "two"])
    assert len(warned(caplog)) == 1
    for each in (saver, opened()):
        assert words_of(each) == {"one", "two"}


def test_the_later_turn_is_refused_where_that_is_wanted(opened: Opened, store: str) -> None:
    strict = opened(on_conflict="raise")
    inside, go_on = threading.Event(), threading.Event()

    def work(state: Any) -> Any:
        inside.set()
        go_on.wait(20)
        return {"seen": [state["word"]]}

    graph = line(strict, "work", "rest", work=work)
    first = threading.Thread(target=graph.invoke, args=({"word": "one"}, thread()))
    first.start()
    assert inside.wait(20)
    ran: list[str] = []
    other = line(opened(on_conflict="raise"), "work", "rest", work=lambda state: ran.append("work"))
    for each in (graph, other):
        with pytest.raises(ConflictError, match="LS409"):
            each.invoke({"word": "two"}, thread())
    go_on.set()
    first.join(20)
    assert ran == []
    assert graph.get_state(thread()).values["seen"] == ["one", "rest"]
    assert branches(store) == {"main": ""}
    assert graph.invoke({"word": "three"}, thread())["seen"] == ["one", "rest", "three", "rest"]


def test_in_a_loop_nothing_of_the_refused_turn_runs(opened: Opened) -> None:
    ran: list[str] = []

    async def work(state: Any) -> Any:
        ran.append(state["word"])
        await asyncio.sleep(0)
        return {"seen": [state["word"]]}

    graph = line(opened(on_conflict="raise"), "work", "rest", work=work)

    async def together() -> list[Any]:
        turns = [graph.ainvoke({"word": word}, thread()) for word in ("one", "two")]
        return await asyncio.gather(*turns, return_exceptions=True)

    found = asyncio.run(together())
    assert sorted(type(each).__name__ for each in found) == ["ConflictError", "dict"]
    assert len(ran) == 1


def test_turns_one_after_the_other_and_time_travel_are_no_conflict(
    opened: Opened, caplog: pytest.LogCaptureFixture
) -> None:
    graph = asking(opened(on_conflict="raise"))
    with caplog.at_level(logging.WARNING, "lockstep"):
        graph.invoke({"seen": []}, thread())
        asked = graph.get_state(thread()).config
        graph.invoke(Command(resume="yes"), thread())
        graph.invoke(Command(resume="no"), asked)
        graph.update_state(asked, {"seen": ["edited"]})
        graph.invoke(None, asked)
        for _ in graph.stream({"seen": []}, thread(), stream_mode="values"):
            break
        graph.invoke({"seen": []}, thread())
    assert warned(caplog) == []
