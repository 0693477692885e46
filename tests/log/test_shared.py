"""A stream that many processes have open at once: nothing is lost, and what is there holds together."""

import os
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import native_runs
import pytest

import lockstep
from lockstep.debugger.verify import check
from lockstep.errors import AddressError, Code, StoreError
from lockstep.log import seal
from lockstep.log.model import Event, Kind, RunState, Status
from lockstep.log.store import Store, open_store
from lockstep.log.verify import Trust, verify

ENV = os.environ | {"PYTHONPATH": str(Path(next(iter(lockstep.__path__))).parent)}
RUN = native_runs.RUN

# Appends a task's writes and a checkpoint of them, and says on stdout which it has been told are stored.
WRITER = """
import os, random, sys
from lockstep.log.model import Event, Kind
from lockstep.log.store import open_store

path, run, name, count = sys.argv[1:]
shared = open_store(path, create=True).open_shared(run, {"adapter": "langgraph"})
rng = random.Random(name)
words = [name * 9, "x" * 700, "y" * 70_000, {"a": ["z" * 300, 1.5]}]
for number in range(int(count)):
    kept = shared.append([
        Event(Kind.WRITES, -1, number, "main/n", str(number), name, body={"writes": [[0, "m", rng.choice(words)]]}),
        Event(Kind.STEP, -2, number, "main", "loop", name, of=-1, body={"channels": {"n": {"value": number}}}),
    ])
    assert kept[1].of == kept[0].pos == kept[1].pos - 1
    os.write(1, b"%d\\n" % number)
"""


def writer(path: Path, name: str, count: int, run: str = RUN) -> subprocess.Popen[str]:
    words = [sys.executable, "-c", WRITER, str(path), run, name, str(count)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=ENV)


def told(process: subprocess.Popen[str]) -> list[int]:
    """What the process was told is stored, when it is gone."""
    out, _ = process.communicate(timeout=120)
    return [int(line) for line in out.split("\n")[:-1]]


def numbers(events: list[Event], name: str) -> list[Any]:
    bodies: list[Any] = [event.body for event in events if event.kind is Kind.STEP and event.name == name]
    return [body["channels"]["n"]["value"] for body in bodies]


def test_processes_that_append_at_once_lose_nothing_and_kills_take_only_what_was_not_acknowledged(path: Path) -> None:
    writers = {name: writer(path, name, 10**9 if name in "ab" else 150) for name in "abcd"}
    for name in "ab":
        out = writers[name].stdout
        assert out is not None
        for _ in range(40):  # a moment that is the same on slow machines
            out.readline()
        writers[name].kill()
    acknowledged = {name: told(process) for name, process in writers.items()}
    with open_store(path) as store:
        (info,) = store.runs()
        reader = store.run(RUN)
        events = list(reader.events(reader.main))
        assert [event.pos for event in events] == list(range(1, len(events) + 1))
        for name in "abcd":
            there = numbers(events, name)
            assert there == list(range(len(there)))
            assert len(there) > (acknowledged[name] or [39])[-1]
        assert [len(numbers(events, name)) for name in "cd"] == [150, 150]
        found = verify(reader)
        assert not found.problems and info.steps == sum(event.kind is Kind.STEP for event in events)


def test_a_thread_that_others_go_on_with_is_verified_and_read_as_it_is_at_one_moment(path: Path) -> None:
    writers = [writer(path, name, 10**9) for name in "ab"]
    try:
        for process in writers:
            assert process.stdout is not None and process.stdout.readline() == "0\n"
        seen = []
        for _ in range(6):
            found = check(str(path), RUN)
            assert not found.problems
            seen.append(found.events)
            with open_store(path) as store:
                reader = store.run(RUN)
                assert [event.pos for event in reader.events(reader.main)][: found.events] == [
                    *range(1, found.events + 1)
                ]
        assert seen == sorted(seen)
    finally:
        for process in writers:
            process.kill()
            process.communicate()


