"""Files made to do harm: none crashes, hangs, executes anything or fills the memory; each is refused with a code.

Each is looked at by every reading command in a process with little memory and a small stack, as a thread on macOS has.
"""

import json
import os
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import forging
import log_runs
import msgspec
import pytest
import zstandard

from lockstep.errors import Code, StoreError
from lockstep.log import chain
from lockstep.log.exchange import import_tape
from lockstep.log.model import Event, Kind
from lockstep.log.pack import BIG_TEXT, CAT, REF, encode_plain
from lockstep.log.sqlite import schema, tape
from lockstep.log.store import open_store

pack = msgspec.msgpack.encode
Ext = msgspec.msgpack.Ext


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """A good tape, to be spoilt."""
    store = tmp_path / "store.db"
    with open_store(store, create=True) as opened:
        log_runs.write(opened, "refund", log_runs.calls(6), batch=5)
    tape.write(str(store), "refund", str(tmp_path / "refund.tape"))
    return tmp_path / "refund.tape"


def test_a_good_tape_is_read_by_all(made: Path, look: Any) -> None:
    assert look(made, "refund") == {
        "runs": "['complete']", "steps": "read", "branches": "None", "verify": "[]", "import": "['refund']",
    }  # fmt: skip


# Databases that are more than data.

SCHEMAS: dict[str, tuple[str, ...]] = {
    "a view in the place of a table": (
        "DROP TABLE run",
        "CREATE VIEW run AS WITH RECURSIVE r(id) AS (SELECT 1 UNION ALL SELECT id FROM r)"
        " SELECT id, 'x' AS name, 1 AS started, '' AS origin, x'80' AS meta FROM r",
    ),
    "a trigger": ("CREATE TRIGGER t AFTER INSERT ON run BEGIN DELETE FROM run; END",),
    "a generated column": (
        "DROP TABLE big",
        "CREATE TABLE big (id INTEGER PRIMARY KEY, data BLOB NOT NULL AS (zeroblob(900000000))) STRICT",
    ),
    "a table more": ("CREATE TABLE more (x)",),
    "an index more": ("CREATE INDEX more ON run (name)",),
    "a table less": ("DROP TABLE seal",),
    "a table without STRICT": (
        "DROP TABLE big",
        "CREATE TABLE big (id INTEGER PRIMARY KEY, data BLOB NOT NULL)",
    ),
    "a virtual table": ("CREATE VIRTUAL TABLE more USING fts5(x)",),
    "thousands of tables": tuple(f"CREATE TABLE t{number} (x)" for number in range(500)),
}


@pytest.mark.parametrize("name", SCHEMAS)
def test_another_schema_is_refused_whatever_it_would_do(made: Path, name: str, look: Any) -> None:
    with forging.file(made) as connection:
        for sql in SCHEMAS[name]:
            connection.execute(sql)
    found = look(made, "refund")
    assert set(found.values()) == {"LS202"}


