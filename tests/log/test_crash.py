"""Death and company: kill -9 at any moment, several processes, fork, and ends that skip clean-up."""

import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import log_runs
import pytest

import lockstep
from lockstep.log.model import Kind, RunState
from lockstep.log.store import Store, open_store
from lockstep.log.timeline import Timeline
from lockstep.log.verify import verify

ENV = os.environ | {"PYTHONPATH": str(Path(next(iter(lockstep.__path__))).parent)}

# Records effects for ever, and says on stdout which steps are acknowledged.
RECORDER = """
import os, sys, threading
from lockstep.log.store import open_store
from lockstep.log.model import Event, Kind
from lockstep.session.writer import Writer

store = open_store(sys.argv[1], create=True)
run = store.create_run(sys.argv[2], {"argv": sys.argv})
faults = []
writer = Writer(store.stream(run, "main"), lambda *fault: faults.append(fault))
pos = 1
writer.put(Event(Kind.START, 1, 0, "main"))
for step in range(1, int(sys.argv[3]) + 1):
    body = {"request": {"n": step, "history": ["item %d " % n * 20 for n in range(step % 60)]}}
    writer.put(Event(Kind.BEGIN, pos + 1, pos, "main", "model", "gpt", body=body))
    for part in range(step % 5):
        writer.put(Event(Kind.PART, pos + 2 + part, pos, "main", of=pos + 1, body="chunk %d" % part))
    pos += 2 + step % 5
    writer.put(Event(Kind.END, pos, pos, "main", "ok", of=pos - 1 - step % 5, body="answer %d" % step))
    if step % 3 == 0:
        assert writer.flush()
        os.write(1, b"%d %s\\n" % (step, run.name.encode()))
assert not faults, faults
"""


def record(path: Path, name: str, steps: int, tail: str = "") -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", RECORDER + tail, str(path), name, str(steps)], stdout=subprocess.PIPE, text=True, env=ENV
    )


def acknowledged(process: subprocess.Popen[str]) -> int:
    assert process.stdout is not None
    lines = [line for line in process.stdout if line.endswith("\n")]
    return int(lines[-1].split()[0]) if lines else 0


@pytest.mark.parametrize("seed", range(20))
def test_every_acknowledged_step_survives_kill_9(path: Path, seed: int) -> None:
    process = record(path, "killed", 10**9)
    assert process.stdout is not None
    rng = random.Random(seed)
    # A moment is a number of acknowledged steps and a little more, not a time: it is the same on slow machines.
    seen = 0
    for _ in range(rng.choice([1, 2, 5, 20, 100, 300])):
        seen = int(process.stdout.readline().split()[0])
    for _ in range(rng.randrange(3000)):
        pass
    process.kill()
    seen = max(seen, acknowledged(process))
    assert process.wait() == -signal.SIGKILL
    with open_store(path) as store:
        (info,) = store.runs()
        assert info.state is RunState.INTERRUPTED
        assert info.steps >= seen
        timeline = Timeline(store.run("killed"))
        for number in range(1, seen + 1, 7):
            (effect,) = timeline.step(number).effects
            assert timeline.outcome(effect) == f"answer {number}"
            assert len(list(timeline.parts(effect))) == number % 5
        checked = verify(store.run("killed"))
        assert checked.consistent, checked.problems
        assert checked.open_end
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    # The store goes on, and what the dead writer left beside it goes.
    with open_store(path, create=True) as store:
        log_runs.write(store, "killed", log_runs.calls(3))
        assert {info.name: info.state for info in store.runs()} == {
            "killed": RunState.INTERRUPTED,
            "killed-2": RunState.COMPLETE,
        }
    assert os.listdir(f"{path}.locks") == ["checkpoint"]


def test_two_processes_and_threads_write_one_store_whole(path: Path) -> None:
    processes = [record(path, "agent", 400, "assert writer.close()") for _ in range(2)]
    with open_store(path, create=True) as store:
        threads = [
            threading.Thread(target=log_runs.write, args=(store, "agent", log_runs.calls(150, seed=seed)))
            for seed in range(2)
        ]
        for thread in threads:
            thread.start()
        # A reader that lists meanwhile disturbs nobody.
        while any(process.poll() is None for process in processes):
            assert len(store.runs()) <= 4
        for thread in threads:
            thread.join()
        for process in processes:
            assert acknowledged(process) == 399
            assert process.returncode == 0
        infos = store.runs()
        assert sorted(info.name for info in infos) == ["agent", "agent-2", "agent-3", "agent-4"]
        assert sorted(info.steps for info in infos) == [150, 150, 400, 400]
        for info in infos:
            checked = verify(store.run(info.name))
            assert checked.consistent, checked.problems


