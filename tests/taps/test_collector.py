"""What the garbage collector runs belongs to no lane: it comes at other moments in a replay."""

from __future__ import annotations

import gc
import threading
import time
from pathlib import Path
from typing import Any

import pytest

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


def program(collect: str) -> float:
    Stamped.lock = threading.Lock()
    Stamped()
    if collect == "early":
        gc.collect()
    time.perf_counter()
    if collect == "late":
        gc.collect()
    return time.time()


@pytest.mark.parametrize("again", ["early", "late", "never"])
def test_a_collection_at_another_moment_is_no_divergence(again: str) -> None:
    gc.disable()
    try:
        session = start_recording(None, "collected", {})
        seen = program("late")
        finish(session, 0, None)
        replaying = start_replay(None, session.run)
        assert program(again) == seen
        report = finish(replaying, 0, None)
        assert report.identical, report.difference
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


ALARMS = """
import signal

class Late(Exception):
    pass

def late(number, frame):
    raise Late

signal.signal(signal.SIGALRM, late)
kept = [[number] for number in range(200_000)]
for alarm in range(40):
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.004)  # inside: on a busy machine it may be late before this returns
        while True:
            cycle = [[], [], {}]
            cycle.append(cycle)
    except Late:
        print("late", alarm)
"""


def test_what_a_signal_raises_during_a_collection_reaches_the_program(commands: Any, tmp_path: Path) -> None:
    """Most of this program's time is collections: of 150 alarms 85 were lost in a callback of ours. A lost
    one would leave it running for ever."""
    program = tmp_path / "alarms.py"
    program.write_text(ALARMS)
    assert commands.record(program).count("late") == 40
