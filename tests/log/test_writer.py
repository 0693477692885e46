"""The writer: order, acknowledgement, and what happens when the store fails."""

import sqlite3
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from lockstep.errors import Code, StoreError
from lockstep.log.model import Event, Kind, RunState
from lockstep.log.store import Store
from lockstep.log.verify import verify
from lockstep.session import lanes
from lockstep.session.writer import Writer

type Faults = list[tuple[str, BaseException]]


def step(pos: int, body: Any = None) -> Event:
    return Event(Kind.STEP, pos, pos, "main", name="s", body=body)


def begin(store: Store, **options: Any) -> tuple[Writer, Faults]:
    faults: Faults = []
    run = store.create_run("run", None)
    appender = store.stream(run, "main")
    return Writer(appender, lambda where, error: faults.append((where, error)), **options), faults


def test_events_of_many_threads_are_all_there(store: Store) -> None:
    writer, faults = begin(store)
    lock = threading.Lock()
    pos = 0

    def work() -> None:
        nonlocal pos
        for _ in range(500):
            with lock:
                pos += 1
                mine = pos
            writer.put(step(mine, {"thread": threading.get_ident()}))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert writer.flush()
    reader = store.run("run")
    assert sorted(event.pos for _, event in reader.heads(1)) == list(range(1, 2001))
    writer.put(Event(Kind.FINISH, 2001, 0, "main", "failed", body={"faults": ["one", "two"]}))
    assert writer.close()
    assert faults == []
    info = store.runs()[0]
    assert info.state is RunState.FAILED
    assert info.incomplete == 2
    assert verify(store.run("run")).consistent


def test_flush_is_durable_and_close_is_final(store: Store) -> None:
    writer, faults = begin(store)
    for pos in range(1, 20):
        writer.put(step(pos))
        assert writer.flush()
        assert store.runs()[0].streams[0].events == pos
    assert writer.close()
    assert writer.close()
    assert not writer.flush()
    writer.put(step(20))
    assert store.runs()[0].streams[0].events == 19
    assert store.runs()[0].state is RunState.INTERRUPTED
    assert faults == []


def test_the_thread_is_ours_and_not_the_programs(store: Store) -> None:
    before = threading.enumerate()
    seen: list[Any] = []

    class Watching:
        stream = 1

        def append(self, events: Sequence[Event]) -> int:
            seen.append((lanes.inside(), threading.get_ident()))
            return len(events)

        def close(self, state: RunState | None, faults: int = 0) -> None: ...

        def abandon(self) -> None: ...

    writer = Writer(Watching(), lambda where, error: None)
    writer.put(step(1))
    assert writer.flush()
    assert threading.enumerate() == before
    assert lanes.inside() is None
    assert writer.close()
    assert [inside for inside, _ in seen] == [True]
    assert seen[0][1] != threading.get_ident()


def test_a_locked_store_is_waited_for_without_holding_up_the_program(store: Store, path: Path) -> None:
    writer, faults = begin(store)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    for pos in range(1, 1001):
        writer.put(step(pos, "x" * 100))
    # The lock is this thread's to release: had `put` waited for it, this line would not be reached.
    assert not writer.flush(0.05)
    other.execute("COMMIT")
    other.close()
    assert writer.flush(20)
    assert writer.close()
    assert faults == []
    assert store.runs()[0].streams[0].events == 1000


def test_a_store_that_stays_locked_is_told_once_and_caught_up_with(
    store: Store, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lockstep.log.sqlite import append

    monkeypatch.setattr(append, "PATIENCE", 0.05)
    writer, faults = begin(store)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    for pos in range(1, 101):
        writer.put(step(pos))
    while not faults:
        time.sleep(0.01)
    assert not writer.flush(10)
    other.execute("COMMIT")
    other.close()
    assert writer.close()
    ((where, error),) = faults
    assert where == "writing to the store"
    assert isinstance(error, StoreError)
    assert error.code is Code.UNWRITABLE
    assert "lock" in str(error)
    assert store.runs()[0].streams[0].events == 100
    assert verify(store.run("run")).consistent


def test_a_full_queue_ends_the_recording_and_not_the_program(store: Store, path: Path) -> None:
    writer, faults = begin(store, bound=200_000)
    writer.put(step(1))
    assert writer.flush()
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    for pos in range(2, 1000):
        writer.put(step(pos, "x" * 5000))
    other.execute("COMMIT")
    other.close()
    assert [where for where, _ in faults] == ["queueing events"]
    assert not writer.flush()
    assert not writer.close()
    info = store.runs()[0]
    assert info.state is RunState.INTERRUPTED
    # What is there is a beginning of what was put, without a hole.
    positions = [event.pos for _, event in store.run("run").heads(1)]
    assert positions == list(range(1, len(positions) + 1))
    assert verify(store.run("run")).consistent


def test_a_fault_of_ours_ends_the_recording_and_not_the_program(store: Store) -> None:
    writer, faults = begin(store)
    writer.put(step(1))
    writer.put("no event")  # type: ignore[arg-type]
    assert not writer.flush()
    for pos in range(2, 50):
        writer.put(step(pos))
    assert not writer.close()
    assert len(faults) == 1
    assert isinstance(faults[0][1], AttributeError)
    assert store.runs()[0].state is RunState.INTERRUPTED


def test_a_store_that_was_removed_is_noticed(store: Store, path: Path) -> None:
    writer, faults = begin(store)
    writer.put(step(1))
    assert writer.flush()
    path.unlink()
    pos = 1
    while not faults and pos < 3000:
        pos += 1
        writer.put(step(pos))
        writer.flush()
    assert "removed" in str(faults[0][1])
    writer.close()
