"""Seals: with the key nothing can be changed, dropped or added unseen, also with a chain made anew."""

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import forging
import log_runs
import pytest

from lockstep.errors import Code, StoreError
from lockstep.log import seal
from lockstep.log.model import Event, Kind, RunState
from lockstep.log.store import Store, open_store
from lockstep.log.verify import Trust, Verified, verify

SECRET = "0123456789abcdef" * 4
OTHER = "fedcba9876543210" * 4


@pytest.fixture
def keyed(monkeypatch: pytest.MonkeyPatch) -> seal.Key:
    monkeypatch.setenv("LOCKSTEP_KEY", SECRET)
    key = seal.given()
    assert key is not None
    return key


def check(path: Path, key: seal.Key | None, run: str = "refund") -> Verified:
    with open_store(path) as opened:
        return verify(opened.run(run), key)


def test_a_sealed_run_is_authentic(store: Store, path: Path, keyed: seal.Key) -> None:
    log_runs.write(store, "refund", log_runs.calls(40), batch=7)
    found = check(path, keyed)
    assert (found.trust, found.key, found.open_end, found.problems) == (Trust.AUTHENTIC, keyed.id, False, ())
    assert SECRET.encode() not in path.read_bytes() + Path(f"{path}-wal").read_bytes()


def test_without_the_key_it_is_said_that_nothing_was_checked(store: Store, path: Path, keyed: seal.Key) -> None:
    log_runs.write(store, "refund", log_runs.calls(4))
    assert (check(path, None).trust, check(path, None).key) == (Trust.UNCHECKED, keyed.id)


def test_another_key_is_told_from_the_right_one(store: Store, path: Path, keyed: seal.Key) -> None:
    log_runs.write(store, "refund", log_runs.calls(4))
    found = check(path, seal.made(OTHER.encode()))
    assert (found.trust, found.consistent) == (Trust.OTHER_KEY, True)


def test_a_run_without_a_seal_is_not_keyed(store: Store, path: Path) -> None:
    log_runs.write(store, "refund", log_runs.calls(4))
    assert check(path, seal.made(SECRET.encode())).trust is Trust.UNKEYED


def test_an_interrupted_run_is_authentic_up_to_its_last_event(store: Store, path: Path, keyed: seal.Key) -> None:
    reader = log_runs.write(store, "refund", log_runs.calls(50)[:-1], batch=8)
    found = check(path, keyed)
    assert (found.trust, found.open_end, found.events) == (Trust.AUTHENTIC, True, 101)
    sealed = reader.end(reader.streams[0].id).seal
    assert sealed is not None
    assert sealed.events == 101


FORGERIES: dict[str, Callable[[sqlite3.Connection], Any]] = {
    "an answer": lambda c: forging.rewrite(c, 1, lambda n, e: forging.body(e, "approved") if n == 4 else e),
    "a time": lambda c: forging.rewrite(c, 1, lambda n, e: forging.at(e, 1) if n == 4 else e),
    "an event left out": lambda c: forging.rewrite(c, 1, lambda n, e: None if n == 4 else e),
    "an event put in": lambda c: forging.rewrite(c, 1, lambda n, e: e, extra=forging.NOTE),
    "the tail left out": lambda c: forging.rewrite(c, 1, lambda n, e: e if n < 20 else None),
    "another start": lambda c: forging.restart(c, 1),
    "another meta": lambda c: forging.restart(c, 1, meta=b"\x81\xa3run\xa6refund"),
    "another end": lambda c: c.execute("UPDATE stream SET faults=3 WHERE id=1"),
    "called interrupted": lambda c: c.execute("UPDATE stream SET state=0 WHERE id=1"),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forgery_with_a_chain_of_its_own_is_found(store: Store, path: Path, keyed: seal.Key, name: str) -> None:
    log_runs.write(store, "refund", log_runs.calls(30), batch=5)
    with forging.file(path) as connection:
        FORGERIES[name](connection)
    found = check(path, keyed)
    assert found.trust is Trust.FORGED
    assert found.problems
    # The chain itself is sound again: nothing but the key shows it.
    unkeyed = [problem for problem in check(path, None).problems if "seal" not in problem.what]
    assert unkeyed == []


@pytest.mark.parametrize("name", [name for name in FORGERIES if name != "another end"])
def test_the_same_forgeries_of_an_unkeyed_run_are_consistent(store: Store, path: Path, name: str) -> None:
    """That is what consistent means, and what `verify` says of it."""
    log_runs.write(store, "refund", log_runs.calls(30), batch=5)
    with forging.file(path) as connection:
        FORGERIES[name](connection)
    found = check(path, None)
    assert (found.consistent, found.trust) == (True, Trust.UNKEYED)


def test_a_finished_run_cut_at_a_row_and_called_interrupted_is_found(store: Store, path: Path, keyed: seal.Key) -> None:
    """A seal stands for the end only: a state from before, with the rows that were there then, has none."""
    log_runs.write(store, "refund", log_runs.calls(900), batch=50)
    with forging.file(path) as connection:
        [(last,)] = connection.execute("SELECT max(id) FROM segment").fetchall()
        connection.execute("DELETE FROM segment WHERE id=?", (last,))
        connection.execute("UPDATE stream SET state=0, events=0, steps=0")
        connection.execute("UPDATE seal SET events=?", (last & 0xFFFFFFFFFF,))
    found = check(path, keyed)
    assert found.trust is Trust.FORGED
    assert "not what the owner of the key sealed" in found.problems[0].what


def test_a_stream_put_into_a_sealed_run_is_found(
    store: Store, path: Path, keyed: seal.Key, monkeypatch: pytest.MonkeyPatch
) -> None:
    log_runs.write(store, "refund", log_runs.calls(4))
    monkeypatch.delenv("LOCKSTEP_KEY")
    appender = store.stream("refund", "main/child.1")
    appender.append([Event(Kind.FINISH, 1, 0, "main/child.1", "complete")])
    appender.close(RunState.COMPLETE)
    [problem] = check(path, keyed).problems
    assert (problem.process, problem.what) == ("main/child.1", "has no seal, where other streams of the run have one")


@pytest.mark.parametrize("secret", ["", "short", "a" * 64, "ab" * 40, " " * 50 + "tail"])
def test_a_weak_key_is_refused(store: Store, monkeypatch: pytest.MonkeyPatch, secret: str) -> None:
    monkeypatch.setenv("LOCKSTEP_KEY", secret)
    if not secret:
        assert seal.given() is None
        return
    with pytest.raises(StoreError) as caught:
        store.create_run("refund", {})
    assert caught.value.code is Code.NO_KEY
    assert "secrets.token_hex" in caught.value.message
    assert store.runs() == []


def test_a_key_may_stand_in_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "key"
    file.write_text(SECRET + "\n")
    monkeypatch.setenv("LOCKSTEP_KEY_FILE", str(file))
    assert seal.given() == seal.made(SECRET.encode())
    file.unlink()
    with pytest.raises(StoreError, match="cannot read the key") as caught:
        seal.given()
    assert caught.value.code is Code.NO_KEY


def test_a_key_does_not_show_itself() -> None:
    key = seal.made(SECRET.encode())
    assert SECRET not in repr(key)
    assert key.secret.hex() not in repr(key)