def test_rows_of_writers_that_take_turns_are_folded_all_the_same(path: Path, store: Store) -> None:
    first = store.open_shared(RUN, native_runs.META)
    with open_store(path) as other:
        second = other.open_shared(RUN, native_runs.META)
        for number in range(400):
            shared = (first, second)[number % 2]
            shared.append([Event(Kind.STEP, -1, number, "main", "loop", "n", body={"n": number, "text": "word " * 80})])
        reader = store.run(RUN)
        rows = list(reader.rows(reader.main))
        assert len(rows) < 60
        assert [event.pos for _, event in reader.heads(reader.main)] == list(range(1, 403))
        assert not verify(reader).problems


def test_what_one_process_has_stored_another_refers_to_only_by_what_it_knows_itself(path: Path, store: Store) -> None:
    text = "a system prompt that all of them send " * 60
    first = store.open_shared(RUN, native_runs.META)
    with open_store(path) as other:
        second = other.open_shared(RUN, native_runs.META)
        for number in range(20):
            for shared in (first, second):
                shared.append([Event(Kind.STEP, -1, 0, "main", "loop", "n", body={"prompt": text, "n": number})])
        reader = store.run(RUN)
        bodies: list[Any] = [event.body for event in reader.events(reader.main, 2)]
        assert [body["prompt"] for body in bodies] == [text] * 40
        assert reader.info.size < 6 * len(text)


def test_all_who_come_to_a_new_thread_at_once_find_the_same_one(path: Path) -> None:
    writers = [writer(path, str(number), 3) for number in range(4)]
    assert [told(process) for process in writers] == [[0, 1, 2]] * 4
    with open_store(path) as store:
        assert store.names() == [RUN]
        reader = store.run(RUN)
        kinds = [event.kind for _, event in reader.heads(reader.main)]
        assert kinds.count(Kind.START) == 1 and kinds[:2] == [Kind.LANE, Kind.START]
        assert len(reader.streams) == 1 and not verify(reader).problems


