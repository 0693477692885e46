"""Verify: whatever is changed, dropped, added, moved or cut is found, with its place."""

import random
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import log_runs
import msgspec
import pytest

from lockstep.errors import StoreError
from lockstep.log import seal
from lockstep.log.exchange import export
from lockstep.log.model import Event, Kind, RunState
from lockstep.log.store import Store, open_store
from lockstep.log.verify import Problem, Trust, Verified, verify


@contextmanager
def tampering(path: Path) -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(path)
    try:
        yield connection
        connection.commit()
    finally:
        connection.close()


@pytest.fixture
def run(store: Store) -> str:
    log_runs.write(store, "other", log_runs.calls(30, seed=9), batch=5)
    log_runs.write(store, "refund", log_runs.calls(1000), batch=50)
    return "refund"


def check(path: Path, run: str = "refund") -> Verified:
    with open_store(path) as opened:
        return verify(opened.run(run))


def keys(connection: sqlite3.Connection) -> list[int]:
    return [key for (key,) in connection.execute("SELECT id FROM segment WHERE id >= ? ORDER BY id", (2 << 40,))]


def test_a_whole_run_is_consistent(path: Path, run: str) -> None:
    found = check(path)
    assert found.consistent
    assert not found.open_end
    assert found.events == 2002
    assert found.problems == ()
    assert len(found.head) == 64


def test_a_run_without_an_end_is_consistent_with_an_open_end(store: Store) -> None:
    reader = log_runs.write(store, "cut", log_runs.calls(50)[:-1])
    found = verify(reader)
    assert found.consistent
    assert found.open_end


