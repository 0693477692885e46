"""The store: runs, names, lazy reading, and what is no store."""

import os
import random
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import log_runs
import log_values
import pytest

from lockstep.errors import AddressError, Code, StoreError
from lockstep.log.model import Event, Kind, RunState, Status
from lockstep.log.store import UNSTORABLE, Store, locate, open_store
from lockstep.log.verify import verify


def test_events_come_back_as_they_were_written(store: Store) -> None:
    rng = random.Random(3)
    events = []
    for number in range(900):
        events.append(
            Event(
                Kind(rng.randrange(1, 12)),
                pos=number * 3 + rng.randrange(3) + 1,
                at=rng.randrange(2**60),
                lane=f"main/task.{rng.randrange(5)}",
                what=rng.choice(["", "model", "time.time"]),
                name=rng.choice(["", "gpt-4o", "é" * 300]),
                of=rng.choice([0, 0, rng.randrange(1, 3000)]),
                tick=rng.choice([-1, -1, rng.randrange(10**9)]),
                key=rng.choice([b"", rng.randbytes(16), rng.randbytes(300)]),
                body=log_values.value(random.Random(number), 2),
            )
        )
    reader = log_runs.write(store, "odd", events, batch=7)
    stream = reader.streams[0].id
    found = list(reader.events(stream))
    assert len(found) == len(events)
    for seq, (event, wanted) in enumerate(zip(found, events, strict=True)):
        assert _head(event) == _head(wanted)
        assert log_values.same(event.body, log_values.value(random.Random(seq), 2))
        if seq % 50 == 0:
            assert log_values.same(reader.body(stream, seq), event.body)
    assert [(seq, _head(head)) for seq, head in reader.heads(stream)] == list(enumerate(map(_head, events)))
    assert all(head.body is None for _, head in reader.heads(stream))
    assert [seq for seq, _ in reader.heads(stream, 411, 419)] == list(range(411, 419))
    assert list(reader.heads(stream, 5000)) == []
    assert verify(reader).consistent


def _head(event: Event) -> tuple[Any, ...]:
    return event.kind, event.pos, event.at, event.lane, event.what, event.name, event.of, event.tick, event.key