HOLDS_THE_FIRST_LOCK = """
import fcntl, sys, time
shared = open(sys.argv[1], "r+b")
fcntl.lockf(shared, fcntl.LOCK_EX, 1, 122)  # what the first to open a log holds while it makes the index
print("held", flush=True)
time.sleep(0.2)
"""


def test_a_store_that_another_process_is_just_opening_is_waited_for(path: Path) -> None:
    with open_store(path, create=True) as store:
        log_runs.write(store, "agent", log_runs.calls(3))
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDS_THE_FIRST_LOCK, f"{path}-shm"], stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    with open_store(path) as store:
        assert [info.steps for info in store.runs()] == [3]
    assert holder.wait() == 0
    holder.stdout.close()


def test_a_living_writer_is_seen_as_living_and_only_it(path: Path) -> None:
    process = record(path, "agent", 10**9)
    assert process.stdout is not None
    process.stdout.readline()
    with open_store(path) as store:
        assert store.runs()[0].state is RunState.GROWING
        # Its own files may be opened and closed by anybody without freeing its lock.
        for name in os.listdir(f"{path}.locks"):
            (Path(f"{path}.locks") / name).read_bytes()
        assert store.runs()[0].state is RunState.GROWING
        process.kill()
        process.wait()
        assert store.runs()[0].state is RunState.INTERRUPTED
    process.stdout.close()


FORK = """
pid = None
writer.before_fork()
pid = os.fork()
if pid == 0:
    writer.after_in_child()
    writer.put(Event(Kind.PART, pos + 1, 0, "main", body="not the child's to write"))
    assert not writer.flush(1)
    mine = Writer(open_store(sys.argv[1]).stream(run, "main/process.1"), lambda *fault: faults.append(fault))
    for n in range(1, 301):
        mine.put(Event(Kind.STEP, n, n, "main/process.1", name="child"))
    mine.put(Event(Kind.FINISH, 301, 301, "main/process.1", "complete"))
    assert mine.close() and not faults
    os._exit(0)
writer.after_in_parent()
for n in range(300):
    pos += 1
    writer.put(Event(Kind.STEP, pos, pos, "main", name="parent"))
    if n % 10 == 0:
        assert writer.flush()
assert os.waitpid(pid, 0)[1] == 0
writer.put(Event(Kind.FINISH, pos + 1, 0, "main", "complete"))
assert writer.close() and not faults, faults
"""


def test_a_forked_child_writes_a_stream_of_its_own(path: Path) -> None:
    process = record(path, "forked", 30, FORK)
    assert acknowledged(process) == 30
    assert process.wait() == 0
    with open_store(path) as store:
        (info,) = store.runs()
        assert info.state is RunState.COMPLETE
        assert {stream.process for stream in info.streams} == {"main", "main/process.1"}
        assert info.steps == 30 + 300 + 300
        checked = verify(store.run("forked"))
        assert checked.consistent, checked.problems
        bodies = [event.body for event in store.run("forked").events(info.streams[0].id)]
        assert "not the child's to write" not in bodies


def test_forking_makes_no_warning_about_our_thread(path: Path) -> None:
    tail = """
import warnings
warnings.simplefilter("error")
for _ in range(20):
    writer.before_fork()
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    writer.after_in_parent()
    os.waitpid(pid, 0)
assert threading.active_count() == 1
assert writer.close()
"""
    process = record(path, "forked", 3, tail)
    assert acknowledged(process) == 3
    assert process.wait() == 0


@pytest.mark.parametrize(
    ("end", "status"),
    [("sys.exit(3)", 3), ("raise ValueError('agent')", 1), ("writer.flush(); os._exit(4)", 4)],
)
def test_what_was_put_is_there_however_the_program_ends(path: Path, end: str, status: int) -> None:
    tail = (
        "import atexit; atexit.register(writer.close)\n"
        "for n in range(2000): writer.put(Event(Kind.STEP, pos + n + 1, 0, 'main', name='late'))\n" + end
    )
    process = record(path, "ending", 3, tail)
    acknowledged(process)
    assert process.wait() == status
    with open_store(path) as store:
        (info,) = store.runs()
        assert info.steps == 2003
        assert verify(store.run("ending")).consistent