def test_threads_share_one_stream_too(store: Store) -> None:
    shared = store.open_shared(RUN, native_runs.META)

    def work(name: str) -> None:
        for number in range(60):
            body = {"channels": {"n": {"value": number}}}
            shared.append([Event(Kind.STEP, -1, 0, "main", "loop", name, body=body)])

    threads = [threading.Thread(target=work, args=(name,)) for name in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    reader = store.run(RUN)
    events = list(reader.events(reader.main))
    assert [numbers(events, name) for name in "abc"] == [list(range(60))] * 3
    assert not verify(reader).problems


def test_provisional_positions_become_the_next_ones_whoever_wrote_last(path: Path, store: Store) -> None:
    shared = store.open_shared(RUN, native_runs.META)
    with open_store(path) as other:
        foreign = other.open_shared(RUN, native_runs.META)
        first, second = shared.append([
            Event(Kind.BEGIN, -7, 0, "main/n", "tool", "ask"),
            Event(Kind.END, -9, 0, "main/n", Status.OK, of=-7),
        ])  # fmt: skip
        assert (first.pos, second.pos, second.of) == (3, 4, 3)
        foreign.append([Event(Kind.STEP, -1, 0, "main", "loop", "n")])
        (third,) = shared.append([Event(Kind.STEP, -1, 0, "main", "loop", "n", of=5)])
        assert (third.pos, third.of) == (6, 5)
        with pytest.raises(ValueError, match="provisional position -2"):
            shared.append([Event(Kind.STEP, -1, 0, "main", "loop", "n", of=-2)])
        (fourth,) = shared.append([Event(Kind.STEP, -1, 0, "main", "loop", "n")])
        assert fourth.pos == 7  # what could not be placed left nothing behind


def test_it_is_told_when_somebody_else_has_written_and_not_of_its_own(path: Path, store: Store) -> None:
    shared = store.open_shared(RUN, native_runs.META)
    assert shared.changed() and not shared.changed()
    shared.append([Event(Kind.STEP, -1, 0, "main", "loop", "n")])
    assert not shared.changed()
    with open_store(path) as other:
        other.open_shared(RUN, native_runs.META).append([Event(Kind.STEP, -1, 0, "main", "loop", "n")])
    assert shared.changed() and not shared.changed()


def test_one_turn_holds_the_lock_until_it_ends_or_its_process_dies(path: Path, store: Store) -> None:
    shared = store.open_shared(RUN, native_runs.META)
    lock = shared.hold_turn()
    assert lock is not None and shared.is_turn_held()
    with open_store(path) as other:
        foreign = other.open_shared(RUN, native_runs.META)
        assert foreign.hold_turn() is None
        lock.release()
        again = foreign.hold_turn()
        assert again is not None and shared.hold_turn() is None
        again.release()
    assert not shared.is_turn_held()
    code = (
        "import sys; from lockstep.log.store import open_store; "
        "s = open_store(sys.argv[1]).open_shared(sys.argv[2], {}); "
        "lock = s.hold_turn(); print(lock is not None, flush=True); sys.stdin.read()"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", code, str(path), RUN], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=ENV
    )
    assert holder.stdout is not None and holder.stdout.readline() == "True\n"
    assert shared.is_turn_held() and shared.hold_turn() is None
    holder.kill()
    holder.wait()
    after = shared.hold_turn()
    assert after is not None
    after.release()


def test_many_may_ask_whether_a_turn_is_on_without_being_in_the_way_of_one(store: Store) -> None:
    shared = store.open_shared(RUN, native_runs.META)
    stop = threading.Event()

    def ask() -> None:
        while not stop.is_set():
            shared.is_turn_held()

    asking = [threading.Thread(target=ask) for _ in range(2)]
    for thread in asking:
        thread.start()
    try:
        for _ in range(200):
            lock = shared.hold_turn()
            assert lock is not None
            lock.release()
    finally:
        stop.set()
        for thread in asking:
            thread.join()


def states(store: Store) -> tuple[RunState, ...]:
    return tuple(one.state for one in store.run(RUN).branches)


def test_a_run_grows_while_a_living_turn_is_open_and_rests_as_the_last_one_ended(path: Path, store: Store) -> None:
    thread = native_runs.open_thread(store)
    assert states(store) == (RunState.COMPLETE,)
    lock = thread.shared.hold_turn()
    turn = thread.turn()
    assert lock is not None and states(store) == (RunState.GROWING,)
    thread.step(0, {"n": 1})
    lock.release()
    assert states(store) == (RunState.INTERRUPTED,)  # as after a kill
    thread.end(turn)
    assert states(store) == (RunState.COMPLETE,)
    thread.end(thread.turn(), Status.ERROR)
    assert states(store) == (RunState.FAILED,)
    thread.step(3, {"n": 2}, source="update")  # outside of any turn: it rests as it did
    assert states(store) == (RunState.FAILED,) and not verify(store.run(RUN)).problems
    thread.end(thread.turn(), Status.CANCELLED)
    assert states(store) == (RunState.COMPLETE,) and not verify(store.run(RUN)).problems


def test_a_state_that_the_last_turn_does_not_say_is_found(path: Path, store: Store) -> None:
    thread = native_runs.refund(store)
    thread.shared.set_state(RunState.FAILED)
    (problem,) = verify(store.run(RUN)).problems
    assert "its last turn ended otherwise" in problem.what


def test_a_state_that_cannot_be_stored_is_refused_and_leaves_nothing_behind(store: Store) -> None:
    shared = store.open_shared(RUN, native_runs.META)
    deep: Any = "leaf"
    for _ in range(300):
        deep = [deep]
    with pytest.raises(StoreError) as caught:
        shared.append([
            Event(Kind.WRITES, -1, 0, "main/n", "t", "n", body={"writes": [[0, "m", "x" * 900]]}),
            Event(Kind.STEP, -2, 0, "main", "loop", "n", body={"channels": {"deep": {"value": deep}}}),
        ])  # fmt: skip
    assert caught.value.code is Code.UNSTORABLE
    shared.append([Event(Kind.STEP, -1, 0, "main", "loop", "n", body={"text": "x" * 900})])
    reader = store.run(RUN)
    assert [event.kind for _, event in reader.heads(reader.main)] == [Kind.LANE, Kind.START, Kind.STEP]
    assert not verify(reader).problems


def test_a_call_that_cannot_be_stored_is_a_fault_and_the_state_beside_it_is_stored(store: Store) -> None:
    faults: list[str] = []
    shared = store.open_shared(RUN, native_runs.META, fault=lambda where, error: faults.append(where))
    deep: Any = "leaf"
    for _ in range(300):
        deep = [deep]
    shared.append([
        Event(Kind.BEGIN, -1, 0, "main/n", "tool", "ask", body={"request": deep}),
        Event(Kind.STEP, -2, 0, "main", "loop", "n", body={"n": 1}),
    ])  # fmt: skip
    shared.append([Event(Kind.STEP, -1, 0, "main", "loop", "n", body={"n": 2})])
    assert faults == ["packing an event"]
    reader = store.run(RUN)
    assert reader.info.incomplete == 1 and not verify(reader).problems


def test_an_event_larger_than_a_row_may_be_is_cut_into_rows(store: Store) -> None:
    shared = store.open_shared(RUN, native_runs.META)
    many = [Event(Kind.PART, -1 - number, number, "main/n", of=1) for number in range(20_000)]
    shared.append([*many, Event(Kind.STEP, -30_000, 0, "main", "loop", "n")])
    reader = store.run(RUN)
    assert max(row.count for row in reader.rows(reader.main) if hasattr(row, "count")) <= 16_384
    assert reader.streams[0].events == 20_003 and not verify(reader).problems


def test_whoever_has_a_run_open_is_told_that_it_was_deleted_or_replaced(path: Path, store: Store) -> None:
    thread = native_runs.refund(store)
    kept = native_runs.open_thread(store, "langgraph/new")
    kept.step(0, {"n": 1})
    store.replace_run(RUN, "langgraph/new")
    assert store.names() == [RUN] and store.run(RUN).info.steps == 1
    with pytest.raises(StoreError) as caught:
        thread.step(4, {"n": 2})
    assert caught.value.code is Code.NO_RUN
    again = native_runs.open_thread(store)  # the new one under the old name
    again.step(3, {"n": 2})
    assert store.run(RUN).info.steps == 2 and not verify(store.run(RUN)).problems
    kept.step(3, {"n": 3})  # who had the new one open goes on: it has another name only
    assert store.run(RUN).info.steps == 3
    store.delete_run(RUN)
    with pytest.raises(StoreError):
        again.step(4, {"n": 4})


def test_a_run_with_an_open_turn_is_not_replaced(store: Store) -> None:
    thread = native_runs.open_thread(store)
    native_runs.open_thread(store, "langgraph/new")
    lock = thread.shared.hold_turn()
    thread.turn()
    with pytest.raises(StoreError, match="is being written"):
        store.replace_run(RUN, "langgraph/new")
    assert lock is not None
    lock.release()
    with pytest.raises(StoreError) as caught:
        store.replace_run(RUN, "langgraph/absent")
    assert caught.value.code is Code.NO_RUN and store.has_run(RUN)


def test_a_recorded_run_of_that_name_is_not_taken_for_a_thread(store: Store) -> None:
    store.create_run("langgraph/t-1", {"command": ["python", "agent.py"]})
    with pytest.raises(StoreError) as caught:
        store.open_shared("langgraph/t-1", native_runs.META)
    assert caught.value.code is Code.UNWRITABLE and "no thread of a framework" in str(caught.value)


def test_a_branch_that_is_not_there_is_not_made(store: Store) -> None:
    with pytest.raises(StoreError) as missing:
        store.open_shared("langgraph/none", native_runs.META, "try-2")
    assert missing.value.code is Code.NO_RUN and not store.names()
    store.open_shared(RUN, native_runs.META)
    with pytest.raises(AddressError) as caught:
        store.open_shared(RUN, native_runs.META, "try-2")
    assert caught.value.code is Code.NO_ADDRESS


def test_the_write_ahead_log_of_many_short_threads_is_emptied_now_and_then(path: Path, store: Store) -> None:
    text = os.urandom(6000).hex()
    sizes = []
    for number in range(700):
        thread = native_runs.open_thread(store, f"langgraph/{number}")
        thread.step(0, {"text": f"{number}{text}"})
        sizes.append(os.stat(f"{path}-wal").st_size)
    assert max(sizes) < 10_000_000 and sizes[-1] < max(sizes)
    assert not verify(store.run("langgraph/699")).problems


class Interrupted(BaseException):
    """As Ctrl-C raises one, wherever the code is."""


def test_an_interrupt_anywhere_in_an_append_leaves_no_lock_and_no_half(path: Path, store: Store) -> None:
    shared = store.open_shared(RUN, native_runs.META)
    shared.append([Event(Kind.STEP, -1, 0, "main", "loop", "n", body={"n": -1})])
    left = 0

    def trace(frame: Any, event: str, _: Any) -> Any:
        nonlocal left
        if "lockstep" in frame.f_code.co_filename and event == "line":
            left -= 1
            if left == 0:
                raise Interrupted
        return trace

    kept, interrupted = [], 0
    for number in range(120):
        left = number * 3 if number % 2 else 0  # and each second one is let alone
        sys.settrace(trace)
        try:
            shared.append([Event(Kind.STEP, -1, 0, "main", "loop", "n", body={"n": number, "t": "x" * 600})])
            kept.append(number)
        except Interrupted:
            interrupted += 1
        finally:
            sys.settrace(None)
        with sqlite3.connect(path, timeout=0) as other:
            other.execute("BEGIN IMMEDIATE")  # nobody holds the write lock
            other.rollback()
        other.close()
    assert interrupted > 30 and len(kept) > 30
    reader = store.run(RUN)
    bodies: list[Any] = [event.body for event in reader.events(reader.main, 2)]
    stored = [body["n"] for body in bodies]
    assert set(kept) <= set(stored) and len(stored) == len(set(stored))
    assert not verify(reader).problems


def test_with_a_key_every_append_is_sealed_by_whoever_makes_it(
    path: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOCKSTEP_KEY", "0123456789abcdef0123456789abcdef")
    thread = native_runs.refund(store)
    with open_store(path) as other:
        other.open_shared(RUN, native_runs.META).append([Event(Kind.STEP, -1, 0, "main", "loop", "n", of=4)])
    found = verify(store.run(RUN), seal.given())
    assert found.trust is Trust.AUTHENTIC and not found.problems
    turn = thread.turn()
    found = verify(store.run(RUN), seal.given())
    assert found.trust is Trust.AUTHENTIC and found.open_end and not found.problems
    thread.end(turn)
    found = verify(store.run(RUN), seal.given())
    assert found.trust is Trust.AUTHENTIC and not found.open_end and not found.problems


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded")
def test_a_forked_child_goes_on_with_the_stream_and_does_not_hold_its_parents_turn(path: Path, store: Store) -> None:
    shared = store.open_shared(RUN, native_runs.META)
    lock = shared.hold_turn()
    shared.append([Event(Kind.STEP, -1, 0, "main", "loop", "parent", body={"n": 0})])
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.read(reading, 1)  # the parent has let go of its turn
            held = shared.hold_turn()
            shared.append([Event(Kind.STEP, -1, 0, "main", "loop", "child", body={"n": 1})])
            os._exit(0 if held is not None else 3)
        finally:
            os._exit(4)
    shared.append([Event(Kind.STEP, -1, 0, "main", "loop", "parent", body={"n": 2})])
    assert lock is not None
    lock.release()
    os.write(writing, b".")
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    os.close(reading)
    os.close(writing)
    shared.append([Event(Kind.STEP, -1, 0, "main", "loop", "parent", body={"n": 3})])
    reader = store.run(RUN)
    assert [event.name for _, event in reader.heads(reader.main, 2)] == ["parent", "parent", "child", "parent"]
    assert not verify(reader).problems


def test_when_the_disk_is_full_the_caller_is_told_and_nothing_is_half_there(path: Path, store: Store) -> None:
    code = """
import resource, sys
from lockstep.errors import Code, StoreError
from lockstep.log.model import Event, Kind
from lockstep.log.store import open_store
shared = open_store(sys.argv[1]).open_shared(sys.argv[2], {})
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, resource.RLIM_INFINITY))
number = 0
try:
    while True:
        body = {"channels": {"n": {"value": number}, "text": {"value": str(number) * 3000}}}
        shared.append([Event(Kind.STEP, -1, 0, "main", "loop", "a", body=body)])
        number += 1
except StoreError as error:
    assert error.code is Code.UNWRITABLE, error
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
shared.append([Event(Kind.STEP, -1, 0, "main", "loop", "a", body={"channels": {"n": {"value": number}}})])
print(number)
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(path), RUN], capture_output=True, text=True, env=ENV, check=True, timeout=60
    )
    reader = store.run(RUN)
    assert numbers(list(reader.events(reader.main)), "a") == list(range(int(done.stdout) + 1))
    assert not verify(reader).problems
