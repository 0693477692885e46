"""Sessions in code whose program forks."""

from __future__ import annotations

import multiprocessing as mp
import os
import time
import uuid
from pathlib import Path
from typing import Any

import lockstep
from lockstep.log.store import open_store


def work(queue: Any) -> None:
    queue.put((time.time(), str(uuid.uuid4())))


def body() -> list[Any]:
    fork = mp.get_context("fork")
    queue = fork.SimpleQueue()
    children = [fork.Process(target=work, args=(queue,)) for _ in range(3)]
    for child in children:
        child.start()
    answers = [queue.get() for _ in children]
    for child in children:
        child.join()
    return answers


def test_forked_children_are_followed_in_process_too(tmp_path: Path) -> None:
    store = str(tmp_path / "store.db")
    with lockstep.record("in", store=store) as session:
        recorded = body()
    with open_store(store) as opened:
        processes = [stream.process for stream in opened.run("in").streams]
    assert sorted(processes) == ["main", "main/work.1", "main/work.2", "main/work.3"]
    assert session.report is not None and not session.report.uncovered
    again = lockstep.replay("in", body, store=store)
    assert again.identical, again.divergence
    assert (again.result, again.report.digest) == (recorded, session.report.digest)


def test_a_child_that_leaves_the_block_ends_its_own_recording(tmp_path: Path) -> None:
    store = str(tmp_path / "store.db")
    with lockstep.record("in", store=store) as session:
        child = os.fork()
        seen = time.time()
        if child:
            os.waitpid(child, 0)
    if not child:
        os._exit(0 if seen else 1)
    assert session.report is not None and session.report.lanes == 2
    with open_store(store) as opened:
        reader = opened.run("in")
        states = {stream.process: reader.end(stream.id).state.value for stream in reader.streams}
    assert states == {"main": "complete", "main/fork.1": "complete"}


def test_a_process_that_a_replay_in_process_does_not_start_is_the_difference(tmp_path: Path) -> None:
    store = str(tmp_path / "store.db")

    def fork() -> None:
        child = os.fork()
        if not child:
            os._exit(0)
        os.waitpid(child, 0)

    with lockstep.record("in", store=store):
        fork()
    again = lockstep.replay("in", lambda: None, store=store)
    assert not again.identical
    assert again.report.difference is not None and again.report.difference.code == "LS104"
