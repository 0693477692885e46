"""What the garbage collector runs belongs to no lane: it comes at other moments in a replay."""

from __future__ import annotations

import gc
import threading
import time
from typing import Any

from lockstep.session.report import Report
from lockstep.session.session import finish, start_recording, start_replay


class Stamped:
    """Reads the clock and takes a lock when it goes."""

    lock: Any = None

    def __init__(self) -> None:
        self.itself = self

    def __del__(self) -> None:
        time.perf_counter()
        with self.lock:
            time.time()


def program(collect_early: bool) -> float:
    Stamped.lock = threading.Lock()
    Stamped()
    if collect_early:
        gc.collect()
    time.perf_counter()
    Stamped()
    gc.collect()
    return time.time()


def replayed(run: str, collect_early: bool) -> tuple[float, Report]:
    session = start_replay(None, run)
    seen = program(collect_early)
    return seen, finish(session, 0, None)


def test_a_collection_at_another_moment_is_no_divergence() -> None:
    gc.disable()
    try:
        session = start_recording(None, "collected", {})
        seen = program(collect_early=False)
        finish(session, 0, None)
        for early in (False, True):
            again, report = replayed(session.run, early)
            assert report.identical, report.difference
            assert again == seen
    finally:
        gc.enable()


def test_what_its_last_reference_frees_is_the_programs_own() -> None:
    class Counted:
        def __del__(self) -> None:
            time.perf_counter()

    def drop(often: int) -> None:
        for _ in range(often):
            Counted()

    session = start_recording(None, "dropped", {})
    drop(2)
    finish(session, 0, None)
    session_again = start_replay(None, session.run)
    drop(1)
    report = finish(session_again, 0, None)
    assert report.difference is not None and report.difference.code == "LS105"


def test_the_collector_is_let_be_after_the_session() -> None:
    before = list(gc.callbacks)
    finish(start_recording(None, "empty", {}), 0, None)
    assert gc.callbacks == before
