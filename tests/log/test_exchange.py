"""Export and import: a run goes through a file and is the same run, with its chain and seal."""

import json
import sqlite3
from pathlib import Path
from typing import Any

import forging
import log_runs
import log_values
import msgspec
import pytest
import zstandard

from lockstep.errors import Code, StoreError
from lockstep.log import jsonl, seal
from lockstep.log.exchange import export, import_tape
from lockstep.log.model import RunState
from lockstep.log.sqlite.clean import clean
from lockstep.log.store import Store, open_store
from lockstep.log.verify import Trust, verify

SECRET = "0123456789abcdef" * 4


def content(store: Store, run: str) -> Any:
    reader = store.run(run)
    return [
        (stream.process, reader.end(stream.id), list(reader.events(stream.id))) for stream in reader.streams
    ]  # fmt: skip


def fill(store: Store, run: str = "refund", count: int = 40) -> None:
    events = log_runs.calls(count)
    long = msgspec.structs.replace(events[2], body={"long": "x" * 100_000, "raw": bytes(range(256)) * 400, "n": 2**70})
    log_runs.write(store, run, [*events[:2], long, *events[3:]], batch=7)
    appender = store.stream(run, "main/child.1")
    appender.append(log_runs.calls(3, seed=4))
    appender.close(RunState.COMPLETE, faults=1)


@pytest.mark.parametrize("name", ["refund.tape", "refund.tape.zst", "refund.db"])
def test_a_tape_is_the_same_run(store: Store, path: Path, tmp_path: Path, name: str) -> None:
    fill(store)
    log_runs.write(store, "other", log_runs.calls(3))
    file = tmp_path / name
    done = export(str(path), "refund", str(file))
    assert (done.format, done.size, done.events, done.open_end) == ("tape", file.stat().st_size, 90, False)
    assert sorted(p.name for p in tmp_path.iterdir() if p.name.startswith(name)) == [name]
    mine = tmp_path / "mine.db"
    [imported] = import_tape(str(mine), str(file))
    assert (imported.run, imported.events, imported.trust) == ("refund", 90, Trust.UNKEYED)
    with open_store(mine) as taken:
        assert content(taken, "refund") == content(store, "refund")
        assert verify(taken.run("refund")).head == verify(store.run("refund")).head
        assert taken.run("refund").info.origin == str(file)
        assert taken.names() == ["refund"]


def test_a_tape_is_a_database_that_needs_nothing_beside_it(store: Store, path: Path, tmp_path: Path) -> None:
    fill(store)
    file = tmp_path / "refund.tape"
    export(str(path), "refund", str(file))
    assert file.read_bytes()[18:20] == b"\x01\x01"
    with open_store(file) as tape:
        assert content(tape, "refund") == content(store, "refund")
        with pytest.raises(StoreError, match="lockstep import") as caught:
            tape.create_run("more", {})
        assert caught.value.code is Code.UNWRITABLE
        with pytest.raises(StoreError):
            tape.delete_run("refund")
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith("refund.tape")] == ["refund.tape"]


def test_an_export_says_the_same_twice(store: Store, path: Path, tmp_path: Path) -> None:
    fill(store)
    for name in ("a", "b"):
        export(str(path), "refund", str(tmp_path / name), "tape")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_a_tape_of_an_imported_run_can_be_handed_on(store: Store, path: Path, tmp_path: Path) -> None:
    fill(store)
    export(str(path), "refund", str(tmp_path / "first.tape"))
    import_tape(str(path), str(tmp_path / "first.tape"))
    export(str(path), "refund-2", str(tmp_path / "second.tape"))
    export(str(tmp_path / "second.tape"), "refund-2", str(tmp_path / "third.tape"))
    [imported] = import_tape(str(tmp_path / "mine.db"), str(tmp_path / "third.tape"))
    assert imported.run == "refund-2"
    with open_store(tmp_path / "mine.db") as mine:
        assert verify(mine.run("refund-2")).recorded_as == "refund"
        assert content(mine, "refund-2") == content(store, "refund")