def test_events_put_while_the_interpreter_shuts_down_are_written(path: Path) -> None:
    # No thread can be started there any more, and ours was stopped by a fork just before.
    tail = """
import atexit
def late():
    writer.before_fork()
    from lockstep.session import writer as module
    def refuse(*anything):
        raise RuntimeError("can't create new thread at interpreter shutdown")
    module._start_thread = refuse
    writer.after_in_parent()
    for n in range(1, 1001):
        writer.put(Event(Kind.STEP, pos + n, 0, "main", name="late"))
    assert writer.flush()
    writer.put(Event(Kind.FINISH, pos + 1001, 0, "main", "complete"))
    os.write(1, b"%d closed\\n" % writer.close())
atexit.register(late)
"""
    process = record(path, "late", 3, tail)
    assert acknowledged(process) == 1
    assert process.wait() == 0
    with open_store(path) as store:
        (info,) = store.runs()
        assert info.state is RunState.COMPLETE
        assert info.steps == 1003
        *_, last = store.run("late").events(info.streams[0].id)
        assert last.kind is Kind.FINISH


def test_opening_and_closing_the_file_elsewhere_in_the_writer_loses_nothing(path: Path) -> None:
    # POSIX locks die with any descriptor of the file; another process then believes to be the last user.
    tail = """
open(sys.argv[1], "rb").close()
open(sys.argv[1] + "-shm", "rb").close()
print("opened", flush=True)
sys.stdin.readline()
for n in range(100):
    pos += 1
    writer.put(Event(Kind.STEP, pos, 0, "main", name="after"))
    assert writer.flush()
os.kill(os.getpid(), 9)
"""
    process = subprocess.Popen(
        [sys.executable, "-c", RECORDER + tail, str(path), "trap", "3"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=ENV,
    )
    assert process.stdout is not None
    assert "opened\n" in iter(process.stdout.readline, "")
    listing = "import sys; from lockstep.log.store import open_store\nwith open_store(sys.argv[1]) as s: s.runs()"
    writing = (
        "import sys; from lockstep.log.store import open_store\n"
        "with open_store(sys.argv[1], create=True) as s: s.stream(s.create_run('x', None), 'main').close(None)"
    )
    for program in (listing, writing, listing):
        subprocess.run([sys.executable, "-c", program, str(path)], check=True, env=ENV)
    process.communicate("go\n")
    assert process.returncode == -signal.SIGKILL
    with open_store(path) as store:
        assert {info.name: info.steps for info in store.runs()}["trap"] == 103
        assert verify(store.run("trap")).consistent


def test_a_run_of_a_dead_process_that_wrote_nothing_is_interrupted(store: Store) -> None:
    store.create_run("nothing", None)
    assert store.runs()[0].state is RunState.INTERRUPTED
    checked = verify(store.run("nothing"))
    assert checked.consistent
    assert checked.open_end


def test_forks_among_threads_that_record_and_wait(path: Path) -> None:
    tail = """
threads = []
lock = threading.Lock()
def work():
    global pos
    for n in range(150):
        with lock:
            pos += 1
            mine = pos
        writer.put(Event(Kind.STEP, mine, mine, "main", name="work"))
        if n % 5 == 0:
            assert writer.flush(20)
for _ in range(3):
    threads.append(threading.Thread(target=work))
    threads[-1].start()
for n in range(15):
    writer.before_fork()
    pid = os.fork()
    if pid == 0:
        writer.after_in_child()
        name = "main/process.%d" % n
        mine = Writer(open_store(sys.argv[1]).stream(run, name), lambda *fault: os._exit(9))
        mine.put(Event(Kind.FINISH, 1, 1, name, "complete"))
        os._exit(0 if mine.close() else 8)
    writer.after_in_parent()
    assert os.waitpid(pid, 0)[1] == 0
for thread in threads:
    thread.join()
writer.put(Event(Kind.FINISH, pos + 1, 0, "main", "complete"))
assert writer.close() and not faults, faults
"""
    process = record(path, "forks", 3, tail)
    assert acknowledged(process) == 3
    assert process.wait() == 0
    with open_store(path) as store:
        (info,) = store.runs()
        assert info.state is RunState.COMPLETE
        assert info.steps == 3 + 450
        assert len(info.streams) == 16
        assert verify(store.run("forks")).consistent