CHANGES: dict[str, tuple[Callable[[sqlite3.Connection, list[int]], Any], str]] = {
    "a row dropped": (lambda c, k: c.execute("DELETE FROM segment WHERE id=?", (k[1],)), "missing"),
    "the tail cut": (lambda c, k: c.execute("DELETE FROM segment WHERE id=?", (k[-1],)), "cut short"),
    "two rows exchanged": (
        lambda c, k: c.executemany(
            "UPDATE segment SET id=? WHERE id=?", [(9 << 40, k[1]), (k[1], k[2]), (k[2], 9 << 40)]
        ),
        "",
    ),
    "a forged head": (lambda c, k: c.execute("UPDATE segment SET head=zeroblob(32) WHERE id=?", (k[1],)), "content"),
    "a forged count": (lambda c, k: c.execute("UPDATE segment SET count=count-1 WHERE id=?", (k[1],)), "are stored"),
    "forged steps": (lambda c, k: c.execute("UPDATE segment SET steps=steps+1 WHERE id=?", (k[1],)), "totals"),
    "forged order": (lambda c, k: c.execute("UPDATE segment SET late=1 WHERE id=?", (k[1],)), "totals"),
    "forged blob number": (lambda c, k: c.execute("UPDATE segment SET blob=blob+1 WHERE id=?", (k[1],)), ""),
    "a forged end": (lambda c, k: c.execute("UPDATE stream SET events=events-1 WHERE id=2"), "stored end"),
    "a forged state": (lambda c, k: c.execute("UPDATE stream SET state=2 WHERE id=2"), "marked failed"),
    "forged meta": (lambda c, k: c.execute("UPDATE run SET meta=x'80' WHERE id=2"), "header"),
    "a forged time": (lambda c, k: c.execute("UPDATE run SET started=started+1 WHERE id=2"), "header"),
    "a forged process": (lambda c, k: c.execute("UPDATE stream SET process='x' WHERE id=2"), "header"),
    "a row of another run": (
        lambda c, k: c.execute(
            "UPDATE segment SET cols=(SELECT cols FROM segment WHERE id=1<<40),"
            " body=(SELECT body FROM segment WHERE id=1<<40) WHERE id=?",
            (k[1],),
        ),
        "are stored",
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_is_found(path: Path, run: str, name: str) -> None:
    change, words = CHANGES[name]
    with tampering(path) as connection:
        change(connection, keys(connection))
    found = check(path)
    assert not found.consistent
    assert words in str(found.problems[0])
    assert str(found.problems[0]).startswith("refund")
    assert check(path, "other").consistent


def test_the_place_is_named(path: Path, run: str) -> None:
    with tampering(path) as connection:
        places = [key & ((1 << 40) - 1) for key in keys(connection)]
        connection.execute("UPDATE segment SET head=zeroblob(32) WHERE id=?", (2 << 40 | places[1],))
        connection.execute("DELETE FROM segment WHERE id=?", (2 << 40 | places[-1],))
    problems = check(path).problems
    assert len(places) > 3
    # A forged head shows in its row and, since the next one was linked to the true head, in the next.
    assert [(p.process, p.first, p.last) for p in problems] == [
        ("main", places[1], places[2] - 1),
        ("main", places[2], places[3] - 1),
        ("main", places[-1], 2001),
    ]


def test_a_changed_event_that_is_packed_again_is_found(path: Path, store: Store) -> None:
    events = log_runs.calls(20)
    log_runs.write(store, "true", events, batch=50)
    forged = list(events)
    forged[7] = Event(*[getattr(events[7], name) for name in events[7].__struct_fields__[:2]], at=1, lane="main")
    log_runs.write(store, "forged", forged, batch=50)
    with tampering(path) as connection:
        connection.execute(
            "UPDATE segment SET cols=(SELECT cols FROM segment WHERE id=2<<40),"
            " body=(SELECT body FROM segment WHERE id=2<<40) WHERE id=1<<40"
        )
    problem, *_ = check(path, "true").problems
    assert "content was changed" in problem.what
    assert (problem.first, problem.last) == (0, 41)


@pytest.mark.parametrize("secret", ["", "0123456789abcdef" * 4])
def test_500_flipped_bits_of_content_are_found_with_their_place(
    path: Path, store: Store, monkeypatch: pytest.MonkeyPatch, secret: str
) -> None:
    """Of a tape, where content is nearly everywhere. A flip that is not found changed nothing that is read."""
    monkeypatch.setenv("LOCKSTEP_KEY", secret)
    log_runs.write(store, "refund", log_runs.calls(60), batch=10)
    tape = path.with_name("refund.tape")
    export(str(path), "refund", str(tape))
    whole = tape.read_bytes()
    key = seal.given()
    with open_store(tape) as opened:
        truth = _content(opened)
    rng = random.Random(4)
    found = silent = 0
    places: list[str] = []
    while found < 500:
        place = rng.randrange(len(whole))
        tape.write_bytes(whole[:place] + bytes((whole[place] ^ 1 << rng.randrange(8),)) + whole[place + 1 :])
        try:
            with open_store(tape) as opened:
                checked = verify(opened.run("refund"), key)
                if checked.consistent:
                    silent += 1
                    assert _content(opened) == truth, f"bit flip at {place} changed what is read and was not found"
                    continue
        except StoreError as error:
            # The file cannot be opened, or the run not be found in it: that is where.
            places.append(error.message)
        else:
            assert all(_placed(problem) for problem in checked.problems), checked.problems
            assert checked.trust is (Trust.FORGED if secret else Trust.UNKEYED) or "key" in str(checked.problems)
        found += 1
    assert silent < 200
    assert all(str(tape) in place or "refund" in place for place in places), places


def _placed(problem: Problem) -> bool:
    """Whether it names events, a page of the file, or which of the stream's own fields it is about."""
    words = (
        "the run's header", "the stored end", "marked", "the stored state", "the owner of the key", "no seal",
        "where the branch comes from",
    )  # fmt: skip
    return problem.first >= 0 or "page" in problem.what or any(word in problem.what for word in words)


def _content(store: Store) -> Any:
    reader = store.run("refund")
    # That it came from somewhere is said of a tape, which the file's own header makes it.
    info = msgspec.structs.replace(reader.info, origin="")
    return info, reader.meta, list(reader.events(reader.streams[0].id))


def test_a_damaged_row_does_not_hide_the_next_damage(path: Path, run: str) -> None:
    with tampering(path) as connection:
        rows = keys(connection)
        connection.execute("UPDATE segment SET body=x'28b52ffd00' WHERE id=?", (rows[1],))
        connection.execute("UPDATE segment SET cols=x'90' WHERE id=?", (rows[-2],))
    words = [str(problem) for problem in check(path).problems]
    assert any("decompress" in word or "frame" in word for word in words)
    assert any("columns" in word for word in words)


def test_a_stream_marked_ended_needs_its_end(store: Store) -> None:
    run = store.create_run("early", None)
    appender = store.stream(run, "main")
    appender.append(log_runs.calls(3)[:-1])
    appender.close(RunState.COMPLETE)
    (problem,) = verify(store.run("early")).problems
    assert "last event does not say so" in problem.what


def test_every_process_of_a_run_is_checked(path: Path, store: Store) -> None:
    run = store.create_run("refund", None)
    for process in ("main", "main/process.1"):
        appender = store.stream(run, process)
        appender.append([Event(Kind.START, 1, 0, process), Event(Kind.FINISH, 2, 0, process, "complete")])
        appender.close(RunState.COMPLETE)
    assert verify(store.run("refund")).events == 4
    with tampering(path) as connection:
        connection.execute("UPDATE segment SET head=zeroblob(32) WHERE id=2<<40")
    problems = check(path).problems
    assert {problem.process for problem in problems} == {"main/process.1"}