def test_a_name_that_is_taken_gets_a_number(store: Store, path: Path, tmp_path: Path) -> None:
    fill(store)
    export(str(path), "refund", str(tmp_path / "t"))
    names = [import_tape(str(path), str(tmp_path / "t"))[0].run for _ in range(2)]
    assert names == ["refund-2", "refund-3"]
    assert content(store, "refund-3") == content(store, "refund")
    assert store.run("refund-2").info.streams[0].id != store.run("refund").info.streams[0].id


def test_seals_go_with_a_tape(store: Store, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCKSTEP_KEY", SECRET)
    fill(store)
    export(str(path), "refund", str(tmp_path / "t"))
    [imported] = import_tape(str(tmp_path / "mine.db"), str(tmp_path / "t"))
    assert (imported.trust, imported.key) == (Trust.AUTHENTIC, seal.made(SECRET.encode()).id)
    monkeypatch.delenv("LOCKSTEP_KEY")
    [imported] = import_tape(str(tmp_path / "mine.db"), str(tmp_path / "t"))
    assert imported.trust is Trust.UNCHECKED


def test_a_forged_tape_is_not_taken_by_who_has_the_key(
    store: Store, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOCKSTEP_KEY", SECRET)
    fill(store)
    export(str(path), "refund", str(tmp_path / "t"))
    connection = sqlite3.connect(tmp_path / "t")
    connection.execute("UPDATE stream SET faults=0")
    connection.commit()
    connection.close()
    with pytest.raises(StoreError, match="not what the owner of the key sealed") as caught:
        import_tape(str(path), str(tmp_path / "t"))
    assert caught.value.code is Code.DAMAGED
    assert store.names() == ["refund"]


def test_a_run_that_is_being_written_is_exported_as_far_as_it_is(store: Store, path: Path, tmp_path: Path) -> None:
    run = store.create_run("growing", {})
    appender = store.stream(run, "main")
    events = log_runs.calls(30)
    appender.append(events[:20])
    assert export(str(path), "growing", str(tmp_path / "t")).open_end
    appender.append(events[20:])
    appender.close(RunState.COMPLETE)
    [imported] = import_tape(str(path), str(tmp_path / "t"))
    assert (imported.run, imported.events, imported.open_end) == ("growing-2", 20, True)
    assert store.run("growing-2").info.state is RunState.INTERRUPTED
    assert verify(store.run("growing")).consistent


def test_a_file_that_is_there_is_not_overwritten_unless_that_is_asked(store: Store, path: Path, tmp_path: Path) -> None:
    fill(store)
    file = tmp_path / "t"
    file.write_text("mine")
    with pytest.raises(StoreError, match="--force") as caught:
        export(str(path), "refund", str(file))
    assert (caught.value.code, file.read_text()) == (Code.UNWRITABLE, "mine")
    export(str(path), "refund", str(file), force=True)
    assert file.read_bytes()[:15] == b"SQLite format 3"


def test_a_failed_export_leaves_nothing(store: Store, path: Path, tmp_path: Path) -> None:
    fill(store)
    with pytest.raises(StoreError) as caught:
        export(str(path), "refund", str(tmp_path / "nowhere" / "t"))
    assert caught.value.code is Code.UNWRITABLE

    with forging.file(path) as connection:
        connection.execute("UPDATE segment SET body=x'c1'")
    with pytest.raises(StoreError) as caught:
        export(str(path), "refund", str(tmp_path / "t.jsonl"))
    assert caught.value.code is Code.DAMAGED
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith("t")] == []


# Lines of JSON.


@pytest.mark.parametrize("name", ["r.jsonl", "r.jsonl.zst"])
def test_lines_of_json_have_every_event_whole(store: Store, path: Path, tmp_path: Path, name: str) -> None:
    fill(store, count=3)
    file = tmp_path / name
    assert export(str(path), "refund", str(file)).format == "jsonl"
    data = file.read_bytes()
    if name.endswith(".zst"):
        data = zstandard.ZstdDecompressor().decompressobj().decompress(data)
    head, *rows = [json.loads(line) for line in data.splitlines()]
    assert (head["lockstep"], head["format"], head["run"], head["state"]) == ("run", 1, "refund", "complete")
    assert head["streams"][0]["head"] == verify(store.run("refund")).head
    reader = store.run("refund")
    stored = [event for stream in reader.streams for event in reader.events(stream.id)]
    assert [row["seq"] for row in rows] == [*range(8), *range(8)]
    assert [(row["kind"], row["pos"], row.get("key", "")) for row in rows] == [
        (event.kind.name, event.pos, event.key.hex()) for event in stored
    ]
    assert rows[2]["body"] == {
        "long": "x" * 100_000, "raw": jsonl.plain(stored[2].body["raw"]), "n": 2**70,  # type: ignore[index]
    }  # fmt: skip


def test_what_json_cannot_say_has_a_form(store: Store) -> None:
    assert jsonl.plain(b"\x00") == {"$bytes": "AA=="}
    assert jsonl.plain([float("nan"), float("inf"), -float("inf"), 0.5]) == [
        {"$float": "nan"}, {"$float": "inf"}, {"$float": "-inf"}, 0.5,
    ]  # fmt: skip
    assert jsonl.plain({"$bytes": 1}) == {"$map": [["$bytes", 1]]}
    assert jsonl.plain({"$map": 1, "x": {"$": "tuple"}}) == {"$map": 1, "x": {"$": "tuple"}}


def test_every_value_can_be_said_in_lines(store: Store, path: Path, tmp_path: Path) -> None:
    import random

    rng = random.Random(5)
    events = log_runs.calls(1)
    values = [msgspec.structs.replace(events[1], pos=n + 2, body=log_values.value(rng)) for n in range(150)]
    log_runs.write(store, "odd", [events[0], *values, msgspec.structs.replace(events[-1], pos=200)], batch=20)
    export(str(path), "odd", str(tmp_path / "odd.jsonl"))
    assert sum(1 for line in (tmp_path / "odd.jsonl").read_bytes().split(b"\n") if line and json.loads(line)) == 153


# Room.


def test_what_was_deleted_is_given_back(store: Store, path: Path) -> None:
    fill(store, "gone", 1500)
    fill(store, "kept", 5)
    before = content(store, "kept")
    store.delete_run("gone")
    done = clean(str(path))
    assert done.after < done.before / 3
    assert (done.after, done.wal_after) == (path.stat().st_size, 0)
    assert done.freed > 100_000
    assert content(store, "kept") == before
    assert verify(store.run("kept")).consistent


def test_a_living_writer_is_not_disturbed(store: Store, path: Path) -> None:
    fill(store, "gone", 300)
    run = store.create_run("living", {})
    appender = store.stream(run, "main")
    events = log_runs.calls(60)
    appender.append(events[:40])
    store.delete_run("gone")
    assert clean(str(path)).locks == 0
    assert store.run("living").info.state is RunState.GROWING
    appender.append(events[40:])
    appender.close(RunState.COMPLETE)
    assert list(store.run("living").events(appender.stream)) == events


def test_rows_of_no_run_and_locks_of_no_writer_are_swept(store: Store, path: Path) -> None:
    fill(store)
    locks = Path(f"{path}.locks")
    (locks / "77").write_bytes(b"")
    connection = sqlite3.connect(path)
    columns = "count, steps, size, late, blob, head, cols, body"
    strays = connection.execute(f"INSERT INTO segment SELECT (9<<40)+id, {columns} FROM segment").rowcount
    connection.execute("INSERT INTO seal VALUES (77, 'x', 0, x'00')")
    connection.commit()
    connection.close()
    done = clean(str(path))
    assert (done.orphans, done.locks) == (strays + 1, 1)
    assert verify(store.run("refund")).consistent
    assert clean(str(path)).orphans == 0
