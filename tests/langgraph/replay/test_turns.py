"""A turn is on while the graph runs, is never seen by its caller, and says how it ended."""

from __future__ import annotations

import asyncio
import contextvars
import operator
from typing import Annotated, Any, TypedDict

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt

from lockstep.session import snapshot
from lockstep_langgraph import turns


class Journal:
    def __init__(self) -> None:
        self.begun: list[tuple[str, Any, bytes]] = []
        self.ended: list[tuple[str, Any]] = []

    def begin_turn(self, entry: str, request: Any, seed: bytes) -> Journal:
        self.begun.append((entry, request, seed))
        return self

    def end(self, status: str, value: Any) -> None:
        self.ended.append((str(status), value))

    def call(self, lane: str, kind: str, within: Any = None) -> Any:
        raise AssertionError


class Codec:
    def dump(self, value: Any, path: str = "") -> Any:
        return snapshot.to_value(value)


class Keeper:
    codec = Codec()

    def __init__(self) -> None:
        self.journal = Journal()
        self.faults: list[str] = []

    def branch_for(self, turn: turns.Turn) -> Journal:
        return self.journal

    def fault(self, where: str, error: BaseException) -> None:
        self.faults.append(f"{where}: {error!r}")


class Saver(InMemorySaver):
    """A saver with a core, whose puts enter the running turn."""

    def __init__(self) -> None:
        super().__init__()
        self._core = Keeper()

    def put(self, *args: Any) -> Any:
        turn = turns.running()
        assert turn is not None, "a put of a graph belongs to a turn"
        turn.enter()
        return super().put(*args)

    async def aput(self, *args: Any) -> Any:
        return self.put(*args)


class State(TypedDict):
    seen: Annotated[list[str], operator.add]


def graph_of(saver: Any, *nodes: Any) -> Any:
    builder = StateGraph(State)
    before = START
    for number, node in enumerate(nodes):
        name = f"n{number}"
        builder.add_node(name, node)
        builder.add_edge(before, name)
        before = name
    builder.add_edge(before, END)
    return builder.compile(checkpointer=saver)


def thread(name: str = "t") -> Any:
    return {"configurable": {"thread_id": name}}


def says(state: State) -> Any:
    return {"seen": [f"{turns.running() is not None}"]}


async def asays(state: State) -> Any:
    return says(state)


def test_a_node_runs_in_the_turn_and_the_caller_does_not() -> None:
    saver = Saver()
    graph = graph_of(saver, says)
    assert graph.invoke({"seen": []}, thread()) == {"seen": ["True"]}
    for _ in graph.stream({"seen": []}, thread()):
        assert turns.running() is None
    assert [entry for entry, _, _ in saver._core.journal.begun] == ["invoke", "stream"]
    assert [status for status, _ in saver._core.journal.ended] == ["ok", "ok"]
    assert turns.running() is None


def test_an_async_turn_is_seen_by_its_own_tasks_only() -> None:
    saver = Saver()
    graph = graph_of(saver, asays)

    async def main() -> None:
        both = await asyncio.gather(*(graph.ainvoke({"seen": []}, thread(name)) for name in "ab"))
        assert both == [{"seen": ["True"]}] * 2
        async for _ in graph.astream({"seen": []}, thread("c")):
            assert turns.running() is None
        async for _ in graph.astream_events({"seen": []}, thread("d"), version="v2"):
            assert turns.running() is None
        assert turns.running() is None

    asyncio.run(main())
    entries = [entry for entry, _, _ in saver._core.journal.begun]
    assert entries == ["ainvoke", "ainvoke", "astream", "astream_events"]


def test_what_was_asked_is_recorded_without_what_is_the_program_s_own_machinery() -> None:
    saver = Saver()
    graph = graph_of(saver, says)
    config = {**thread(), "callbacks": [], "tags": ["night"], "metadata": {"who": "me"}}
    graph.invoke({"seen": ["x"]}, config, durability="sync", interrupt_after=["n0"])
    [(_, request, seed)] = saver._core.journal.begun
    assert request["input"] == {"seen": ["x"]}
    assert request["config"]["tags"] == ["night"]
    assert request["config"]["metadata"]["who"] == "me"
    assert request["config"]["configurable"] == {"thread_id": "t"}
    assert request["options"]["durability"] == "sync"
    assert request["options"]["interrupt_after"] == ["n0"]
    assert len(seed) == 16


