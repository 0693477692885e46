"""Forks of graphs in a session: an edited answer reaches the agent, and nothing reaches the real threads."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest
from threaded_graphs import REACHED, SAVERS, thread, two_turns

import lockstep
from lockstep.session.gate import Gate


def _held(saver: Any) -> int:
    return len([*saver.list(thread())])


@pytest.mark.parametrize("kind", ["lockstep", "memory"])
def test_a_fork_goes_on_from_a_thread_s_step_on_threads_in_memory(kind: str) -> None:
    saver = SAVERS[kind]()
    two_turns(saver)
    with lockstep.record("run"):
        recorded = two_turns(saver)
    held = _held(saver)
    REACHED.clear()
    forked = lockstep.fork("run/t-1:3", lambda: two_turns(saver), branch="again")
    assert forked.state == "complete", forked
    assert (forked.live, REACHED) == (1, ["model"])
    assert len(forked.result[0][0]) == len(recorded[0][0])
    assert _held(saver) == held
    replay = lockstep.replay("run@again", lambda: two_turns(saver))
    assert (replay.identical, replay.result) == (True, forked.result), replay.divergence


@pytest.mark.parametrize("kind", ["lockstep", "memory", "beside"])
def test_an_edited_message_reaches_the_agent_and_a_tool_that_nobody_allowed_does_not_run(kind: str) -> None:
    saver = SAVERS[kind]()
    with lockstep.record("run"):
        two_turns(saver)
    REACHED.clear()
    edited = {"2.1": {"content": "I do not know."}}
    forked = lockstep.fork("run/t-1:2", lambda: two_turns(saver), branch="edited", edits=edited)
    assert forked.state == "complete", forked
    contents = [content for _, _, content in forked.result[0][0]]
    assert "I do not know." in contents and "tool" not in REACHED
    wanted = {"2.1:tool_calls[0].args.order": 9}
    with pytest.raises(lockstep.Refused, match=r"tool get_order\(order=9\)"):
        lockstep.fork("run/t-1:2", lambda: two_turns(saver), branch="refused", edits=wanted)
    assert "tool" not in REACHED


@pytest.mark.timeout(20)
@pytest.mark.parametrize("kind", ["lockstep", "memory", "beside"])
def test_the_workers_of_a_graph_end_with_a_fork_that_is_refused(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that is about to set its result waits for the fork to go live, and goes on after the refusal."""
    saver = SAVERS[kind]()
    with lockstep.record("run"):
        two_turns(saver)
    woken, sleep = Gate.awake, time.sleep

    def awake(self: Gate, strand: str) -> None:
        woken(self, strand)
        if strand != "main":
            sleep(0.05)

    monkeypatch.setattr(Gate, "awake", awake)
    for number in range(4):
        wanted = {"2.1:tool_calls[0].args.order": 9}
        with pytest.raises(lockstep.Refused):
            lockstep.fork("run/t-1:2", lambda: two_turns(saver), branch=f"refused-{number}", edits=wanted)
    workers = [thread for thread in threading.enumerate() if thread.name.startswith("ThreadPoolExecutor")]
    for worker in workers:
        worker.join(5)
    assert not [worker for worker in workers if worker.is_alive()]
