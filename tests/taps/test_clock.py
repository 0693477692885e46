"""The clock tap: recorded programs see what they would see bare, and replays see it again."""

import datetime
import os
import sys
import threading
import time
import types
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from tests.taps.effect_around import call

from lockstep.errors import Code
from lockstep.session import lanes
from lockstep.taps import clock
from lockstep.taps.clock import dates, private, readers

PROGRAMS = Path(__file__).parent / "programs"
ROWS = PROGRAMS / "clock_rows.py"
# What a program can work out without a clock is the same with and without us.
FIXED = ("unknown_clock", "wrong_arguments", "isinstance", "utcnow_warning")


class _Slow(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        time.sleep(0.2)
        self.send_response(200)
        self.send_header("Content-Length", "4")
        self.end_headers()
        self.wfile.write(b"slow")

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def rows(commands: Any) -> dict[str, dict[str, tuple[str, Any]]]:
    """Every row, run bare, recorded, and replayed with the server gone."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Slow) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_address[1]}/"
        bare = commands.bare(ROWS, SLOW_URL=url)
        recorded = commands.record(ROWS, SLOW_URL=url)
        server.shutdown()
    replayed = commands.replay(ROWS, SLOW_URL=url)
    return {"bare": commands.rows(bare), "recorded": commands.rows(recorded), "replayed": commands.rows(replayed)}


def test_row(rows: dict[str, dict[str, tuple[str, Any]]], row: str) -> None:
    bare, recorded, replayed = (rows[run][row] for run in ("bare", "recorded", "replayed"))
    assert recorded[1] == bare[1], "another type or length than bare"
    assert replayed == recorded
    if row in FIXED:
        assert recorded == bare


def test_time_machine_in_the_program_travels_and_comes_back(commands: Any) -> None:
    # Its C code crashes the interpreter on anything of ours, as soon as it has been loaded with it.
    program = PROGRAMS / "time_machine_travel.py"
    bare, recorded = commands.bare(program).splitlines(), commands.record(program).splitlines()
    frozen = [0, 1, 3, 6]
    assert [recorded[line] for line in frozen] == [bare[line] for line in frozen]
    assert "not covered: nothing" in commands.said
    assert commands.replay(program).splitlines() == recorded


def test_the_recorded_time_zone_is_replayed_on_a_machine_with_another(commands: Any) -> None:
    program = PROGRAMS / "local_time.py"
    recorded = commands.record(program, TZ="Asia/Tokyo", SHOWN="no")
    assert "('JST', 'JST')" in recorded
    assert recorded == commands.bare(program, TZ="Asia/Tokyo", SHOWN="no")
    assert commands.replay(program, TZ="America/New_York", SHOWN="no") == recorded


@pytest.fixture
def zone() -> Iterator[Any]:
    """Sets the process's time zone, for the test."""

    def choose(name: str) -> None:
        os.environ["TZ"] = name
        time.tzset()

    before = os.environ.get("TZ")
    yield choose
    if before is None:
        del os.environ["TZ"]
    else:
        os.environ["TZ"] = before
    time.tzset()


def test_a_zone_is_restored_by_name_or_else_by_offset(zone: Any) -> None:
    from lockstep.taps.clock import zone as zones

    stamp = 1_700_000_000
    zone("Asia/Kolkata")
    kolkata = zones.facts()
    zone("America/New_York")
    assert zones.restore(kolkata) == "Asia/Kolkata"
    assert (time.localtime(stamp).tm_hour, time.localtime(stamp).tm_min) == (3, 43)
    zones.undo()
    assert time.tzname == ("EST", "EDT")
    assert zones.restore({**kolkata, "TZ": None, "zone": None}) == "<IST>-5:30:00"
    assert (time.localtime(stamp).tm_hour, time.localtime(stamp).tm_min) == (3, 43)
    zones.undo()
    assert zones.restore(zones.facts()) is None


def test_date_today_is_one_read(session: Any) -> None:
    def program() -> Any:
        datetime.date.today()
        datetime.datetime.today()
        return lanes.lane().reads

    assert session.same(program) == {"date.today": 1, "datetime.today": 1}


def test_twins_read_one_clock(session: Any) -> None:
    session.record(lambda: [time.time(), time.monotonic_ns()])
    seconds, nanoseconds = session.result
    replay = session.replay(lambda: [time.time_ns(), time.clock_gettime(time.CLOCK_MONOTONIC)])
    assert replay.identical
    assert session.result[0] / 1e9 == seconds
    assert session.result[1] == nanoseconds / 1e9


def test_floats_are_those_of_the_real_clock() -> None:
    # Bare, CPython divides the same nanoseconds; so must we, to the last bit.
    for read, read_ns in ((readers.real["time"], readers.real["time_ns"]),):
        for _ in range(2000):
            before, seconds, after = read_ns(), read(), read_ns()
            assert before / 1e9 <= seconds <= after / 1e9
            assert round(seconds * 1e9) in range(before - 256, after + 257)


def test_now_is_exact_to_the_microsecond() -> None:
    epoch = datetime.datetime(1970, 1, 1)
    for microseconds in range(1_700_000_000_000_000, 1_700_000_000_200_000, 37):
        made = dates._plain_fromtimestamp(microseconds / 1e6, datetime.UTC).replace(tzinfo=None)
        assert made - epoch == datetime.timedelta(microseconds=microseconds)


def test_one_read_more_is_a_divergence_that_names_clock_and_place(session: Any) -> None:
    session.record(lambda: time.time())
    report = session.replay(lambda: [time.time(), time.time()])
    assert not report.identical
    assert report.difference.code == Code.READS
    assert report.difference.name == "time.time"
    assert report.difference.expected == "1 reads in this lane"
    assert "test_clock.py" in report.difference.source


def test_one_read_fewer_is_a_divergence(session: Any) -> None:
    session.record(lambda: [time.time(), time.monotonic()])
    report = session.replay(lambda: time.time())
    assert report.difference.code == Code.READS
    assert report.difference.path == "time.monotonic"


def test_a_swallowed_divergence_is_still_one(session: Any) -> None:
    def careless() -> str:
        try:
            return f"{time.time()} {time.time()}"
        except BaseException:
            return "no time"

    session.record(lambda: time.time())
    report = session.replay(careless)
    assert session.result == "no time"
    assert report.difference.code == Code.READS


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_read_more_in_a_thread_is_found(session: Any) -> None:
    def program(times: int) -> None:
        thread = threading.Thread(target=lambda: [time.time() for _ in range(times)])
        thread.start()
        thread.join()

    session.record(lambda: program(2))
    report = session.replay(lambda: program(3))
    assert report.difference.code == Code.READS
    assert report.difference.lane != "main"


def test_what_a_client_reads_inside_an_effect_is_its_own(session: Any) -> None:
    def program() -> Any:
        first = time.monotonic()
        value = call(lambda: [time.monotonic() for _ in range(5)] and "answer")
        return first, value, time.monotonic(), lanes.lane().reads

    assert session.same(program)[3] == {"time.monotonic": 2}


def test_reads_before_a_call_are_compared_at_the_call(session: Any) -> None:
    session.record(lambda: [time.time(), time.time(), call(lambda: 1)])
    report = session.replay(lambda: [time.time(), call(lambda: 1), time.time()])
    assert report.difference.code == Code.READS
    assert report.difference.path == "time.time"


def test_more_log_lines_than_recorded_are_no_divergence(session: Any) -> None:
    import logging

    def program(lines: int) -> list[float]:
        return [logging.LogRecord("name", 20, "path", 1, "message", (), None).created for _ in range(lines)]

    session.record(lambda: program(2))
    recorded = session.result
    report = session.replay(lambda: program(4))
    assert report.identical
    assert session.result[:2] == recorded
    assert recorded[1] <= session.result[2] <= session.result[3] < recorded[1] + 60
    assert session.replay(lambda: program(1)).identical


def test_what_waits_in_the_standard_library_keeps_the_real_clock(session: Any) -> None:
    import asyncio  # noqa: F401
    import multiprocessing.pool  # noqa: F401
    import subprocess

    def program() -> Any:
        found = {}
        for name in private.WAITING:
            module = sys.modules.get(name)
            for held in vars(module).values() if module is not None else ():
                monotonic = held.monotonic if isinstance(held, types.ModuleType) and held.__name__ == "time" else held
                if getattr(monotonic, "__name__", "") == "monotonic":
                    found[name] = monotonic is readers.real["monotonic"]
        return found, lanes.lane().reads

    found, reads = session.same(program)
    assert {"asyncio.base_events", subprocess.__name__} <= found.keys()
    assert all(found.values())
    assert reads == {}


def test_a_time_limit_counted_down_over_several_waits_runs_out_where_it_did(session: Any) -> None:
    import queue
    import threading

    def program() -> list[str]:
        waiting: queue.Queue[int] = queue.Queue()
        limit = threading.Semaphore(0)
        found = []
        for _ in range(3):
            try:
                waiting.get(timeout=0.01)
            except queue.Empty:
                found.append("empty")
            found.append(str(limit.acquire(timeout=0.01)))
        return found

    assert session.same(program) == ["empty", "False"] * 3


@pytest.fixture
def late(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    """A module that took its clocks before the taps."""
    module = types.ModuleType("took_clocks_before")
    vars(module).update(time=readers.real["time"], fine=time.time, now=dates._plain_now, kept=len)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return module


def test_names_taken_before_are_named_and_served_for_the_session(session: Any, late: types.ModuleType) -> None:
    import_module("lockstep.taps.clock").install()
    held = [name for name in clock.held_names() if name.startswith(late.__name__)]
    assert held == ["took_clocks_before.now", "took_clocks_before.time"]
    session.same(lambda: [late.time(), late.now()])
    assert late.time is readers.real["time"]
    assert late.now is dates._plain_now


def test_after_uninstall_everything_is_the_original() -> None:
    clock.install()
    assert time.time is not readers.real["time"]
    assert clock.uninstall() == []
    try:
        for name in clock._taps:
            assert getattr(time, name) is readers.real[name]
        assert type(datetime.datetime.now) is types.BuiltinMethodType
        assert type(datetime.date.today) is types.BuiltinMethodType
        assert type(datetime.datetime.now()) is datetime.datetime
    finally:
        clock.install()
    assert datetime.datetime.now.__qualname__ == "datetime.now"


def test_a_patch_on_top_of_ours_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    clock.install()
    with monkeypatch.context() as patch:
        patch.setattr(time, "time", lambda: 5.0)
        kept = clock.uninstall()
        try:
            assert kept == ["time.time"]
            assert time.time() == 5.0
        finally:
            clock.install()


def test_a_clock_that_the_program_mocks_is_its_own(session: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def program() -> Any:
        with monkeypatch.context() as patch:
            patch.setattr(time, "time", lambda: 86400.0 * 365.5)
            return time.time(), datetime.date.today(), lanes.lane().reads

    assert session.same(program) == (31_579_200.0, datetime.date(1971, 1, 1), {})


def test_an_interrupted_recording_ends_in_a_cut(session: Any) -> None:
    from lockstep.errors import Cut

    session.record(lambda: time.time())
    stopped: list[BaseException] = []

    def program() -> None:
        try:
            time.time()
            time.time()
        except Cut as cut:
            stopped.append(cut)
            raise

    report = session.replay(program, interrupted=True)
    assert report.cut
    assert report.difference is None
    assert stopped


def test_what_a_program_prints_of_a_function_has_no_address(session: Any) -> None:
    shown = session.same(lambda: repr(time.time) + repr(time.sleep))
    assert "time" in shown
    assert "0x" not in shown