def test_a_subgraph_is_part_of_the_turn() -> None:
    saver = Saver()
    inner = graph_of(None, says, says)
    graph = graph_of(saver, inner)
    assert graph.invoke({"seen": []}, thread()) == {"seen": ["True", "True"]}
    assert len(saver._core.journal.begun) == 1


def test_a_failure_ends_the_turn_with_its_exception() -> None:
    saver = Saver()

    def fails(state: State) -> Any:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        graph_of(saver, fails).invoke({"seen": []}, thread())
    [(status, error)] = saver._core.journal.ended
    assert status == "error"
    assert isinstance(error, ValueError)


def test_a_stream_that_is_left_is_closed_as_the_original_is() -> None:
    saver = Saver()
    stream = graph_of(saver, says, says).stream({"seen": []}, thread(), stream_mode="updates")
    next(stream)
    stream.close()
    assert [status for status, _ in saver._core.journal.ended] == ["closed"]
    with pytest.raises(StopIteration):
        next(stream)


def test_an_exception_thrown_into_a_stream_reaches_the_graph() -> None:
    saver = Saver()
    stream = graph_of(saver, says, says).stream({"seen": []}, thread(), stream_mode="updates")
    next(stream)
    with pytest.raises(KeyError):
        stream.throw(KeyError("mine"))
    assert [status for status, _ in saver._core.journal.ended] == ["error"]


def test_a_cancelled_turn_says_so() -> None:
    saver = Saver()

    async def waits(state: State) -> Any:
        await asyncio.Event().wait()

    async def main() -> None:
        task = asyncio.create_task(graph_of(saver, waits).ainvoke({"seen": []}, thread()))
        while not saver._core.journal.begun:
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert [status for status, _ in saver._core.journal.ended] == ["cancelled"]


def test_an_async_stream_that_is_left_is_closed() -> None:
    saver = Saver()

    async def main() -> None:
        stream = graph_of(saver, asays, asays).astream({"seen": []}, thread(), stream_mode="updates")
        await anext(stream)
        await stream.aclose()

    asyncio.run(main())
    assert [status for status, _ in saver._core.journal.ended] == ["closed"]


def test_the_end_says_what_the_turn_waits_for() -> None:
    saver = Saver()

    def asks(state: State) -> Any:
        return {"seen": [interrupt("really?")]}

    graph = graph_of(saver, asks)
    graph.invoke({"seen": []}, thread())
    graph.invoke(Command(resume="yes"), thread())
    (_, waiting), (_, done) = saver._core.journal.ended
    assert waiting == {"keys": ["seen"], "interrupts": ["really?"]}
    assert done == {"keys": ["seen"]}


def test_a_graph_with_another_saver_is_left_alone() -> None:
    graph = graph_of(InMemorySaver(), says)
    stream = graph.stream({"seen": []}, thread(), stream_mode="values")
    assert stream.gi_code.co_filename.endswith("main.py"), "the caller has langgraph's own generator"
    assert [*stream][-1] == {"seen": ["False"]}


def test_what_a_node_leaves_running_is_part_of_no_turn_afterwards() -> None:
    saver = Saver()
    found: list[contextvars.Context] = []

    def leaves(state: State) -> Any:
        found.append(contextvars.copy_context())
        return {"seen": []}

    graph_of(saver, leaves).invoke({"seen": []}, thread())
    assert found[0].run(turns.running) is None


def test_undone_the_methods_are_langgraph_s_own(monkeypatch: pytest.MonkeyPatch) -> None:
    from langgraph.pregel import Pregel

    turns.install()  # savers of other tests may all be gone
    monkeypatch.setattr(turns, "_installed", 1)  # savers of other tests may be alive
    assert hasattr(Pregel.stream, "__wrapped__")
    turns.install()
    turns.uninstall()
    assert hasattr(Pregel.stream, "__wrapped__"), "installed twice, undone once"
    turns.uninstall()
    assert not hasattr(Pregel.stream, "__wrapped__")
    turns.install()
