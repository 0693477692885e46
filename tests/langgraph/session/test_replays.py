"""Graphs in a session replay without a model, a tool or their saver, whatever sort they and it are of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from threaded_graphs import PROGRAMS, REACHED, SAVERS, agent, edited_state, thread, two_turns, without_saver

import lockstep
from lockstep.log import untapped
from lockstep.log.model import Kind
from lockstep.log.store import open_store
from lockstep.log.timeline import resolve
from lockstep.session.replaying import Replaying
from lockstep_langgraph.insession import kept


def _count(saver: Any) -> int:
    return sum(1 for id in ("t-1", "t-2", "t-3") for _ in saver.list(thread(id)))


@pytest.mark.parametrize("kind", SAVERS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_replay_is_identical_and_reaches_nothing(program: str, kind: str) -> None:
    saver, run = SAVERS[kind](), PROGRAMS[program]
    with lockstep.record("run") as session:
        recorded = run(saver)
    assert session.report is not None and session.report.faults == ()
    held = _count(saver)
    assert held
    REACHED.clear()
    replay = lockstep.replay("run", lambda: run(saver))
    assert replay.identical, replay.divergence or replay.report
    assert (replay.result, REACHED) == (recorded, [])
    assert _count(saver) == held, "the real threads are as the recording left them"


@pytest.mark.parametrize("kind", ["lockstep", "memory"])
def test_what_a_thread_held_before_the_session_is_served(kind: str) -> None:
    saver = SAVERS[kind]()
    two_turns(saver)
    with lockstep.record("continued"):
        recorded = two_turns(saver)
    assert len(recorded[0][0]) > 6, "the thread went on from before"
    saver.delete_thread("t-1")
    replay = lockstep.replay("continued", lambda: two_turns(saver))
    assert replay.identical, replay.divergence
    assert replay.result == recorded
    assert _count(saver) == 0


@pytest.mark.parametrize(("name", "run"), without_saver())
def test_a_graph_without_a_saver_has_steps_too(name: str, run: Any, store: Path) -> None:
    with lockstep.record("bare") as session:
        recorded = run()
    assert session.report is not None and session.report.faults == ()
    with open_store(str(store)) as opened:
        steps = [step.name for step in resolve(opened, "bare").timeline.steps if step.kind == "step"]
        threads = resolve(opened, "bare/LangGraph.1").timeline.steps
    assert "input" in steps and len(steps) >= 3, steps
    assert [step.name for step in threads if step.kind == "checkpoint"] == steps
    REACHED.clear()
    replay = lockstep.replay("bare", run)
    assert replay.identical, replay.divergence
    assert (replay.result, REACHED) == (recorded, [])


@pytest.mark.parametrize("kind", SAVERS)
def test_who_waits_for_the_turn_of_a_step_keeps_nobody_from_its_thread(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A strand whose turn comes first may be about to note what a task wrote there.
    plain = Replaying.checkpoint
    waited: list[bool] = []

    def others() -> None:
        on = kept.session()
        assert on is not None
        with on.of(saver).threads.using("t-1"):
            pass

    def checkpoint(self: Replaying, *args: Any, **kwargs: Any) -> int:
        done = untapped.allocate_lock()
        done.acquire()

        def run() -> None:
            others()
            done.release()

        untapped.start_new_thread(run, ())
        waited.append(done.acquire(timeout=5))
        return plain(self, *args, **kwargs)

    saver = SAVERS[kind]()
    with lockstep.record("run"):
        recorded = edited_state(saver)
    monkeypatch.setattr(Replaying, "checkpoint", checkpoint)
    replay = lockstep.replay("run", lambda: edited_state(saver))
    assert replay.identical, replay.divergence
    assert replay.result == recorded
    assert waited and all(waited)


def test_what_a_program_calls_between_two_pieces_of_a_stream_and_after_a_graph_is_of_no_thread(store: Path) -> None:
    @lockstep.tool(effect="read")
    def look(at: str) -> str:
        return at

    def program() -> None:
        graph = agent(SAVERS["memory"]())
        for _ in graph.stream({"messages": [HumanMessage("where is my order?")]}, thread()):
            look("between")
        look("after")

    with lockstep.record("run"):
        program()
    with open_store(str(store)) as opened:
        reader = opened.run("run")
        begun = [(seq, event) for seq, event in reader.heads(reader.main) if event.kind is Kind.BEGIN]
        threads = {event.name: reader.field(reader.main, seq, "thread") for seq, event in begun}
        own = [effect.name for step in resolve(opened, "run/t-1").timeline.steps for effect in step.effects]
    assert threads["look"] is None and threads["get_order"] == "langgraph/t-1", threads
    assert "look" not in own and "get_order" in own
    assert lockstep.replay("run", program).identical


def test_a_saver_prepares_its_database_and_forgets_a_thread_as_without_a_session() -> None:
    reached: list[str] = []

    class Prepared(InMemorySaver):
        def setup(self) -> None:
            reached.append("setup")

        def delete_thread(self, thread_id: str) -> None:
            reached.append(f"delete {thread_id}")
            super().delete_thread(thread_id)

    saver = Prepared()

    def program() -> Any:
        saver.setup()
        two_turns(saver)
        saver.delete_thread("t-1")
        return two_turns(saver)

    with lockstep.record("run") as session:
        recorded = program()
    assert session.report is not None and session.report.faults == ()
    assert reached == ["setup", "delete t-1"]
    replay = lockstep.replay("run", program)
    assert reached == ["setup", "delete t-1"], "a replay touches no database"
    assert replay.identical, replay.divergence
    assert replay.result == recorded
