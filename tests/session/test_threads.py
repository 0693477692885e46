"""Threads replay in the recorded order of locks, queues, timed waits and polls, without waiting."""

import asyncio
import contextvars
import queue
import random
import select
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, as_completed, wait
from pathlib import Path
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


def _one_worker() -> list[Any]:
    """Threads that hand work to one pool at once, whose only worker takes it as it comes."""
    trace: list[Any] = []
    begun = threading.Barrier(4)
    with ThreadPoolExecutor(1) as pool:

        def submit(name: int) -> None:
            begun.wait()
            futures = [pool.submit(answer, name) for _ in range(3)]
            trace.append((name, [future.result() for future in futures]))

        threads = [threading.Thread(target=submit, args=(name,)) for name in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return trace


PROGRAMS: dict[str, Callable[[], Any]] = {
    "locks": lambda: _shared(threading.Lock),
    "re-entrant locks": lambda: _shared(threading.RLock),
    "conditions": lambda: _shared(threading.Condition),
    "semaphores": lambda: _shared(threading.Semaphore),
    "queues": lambda: _queues(queue.Queue),
    "simple queues": lambda: _queues(queue.SimpleQueue),
    "pools": _pools,
    "one worker of a pool": _one_worker,
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


def _late(seconds: float) -> None:
    """Waits in a way that no tap knows of."""
    select.select([], [], [], seconds)


def test_threads_that_run_in_copies_of_a_tasks_context_are_told_apart_whoever_comes_first() -> None:
    def program(delays: Sequence[float]) -> Any:
        found: list[Any] = [None] * len(delays)

        def work(number: int) -> None:
            _late(delays[number])
            found[number] = answer(0), answer(0)

        async def main() -> None:
            contexts = [contextvars.copy_context() for _ in delays]
            threads = [threading.Thread(target=context.run, args=(work, n)) for n, context in enumerate(contexts)]
            for thread in threads:
                thread.start()
            for thread in threads:
                await asyncio.to_thread(thread.join)

        async def begin() -> None:
            await asyncio.create_task(main())

        asyncio.run(begin())
        return found

    with lockstep.record("contexts"):
        recorded = program([0.0, 0.05, 0.1])
    replayed = lockstep.replay("contexts", lambda: program([0.1, 0.05, 0.0]))
    assert replayed.identical, replayed.divergence
    assert replayed.result == recorded


def test_what_is_made_once_in_a_process_moves_no_other_lock() -> None:
    """A replay in the same process finds it made."""
    made: list[threading.Lock] = []

    def settings() -> threading.Lock:
        if not made:
            made.append(threading.Lock())
        return made[0]

    def program(delays: Sequence[float]) -> Any:
        found: list[int] = []
        with settings():
            guard = threading.Lock()

        def work(number: int) -> None:
            _late(delays[number])
            with guard:
                found.append(number)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(len(delays))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return found

    with lockstep.record("once"):
        recorded = program([0.0, 0.05, 0.1])
    replayed = lockstep.replay("once", lambda: program([0.1, 0.05, 0.0]))
    assert replayed.identical, replayed.divergence
    assert replayed.result == recorded == [0, 1, 2]


SUBMITTING = """
import threading
from concurrent.futures import ThreadPoolExecutor
import lockstep

@lockstep.tool
def ask(n):
    return n

def work():
    begun.wait()
    for n in range(30):
        pool.submit(ask, n)

begun, pool = threading.Barrier(4), ThreadPoolExecutor(4)
threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
pool.shutdown()
"""


def test_threads_that_hand_work_to_a_pool_do_not_wait_for_each_other_forever(tmp_path: Path) -> None:
    """By command, where the lock that all pools share is made by the program too."""
    (tmp_path / "submitting.py").write_text(SUBMITTING)
    lockstep = [sys.executable, "-m", "lockstep"]
    record = [*lockstep, "record", "--run", "submitting", "--", sys.executable, "submitting.py"]
    subprocess.run(record, cwd=tmp_path, check=True, capture_output=True)
    for _ in range(3):
        replayed = subprocess.run(
            [*lockstep, "replay", "submitting"], cwd=tmp_path, check=False, capture_output=True, text=True
        )
        assert replayed.returncode == 0, replayed.stderr


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