def test_reading_while_writing_sees_all_that_was_acknowledged(store: Store) -> None:
    run = store.create_run("live", None)
    appender = store.stream(run, "main")
    reader = store.run("live")
    stream = reader.streams[0].id
    for number, event in enumerate(log_runs.calls(400)[:-1]):
        assert appender.append([event]) == number + 1
        if number % 40 == 0:
            assert [seq for seq, _ in reader.heads(stream)] == list(range(number + 1))
            assert reader.body(stream, number) == event.body
            assert reader.body(stream, number // 2) is not None
    assert store.runs()[0].state is RunState.GROWING
    with pytest.raises(AddressError):
        reader.body(stream, 5000)
    appender.close(None)
    assert store.runs()[0].state is RunState.INTERRUPTED


def test_a_run_says_what_it_is(store: Store) -> None:
    log_runs.write(store, "refund", log_runs.calls(14))
    log_runs.write(store, "other", log_runs.calls(2)[:-1])
    failed = store.create_run("failed", None)
    store.stream(failed, "main").close(RunState.FAILED, faults=3)
    infos = {info.name: info for info in store.runs()}
    assert infos["refund"].state is RunState.COMPLETE
    assert infos["refund"].steps == 14
    assert infos["refund"].streams[0].events == 30
    assert infos["refund"].streams[0].process == "main"
    assert 1000 < infos["refund"].size < 20_000
    assert infos["other"].state is RunState.INTERRUPTED
    assert infos["other"].steps == 2
    assert infos["failed"].state is RunState.FAILED
    assert infos["failed"].incomplete == 3
    assert [info.name for info in store.runs()] == ["failed", "other", "refund"]
    assert store.run("refund").meta == {"argv": ["refund"], "run": "refund"}


def test_a_taken_name_gets_a_number(store: Store) -> None:
    names = [store.create_run(name, None).name for name in ("a", "a", "a-b", "a", "a-7", "a", "a%2Fb/c", "a")]
    assert names == ["a", "a-2", "a-b", "a-3", "a-7", "a-8", "a%2Fb/c", "a-9"]
    for bad in ("", "a@b", "a:1", "a\nb", "x" * 201):
        with pytest.raises(StoreError, match="not a name"):
            store.create_run(bad, None)


def test_names_are_given_once_among_threads_and_processes(path: Path, store: Store) -> None:
    program = (
        "import sys; from lockstep.log.store import open_store\n"
        "store = open_store(sys.argv[1], create=True)\n"
        "print(*[store.create_run('same', None).name for _ in range(20)])"
    )
    processes = [
        subprocess.Popen([sys.executable, "-c", program, str(path)], stdout=subprocess.PIPE, text=True, env=_env())
        for _ in range(2)
    ]
    names: list[str] = []
    threads = [threading.Thread(target=lambda: names.append(store.create_run("same", None).name)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for process in processes:
        names += process.communicate()[0].split()
        assert process.returncode == 0
    assert sorted(names) == sorted(["same", *[f"same-{n}" for n in range(2, 49)]])


def _env() -> dict[str, str]:
    import lockstep

    return os.environ | {"PYTHONPATH": str(Path(next(iter(lockstep.__path__))).parent)}


def test_a_store_can_be_made_by_many_at_once(tmp_path: Path) -> None:
    failed: list[BaseException] = []

    def make(path: Path, ready: threading.Barrier) -> None:
        ready.wait(10)
        try:
            with open_store(path, create=True) as store:
                store.create_run("agent", {})
        except BaseException as error:
            failed.append(error)

    for number in range(20):
        path, ready = tmp_path / f"{number}.db", threading.Barrier(4)
        makers = [threading.Thread(target=make, args=(path, ready)) for _ in range(4)]
        for maker in makers:
            maker.start()
        for maker in makers:
            maker.join(10)
        with open_store(path) as store:
            assert len(store.names()) == 4
    assert failed == []


def test_deleting_a_run_frees_its_rows_and_leaves_the_others(path: Path, store: Store) -> None:
    other = log_runs.write(store, "other", log_runs.calls(40))
    big = [Event(Kind.START, 1, 0, "main", body={"picture": random.Random(1).randbytes(200_000)})]
    log_runs.write(store, "big", [*big, *log_runs.calls(300)[1:]], batch=20)
    before = _rows(path)
    store.delete_run("big")
    assert _rows(path) < before
    with pytest.raises(StoreError, match="LS205"):
        store.run("big")
    with pytest.raises(StoreError, match="LS205"):
        store.delete_run("big")
    assert [info.name for info in store.runs()] == ["other"]
    assert verify(other).consistent
    assert _rows(path) == (1, 1, 1, len(list(other.rows(other.streams[0].id))), 0)
    growing = store.create_run("growing", None)
    appender = store.stream(growing, "main")
    with pytest.raises(StoreError, match="being written"):
        store.delete_run("growing")
    appender.close(None)
    store.delete_run("growing")


def _rows(path: Path) -> tuple[int, ...]:
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        return tuple(
            connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
            for table in ("run", "branch", "stream", "segment", "big")
        )
    finally:
        connection.close()


def test_opening_listing_and_seeking_do_not_grow_with_the_run(path: Path, store: Store) -> None:
    def effort(name: str, events: int) -> tuple[list[int], int]:
        counts = []
        asked: list[str] = []
        with open_store(path) as opened:
            connection: sqlite3.Connection = opened._reader  # type: ignore[attr-defined]
            connection.set_trace_callback(asked.append)
            for question in (
                lambda: opened.runs(),
                lambda: opened.run(name),
                lambda: next(opened.run(name).heads(1, events // 2)),
                lambda: opened.run(name).body(1, events // 2),
            ):
                asked.clear()
                question()
                counts.append(len(asked))
            asked.clear()
            opened.run(name).find_step(1, events // 4)
            return counts, len(asked)

    log_runs.write(store, "small", log_runs.calls(100, size=40), batch=50)
    small, small_seek = effort("small", 202)
    store.delete_run("small")
    log_runs.write(store, "large", log_runs.calls(20_000, size=40), batch=500)
    large, large_seek = effort("large", 40_002)
    assert large[:3] == small[:3]
    assert max(large[:3]) <= 3
    # The body shares a text with the first event, and that and the step are found by binary search.
    assert large[3] <= small[3] + 10
    assert large_seek <= small_seek + 10


def test_what_is_read_does_not_grow_with_the_run(path: Path, store: Store) -> None:
    log_runs.write(store, "large", log_runs.calls(5000, size=400), batch=500)
    store.close()
    program = (
        "import sys; from lockstep.log.store import open_store\n"
        "store = open_store(sys.argv[1])\n"
        "before = int(open('/proc/self/io').read().split()[1])\n"
        "store.runs(); run = store.run('large'); run.body(run.streams[0].id, 4000)\n"
        "print(int(open('/proc/self/io').read().split()[1]) - before)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(path)], capture_output=True, text=True, env=_env(), check=True
    )
    assert int(done.stdout) < path.stat().st_size / 4


@pytest.mark.parametrize("content", [b"", b"hello, this is text\n" * 100, b"SQLite format 3\x00" + b"\x00" * 50])
def test_what_is_no_store_is_refused(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(StoreError) as caught:
        open_store(path)
    assert caught.value.code is Code.NOT_A_STORE
    assert str(path) in str(caught.value)
    assert path.read_bytes() == content


def test_another_database_is_refused_and_left_alone(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE theirs (x)")
    connection.commit()
    connection.close()
    content = path.read_bytes()
    for create in (False, True):
        with pytest.raises(StoreError) as caught:
            open_store(path, create=create)
        assert caught.value.code is Code.NOT_A_STORE
    assert path.read_bytes() == content


def test_a_newer_store_is_refused_with_the_way_out(path: Path, store: Store) -> None:
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version=3")
    connection.close()
    for create in (False, True):
        with pytest.raises(StoreError, match=r"format 3, known up to 1.*pip install -U lockstep-replay") as caught:
            open_store(path, create=create)
        assert caught.value.code is Code.TOO_NEW


def test_a_store_that_lost_a_table_is_damaged(path: Path, store: Store) -> None:
    connection = sqlite3.connect(path)
    connection.execute("DROP TABLE segment")
    connection.commit()
    connection.close()
    with pytest.raises(StoreError, match="segment") as caught:
        open_store(path)
    assert caught.value.code is Code.DAMAGED


def test_a_file_cut_in_half_is_damaged(path: Path, store: Store) -> None:
    log_runs.write(store, "run", log_runs.calls(300), batch=10)
    store.close()
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    Path(f"{path}-wal").unlink(missing_ok=True)
    with pytest.raises(StoreError) as caught, open_store(path) as opened:
        reader = opened.run("run")
        list(reader.events(reader.streams[0].id))
    assert caught.value.code is Code.DAMAGED


def test_a_place_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError) as caught:
        open_store(tmp_path / "file" / "store.db", create=True)
    assert caught.value.code is Code.UNWRITABLE
    with pytest.raises(StoreError) as caught:
        open_store(tmp_path, create=True)
    assert caught.value.code is Code.UNWRITABLE


def test_the_store_is_found_upward_and_named_by_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LOCKSTEP_STORE")
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    with pytest.raises(StoreError, match="Record a run first"):
        open_store()
    monkeypatch.chdir(tmp_path)
    open_store(create=True).close()
    assert (tmp_path / ".lockstep" / ".gitignore").read_text() == "*\n"
    monkeypatch.chdir(below)
    found = str(tmp_path / ".lockstep" / "store.db")
    assert locate() == found
    with open_store(create=True) as opened:
        assert opened.path == found
    monkeypatch.setenv("LOCKSTEP_STORE", str(tmp_path / "named.db"))
    with pytest.raises(StoreError, match="no such store"):
        open_store()
    with open_store(create=True) as opened:
        assert opened.path == str(tmp_path / "named.db")
    with pytest.raises(StoreError, match="only files"):
        open_store("postgresql://host/db")


def test_a_body_that_cannot_be_stored_is_a_fault_and_the_rest_is_kept(store: Store) -> None:
    faults: list[tuple[str, BaseException]] = []
    run = store.create_run("faulty", None)
    appender = store.stream(run, "main", lambda where, error: faults.append((where, error)))
    odd: Any = {"a": object()}
    appender.append([Event(Kind.START, 1, 0, "main", body={"n": 1})])
    appender.append([Event(Kind.BEGIN, 2, 0, "main", "tool", "\ud800", body=odd)])
    appender.append([Event(Kind.END, 3, 0, "main", Status.OK, of=2, body="fine")])
    appender.close(None)
    reader = store.run("faulty")
    start, begin, end = reader.events(reader.streams[0].id)
    assert start.body == {"n": 1}
    assert end.body == "fine"
    assert end.what == Status.OK
    assert begin.name == "\\ud800"
    assert begin.body == {UNSTORABLE: "cannot store a builtins.object at a"}
    assert reader.info.incomplete == 1
    assert [where for where, _ in faults] == ["packing an event"]
    assert verify(reader).consistent


def test_the_store_stays_small(path: Path, store: Store) -> None:
    log_runs.write(store, "calls", log_runs.calls(200))
    info = store.runs()[0]
    assert info.size / 200 < 700
    assert path.stat().st_size / 200 < 1000


def test_a_growing_chat_takes_room_for_what_is_new(store: Store) -> None:
    sizes = []
    run = store.create_run("chat", None)
    appender = store.stream(run, "main")
    for turn, events in enumerate(log_runs.chat(400)):
        appender.append(events)
        if turn in (99, 199, 399):
            sizes.append(store.runs()[0].size)
    appender.close(None)
    assert sizes[2] < sizes[1] * 2.2 < sizes[0] * 4.8
    reader = store.run("chat")
    stream = reader.streams[0].id
    *_, last = log_runs.chat(400)
    assert reader.body(stream, 798) == last[0].body
    assert verify(reader).consistent


def test_a_reference_to_an_events_own_position_is_kept(tmp_path: Path) -> None:
    """A lock's count of turns may be any number, its event's position among them."""
    with open_store(tmp_path / "store.db", create=True) as store:
        run = store.create_run("turns", None)
        appender = store.stream(run, "main")
        appender.append(
            [Event(Kind.LOCK, 7, 0, "main", what="main/a.1", name="main:1", of=count) for count in (0, 6, 7, 8)]
        )
        appender.close(None)
        reader = store.run("turns")
        assert [event.of for _, event in reader.heads(reader.streams[0].id)] == [0, 6, 7, 8]