def test_a_journal_beside_a_tape_is_not_replayed(made: Path, look: Any) -> None:
    before = made.read_bytes()
    journal = made.with_name(made.name + "-journal")
    journal.write_bytes(b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7" + (1).to_bytes(4, "big") * 5 + bytes(2000))
    made.with_name(made.name + "-wal").write_bytes(b"\x37\x7f\x06\x82" + bytes(5000))
    assert look(made, "refund")["verify"] == "[]"
    assert made.read_bytes() == before
    assert journal.exists()


def test_forged_types_are_refused(made: Path, look: Any) -> None:
    """The schema says STRICT, and SQLite believes what the file says of itself."""
    with forging.file(made) as connection:
        connection.execute("PRAGMA writable_schema=ON")
        connection.execute("UPDATE sqlite_schema SET sql=replace(sql, ' STRICT', '') WHERE name IN ('segment', 'run')")
    with forging.file(made) as connection:
        connection.execute("UPDATE segment SET count='many', steps=x'00'")
        connection.execute("UPDATE run SET started='long ago'")
        connection.execute("PRAGMA writable_schema=ON")
        connection.execute("UPDATE sqlite_schema SET sql=sql || ' STRICT' WHERE name IN ('segment', 'run')")
    assert set(look(made, "refund").values()) == {"LS202"}


NUMBERS = {
    "a negative count": "UPDATE segment SET count=-1",
    "an absurd count": "UPDATE segment SET count=1<<60",
    "an absurd step": "UPDATE segment SET steps=1<<62",
    "a negative number of a blob": "UPDATE segment SET blob=-5",
    "a key beyond all streams": "UPDATE segment SET id=(1<<62)+id",
    "an unknown state": "UPDATE stream SET state=77",
    "an absurd time": "UPDATE run SET started=1<<62",
    "no streams": "DELETE FROM stream",
    "a branch of itself": "UPDATE branch SET parent=id, pos=1, seq=1",
}


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_that_make_no_sense_are_found(made: Path, name: str, look: Any) -> None:
    with forging.file(made) as connection:
        connection.execute(NUMBERS[name])
    found = look(made, "refund")
    assert (found["verify"] == "[]") == (name == "no streams"), found


# Branches that lead in a circle, nowhere, or further than anything.

_OTHER = "(SELECT id FROM branch WHERE name='one')"
_DEEP = "WITH RECURSIVE n(i) AS (SELECT 10 UNION ALL SELECT i+1 FROM n WHERE i < {most})"
BRANCHES: dict[str, str] = {
    "a branch of itself": "UPDATE branch SET parent=id WHERE name='one'",
    "a circle": f"UPDATE branch SET parent=(SELECT id FROM branch WHERE name='two') WHERE id={_OTHER}",
    "a branch of nothing": "UPDATE branch SET parent=77 WHERE name='one'",
    "another main": "UPDATE branch SET parent=0 WHERE name='one'",
    "two of one name": "UPDATE branch SET name='one' WHERE name='two'",
    "no main": "DELETE FROM branch WHERE name='main'",
    "a branch of another run": "INSERT INTO branch VALUES (50, 2, 'far', 0, 0, 0, 0, x'', x'');"
    " UPDATE branch SET parent=50 WHERE name='one'",
    "a huge number": "UPDATE branch SET seq=(1<<62) WHERE name='one'",
    "a huge position": "UPDATE branch SET pos=(1<<62) WHERE name='one'",
    "huge steps": "UPDATE branch SET steps=(1<<62) WHERE name='one'",
    "a number of nothing": "UPDATE branch SET seq=0 WHERE name='one'",
    "a stream of nobody": "UPDATE stream SET branch=77 WHERE id=2",
    "calls in flight that are noise": "UPDATE branch SET flying=x'c1' WHERE name='one'",
    "calls in flight from the far future": "UPDATE branch SET flying=x'9194ce7fffffffce7fffffffc3c2' WHERE name='one'",
    "as many calls in flight as fit": f"UPDATE branch SET flying=x'dc1000{'940100c3c2' * 0x1000}' WHERE name='one'",
    "more calls in flight than fit": f"UPDATE branch SET flying=x'dcffff{'940100c3c2' * 0xFFFF}' WHERE name='one'",
    "a name that opens a terminal's mouth": "UPDATE branch SET name=char(27) || ']0;owned' || char(7) WHERE name='one'",
    "a chain of twenty thousand": _DEEP.format(most=20_000)
    + " INSERT INTO branch SELECT i, 1, 'n' || i, i-1, i, i, 0, x'', x'' FROM n",
    "a chain of nine hundred": _DEEP.format(most=900)
    + " INSERT INTO branch SELECT i, 1, 'n' || i, iif(i=10, 1, i-1), i, i, 0, x'', x'' FROM n",
}


@pytest.mark.parametrize("name", BRANCHES)
def test_branches_that_make_no_sense_are_found(made: Path, name: str, look: Any, tmp_path: Path) -> None:
    store = tmp_path / "store.db"
    with open_store(store) as opened:
        for branch, parent, pos in (("one", "main", 5), ("two", "one", 7)):
            opened.create_branch("refund", branch, parent, pos)
            appender = opened.stream("refund", "main", branch=branch)
            appender.append([
                Event(Kind.FORK, pos + 1, 0, "main", body={"meta": {}}), Event(Kind.STEP, pos + 2, 0, "main"),
            ])  # fmt: skip
            appender.close(None)
    made.unlink()
    tape.write(str(store), "refund", str(made))
    sound = look(made, "refund")
    assert (sound["branch:one"], sound["verify:two"], sound["verify"]) == ("read", "0", "[]")
    with forging.file(made) as connection:
        connection.executescript(BRANCHES[name])
    made.with_name("mine.db").unlink()
    found = look(made, "refund")
    assert found["verify"] != "[]" and found["import"] == "LS202", found


# Values that are more than they seem. Each stands where a good answer stood, with a chain that was made anew.


def nested(levels: int, end: bytes = b"\xc0") -> bytes:
    return b"\x91" * levels + end


BODIES: dict[str, tuple[bytes, list[bytes]]] = {
    "nesting of 100,000": (nested(100_000), []),
    "nesting of 3,000 in maps": (b"\x81\xa1x" * 3_000 + b"\xc0", []),
    "nesting through references": (
        pack(Ext(REF, b"\x63")),
        [nested(90, pack(Ext(REF, bytes((n - 1,)))) if n else b"\xc0") for n in range(100)],
    ),
    "a reference to itself": (pack(Ext(REF, b"\x00")), [pack(Ext(REF, b"\x00"))]),
    "references in a ring": (pack(Ext(REF, b"\x00")), [pack(Ext(REF, b"\x01")), pack(Ext(REF, b"\x00"))]),
    "references that explode": (
        pack(Ext(REF, b"\x28")),
        [b"\xc0", *(pack([Ext(REF, bytes((n,)))] * 10) for n in range(40))],
    ),
    "a rope that explodes": (
        pack(Ext(REF, b"\x28")),
        [pack(["x" * 50]), *(pack(Ext(CAT, pack([n] * 10))) for n in range(40))],
    ),
    "a reference to nothing": (pack(Ext(REF, b"\xff\xff")), []),
    "a leaf that is not there": (pack(Ext(BIG_TEXT, b"\x05")), []),
    "an array that claims 4 GB": (b"\xdd\xff\xff\xff\xff\xc0", []),
    "a text that claims 4 GB": (b"\xdb\xff\xff\xff\xff\xc0", []),
    "thirty million maps": (b"\xdd" + (30_000_000).to_bytes(4, "big") + b"\x80" * 30_000_000, []),
    "an unknown extension": (pack(Ext(99, b"os.system")), []),
    "a formatter that does not exist": (pack(Ext(34, b"\x63\x80")), []),
    "an empty extension": (pack(Ext(34, b"")), []),
    "two equal keys": (b"\x82\xa1x\x01\xa1x\x02", []),
    "keys that are no text": (b"\x81\x01\x02", []),
    "keys that are lists": (b"\x81\x92\x01\x02\xc0", []),
    "text that is no UTF-8": (b"\xa2\xff\xfe", []),
    "a number written too long": (b"\xcd\x00\x01", []),
    "a map of pairs that are none": (pack(Ext(3, pack([1, 2]))), []),
    "a map of pairs with one left over": (pack(Ext(3, pack(["a"]))), []),
    "nothing": (b"\xc1", []),
    "something left over": (b"\xc0\xc0", []),
}


@pytest.mark.parametrize("name", BODIES)
def test_a_value_that_is_more_than_it_seems_is_refused(made: Path, name: str, look: Any) -> None:
    body, blobs = BODIES[name]
    with forging.file(made) as connection:
        forge(connection, body, blobs)
    found = look(made, "refund")
    # Not by its chain, which anybody can make anew.
    assert found["verify"] not in ("[]", "LS202") and "content was changed" not in found["verify"]
    assert found["import"] == "LS202"


def test_deep_nesting_that_is_honest_is_read(tmp_path: Path, look: Any) -> None:
    """What the recorder takes is read again, also in a small stack, references between the levels included."""
    value: Any = "end"
    for level in range(190):
        value = {"in": value, "pad": f"{level} " * 200}
    store = tmp_path / "store.db"
    events = log_runs.calls(1)
    with open_store(store, create=True) as opened:
        log_runs.write(opened, "deep", [*events[:-2], msgspec.structs.replace(events[-2], body=value), events[-1]])
    tape.write(str(store), "deep", str(tmp_path / "deep.tape"))
    assert look(tmp_path / "deep.tape", "deep") == {
        "runs": "['complete']", "steps": "read", "branches": "None", "verify": "[]", "import": "['deep']",
    }  # fmt: skip


def forge(connection: sqlite3.Connection, body: bytes, blobs: list[bytes]) -> None:
    """One row with a BEGIN, an END that has this body, and a FINISH; a chain over what can be linked."""
    from lockstep.log.sqlite import rows

    events = [
        Event(Kind.START, 1, 0, "main"),
        Event(Kind.BEGIN, 2, 1, "main", "model", "gpt-4o"),
        Event(Kind.END, 3, 2, "main", "ok", of=2),
        Event(Kind.FINISH, 4, 3, "main", "complete"),
    ]
    bodies = [encode_plain({}), encode_plain({"request": {}}), body, encode_plain({"end": None})]
    [(started, meta)] = connection.execute("SELECT started, meta FROM run").fetchall()
    head = chain.base(started, meta, "main")
    cols, stored = rows.make(events, bodies, blobs, rows.Squeezer())
    connection.execute("DELETE FROM segment")
    keys = schema.first_key(1)
    connection.execute("INSERT INTO segment VALUES (?,4,1,0,0,0,?,?,?)", (keys, head, cols, stored))
    connection.execute("UPDATE stream SET events=4, steps=1, head=?", (head,))


# Bombs and other files.


def bomb(size: int, *, declared: bool) -> bytes:
    squeezer = zstandard.ZstdCompressor(level=3, write_content_size=declared)
    if declared:
        return squeezer.compress(bytes(size))
    stream = squeezer.compressobj()
    return b"".join([*(stream.compress(bytes(1 << 20)) for _ in range(size >> 20)), stream.flush()])


@pytest.mark.parametrize("column", ["cols", "body"])
@pytest.mark.parametrize("declared", [True, False])
def test_a_row_that_decompresses_to_gigabytes_is_refused(made: Path, column: str, declared: bool, look: Any) -> None:
    with forging.file(made) as connection:
        connection.execute(f"UPDATE segment SET {column}=?", (bomb(1 << 30, declared=declared),))
    found = look(made, "refund")
    assert ("cannot be read" in found["verify"], found["import"]) == (True, "LS202")


def test_a_row_that_lies_about_its_size_is_refused(made: Path, look: Any) -> None:
    frame = bytearray(bomb(8 << 20, declared=True))
    at = 5 if frame[4] & 0x20 else 6
    frame[at : at + 4] = (1000).to_bytes(4, "little")
    with forging.file(made) as connection:
        connection.execute("UPDATE segment SET body=?", (bytes(frame),))
    assert look(made, "refund")["import"] == "LS202"


def test_a_leaf_that_decompresses_to_gigabytes_is_refused(made: Path, look: Any) -> None:
    with forging.file(made) as connection:
        forge(connection, pack([Ext(BIG_TEXT, b"\x00")] * 50), [])
        connection.execute("INSERT INTO big VALUES (?,?)", (schema.first_key(1), b"z" + bomb(900 << 20, declared=True)))
    assert look(made, "refund")["import"] == "LS202"


def test_a_tape_that_decompresses_without_end_is_refused(tmp_path: Path, look: Any) -> None:
    file = tmp_path / "bomb.tape.zst"
    file.write_bytes(bomb(256 << 20, declared=False))
    assert look(file)["import"] == "LS202"


FILES: dict[str, Callable[[Path], Any]] = {
    "nothing in it": lambda p: p.write_bytes(b""),
    "text": lambda p: p.write_bytes(b"hello\n" * 1000),
    "a database of something else": lambda p: sqlite3.connect(p).execute("CREATE TABLE t (x)").connection.close(),
    "a magic and nothing else": lambda p: p.write_bytes(b"SQLite format 3\x00"),
    "a header and noise": lambda p: p.write_bytes(p.read_bytes()[:100] + bytes(range(256)) * 50),
    "half of it": lambda p: p.write_bytes(p.read_bytes()[: p.stat().st_size // 2]),
    "a directory": lambda p: (p.unlink(), p.mkdir()),
    "a pipe": lambda p: (p.unlink(), os.mkfifo(p)),
}


@pytest.mark.parametrize("name", FILES)
def test_what_is_no_tape_is_refused(made: Path, name: str, look: Any) -> None:
    FILES[name](made)
    assert set(look(made).values()) <= {"LS201", "LS202", "LS203"}


def test_names_are_shown_and_not_obeyed(made: Path, lockstep: Any) -> None:
    with forging.file(made) as connection:
        connection.execute("UPDATE run SET name=?", ("x\x00\x1b]0;owned\x07\u202egpj.exe",))
    shown = lockstep("runs", "--store", str(made))
    assert shown.returncode == 0
    assert "\x1b" not in shown.stdout + shown.stderr and "\x07" not in shown.stdout
    assert "\\x1b" in shown.stdout
    refused = lockstep("import", str(made))
    assert refused.returncode == 2
    assert "LS205" in refused.stderr and "\x1b" not in refused.stderr


def test_the_command_of_a_tape_is_not_run(made: Path, tmp_path: Path, lockstep: Any) -> None:
    mark = tmp_path / "owned"
    meta = encode_plain({"command": ["/bin/sh", "-c", f"touch {mark}"], "cwd": "/", "seed": bytes(32)})
    with forging.file(made) as connection:
        forging.restart(connection, 1, meta)
    imported = lockstep("import", str(made))
    assert imported.returncode == 0, imported.stderr
    assert f"touch {mark}" in imported.stderr
    for words in (("replay", "refund-2"), ("verify", "refund-2"), ("replay", "refund", "--store", str(made))):
        done = lockstep(*words)
        assert (done.returncode, "LS302" in done.stderr) == (2, True), done.stderr
    assert not mark.exists()
    lockstep("replay", "refund-2", "--trust")
    assert mark.exists()


def test_damage_in_one_run_does_not_hide_the_others(tmp_path: Path, lockstep: Any) -> None:
    store = tmp_path / "store.db"
    with open_store(store, create=True) as opened:
        for name in ("good", "bad"):
            log_runs.write(opened, name, log_runs.calls(2))
            appender = opened.stream(name, "launch")
            appender.append([Event(Kind.FINISH, 1, 0, "launch", "complete", body={"exit": 0})])
            appender.close(None)
    with forging.file(store) as connection:
        connection.execute("UPDATE segment SET body=x'c1' WHERE id=?", (schema.first_key(4),))
    listed = lockstep("runs", "--json", "--store", str(store))
    assert {run["run"]: run["state"] for run in json.loads(listed.stdout)} == {"good": "complete", "bad": "damaged"}
    people = lockstep("runs", "--store", str(store))
    assert (people.returncode, "bad cannot be read" in people.stderr) == (0, True)


def test_a_damaged_tape_is_refused_with_the_place_and_nothing_is_added(made: Path, tmp_path: Path) -> None:
    with forging.file(made) as connection:
        connection.execute("UPDATE stream SET steps=steps+1")
    with pytest.raises(StoreError, match=r"nothing was imported.*refund, process main: the stored end") as caught:
        import_tape(str(tmp_path / "mine.db"), str(made))
    assert caught.value.code is Code.DAMAGED
    assert not (tmp_path / "mine.db").exists()


def test_a_store_that_is_in_use_is_no_tape(tmp_path: Path) -> None:
    store = tmp_path / "store.db"
    with open_store(store, create=True) as opened:
        log_runs.write(opened, "refund", log_runs.calls(2))
        shutil.copy(store, tmp_path / "copy.db")
    with pytest.raises(StoreError, match="lockstep export RUN") as caught:
        import_tape(str(tmp_path / "mine.db"), str(tmp_path / "copy.db"))
    assert caught.value.code is Code.NOT_A_STORE
