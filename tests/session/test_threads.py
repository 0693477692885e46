"""Threads replay in the recorded order of locks, queues, timed waits and polls, without waiting."""

import queue
import random
import threading
import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, as_completed, wait
from typing import Any

import pytest

import lockstep


@lockstep.tool
def answer(n: int) -> float:
    time.sleep(random.uniform(0.0, 0.004))
    return random.random()


def _shared(make: Callable[[], Any]) -> list[Any]:
    trace: list[Any] = []
    guard = make()

    def work(name: int) -> None:
        for turn in range(3):
            got = answer(name)
            with guard:
                trace.append((name, turn, got, len(trace)))

    threads = [threading.Thread(target=work, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return trace


def _queues(make: Callable[[], Any]) -> list[Any]:
    jobs, results = make(), queue.Queue()  # type: ignore[var-annotated]

    def work(name: int) -> None:
        while (job := jobs.get()) is not None:
            results.put((name, job, answer(job)))

    threads = [threading.Thread(target=work, args=(name,)) for name in range(3)]
    for thread in threads:
        thread.start()
    for job in range(8):
        jobs.put(job)
    for _ in threads:
        jobs.put(None)
    found = [results.get(timeout=10) for _ in range(8)]
    for thread in threads:
        thread.join()
    return found


def _pools() -> list[Any]:
    trace: list[Any] = []
    with ThreadPoolExecutor(3) as pool:
        done, left = wait([pool.submit(answer, n) for n in range(6)], return_when=FIRST_COMPLETED)
        trace.append((len(done), len(left)))
        trace.extend(future.result() for future in as_completed([*left]))
    return trace


def _limits() -> list[Any]:
    trace: list[Any] = []
    event, lock, jobs = threading.Event(), threading.Lock(), queue.Queue[int]()

    def work() -> None:
        answer(0)
        event.set()
        with lock:
            answer(1)

    thread = threading.Thread(target=work)
    thread.start()
    while not event.is_set():
        trace.append(event.wait(0.0005))
    while thread.is_alive():
        got = lock.acquire(timeout=0.0005)
        trace.append(got)
        if got:
            lock.release()
        thread.join(0.0005)
    try:
        jobs.get(timeout=0.01)
    except queue.Empty:
        trace.append("empty")
    return trace


PROGRAMS: dict[str, Callable[[], Any]] = {
    "locks": lambda: _shared(threading.Lock),
    "re-entrant locks": lambda: _shared(threading.RLock),
    "conditions": lambda: _shared(threading.Condition),
    "semaphores": lambda: _shared(threading.Semaphore),
    "queues": lambda: _queues(queue.Queue),
    "simple queues": lambda: _queues(queue.SimpleQueue),
    "pools": _pools,
    "time limits and polls": _limits,
}


@pytest.mark.parametrize("kind", PROGRAMS)
def test_threads_replay_in_the_recorded_order(kind: str) -> None:
    program = PROGRAMS[kind]
    with lockstep.record("threads") as session:
        recorded = program()
    assert session.report is not None
    assert session.report.faults == ()
    for _ in range(5):
        replayed = lockstep.replay("threads", program)
        assert replayed.divergence is None
        assert replayed.result == recorded


def test_a_replay_waits_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []

    def program() -> None:
        time.sleep(0.02)
        threading.Event().wait(0.02)

    with lockstep.record("slow"):
        program()
    from lockstep.taps.threads import waits

    monkeypatch.setattr(waits, "_sleep", slept.append)
    assert lockstep.replay("slow", program).identical
    assert slept == []


def test_a_lock_that_one_thread_uses_is_not_in_the_log() -> None:
    from lockstep.log.model import Kind
    from lockstep.log.store import open_store

    with lockstep.record("alone"):
        lock = threading.Lock()
        for _ in range(100):
            with lock:
                pass
    with open_store() as store:
        reader = store.run("alone")
        kinds = [event.kind for _, event in reader.heads(reader.streams[0].id)]
    assert Kind.LOCK not in kinds
    assert len(kinds) < 10


def test_locks_behave_as_the_plain_ones_do() -> None:
    with lockstep.record("plain"):
        lock, again = threading.Lock(), threading.RLock()
        assert isinstance(lock, type(threading.Lock()))
        assert lock.acquire()
        assert lock.locked()
        assert not lock.acquire(blocking=False)
        assert not lock.acquire(timeout=0.001)
        lock.release()
        with pytest.raises(RuntimeError):
            lock.release()
        with pytest.raises(ValueError, match="timeout"):
            lock.acquire(timeout=-5)
        with again, again:
            pass
        with pytest.raises(RuntimeError):
            again.release()
        with pytest.raises(RuntimeError):
            threading.Condition(lock).notify()
    assert lock.acquire(blocking=False)
    lock.release()


def test_a_thread_that_makes_fewer_calls_is_found_when_it_ends() -> None:
    def program(times: int) -> None:
        def work() -> None:
            for n in range(times):
                answer(n)

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        answer(9)

    with lockstep.record("fewer"):
        program(3)
    replayed = lockstep.replay("fewer", lambda: program(2))
    difference = replayed.report.difference
    assert difference is not None
    assert (difference.code, difference.step, difference.lane, difference.name) == ("LS104", 3, "main/work.1", "answer")
