"""What is carried to another store: a recording with all that it comes from, and a branch alone, which comes back."""

from pathlib import Path

import forging
import log_runs
import native_runs
import pytest
from branch_runs import LAPPING, call, fork, seen

from lockstep.errors import Code, StoreError
from lockstep.log import carried
from lockstep.log.model import Event, Kind
from lockstep.log.store import Store, open_store
from lockstep.log.verify import verify


def elsewhere(store: Store, tmp_path: Path, run: str = "refund", branch: str = "main") -> Store:
    """Another store, with what was carried there."""
    other = str(tmp_path / "other.db")
    assert carried.receive(other, carried.recording(store.run(run, branch), store.path), "a bisect") == run
    return open_store(other)


def test_a_branch_that_was_made_elsewhere_is_the_same_branch_here(store: Store, tmp_path: Path) -> None:
    log_runs.write(store, "other", log_runs.calls(3))  # so that numbers of rows are others here
    log_runs.write(store, "refund", LAPPING)
    fork(store, "refund", "not-carried", "main", 4, call(6))
    with elsewhere(store, tmp_path) as there:
        assert there.run("refund").info.origin == "a bisect"
        assert [one.name for one in there.run("refund").branches] == ["main"]
        assert carried.identity(there.run("refund")) == carried.identity(store.run("refund"))
        made = fork(there, "refund", "probe", "main", 14, call(16))
        assert carried.take(store.path, "refund", carried.branch(there.path, "refund", "probe")) == "probe"
        taken = store.run("refund", "probe")
        assert seen(taken) == seen(made)
        assert [*taken.events(taken.streams[0].id)] == [*made.events(made.streams[0].id)]
        assert (taken.info.state, taken.info.steps) == (made.info.state, made.info.steps)
    assert verify(taken).consistent and verify(store.run("refund")).consistent
    assert seen(fork(store, "refund", "on", "probe", 17, call(19)))[-4:] == [18, 19, 20, 21]


def test_a_branch_of_a_branch_takes_with_it_what_it_comes_from(store: Store, tmp_path: Path) -> None:
    log_runs.write(store, "refund", log_runs.calls(10))
    fork(store, "refund", "try-2", "main", 7, call(9))
    with elsewhere(store, tmp_path, branch="try-2") as there:
        assert [one.name for one in there.run("refund").branches] == ["main", "try-2"]
        fork(there, "refund", "probe", "try-2", 10, call(12))
        carried.take(store.path, "refund", carried.branch(there.path, "refund", "probe"))
    assert store.run("refund", "probe").branches[-1].parent == "try-2"
    assert verify(store.run("refund", "probe")).consistent


def test_a_thread_of_a_framework_is_carried_likewise(store: Store, tmp_path: Path) -> None:
    thread = native_runs.open_thread(store)
    turn = thread.turn()
    first = thread.step(0, {"n": 1})
    thread.end(turn)
    with elsewhere(store, tmp_path, native_runs.RUN) as there:
        made = there.fork_shared(native_runs.RUN, "probe", "main", first, Event(Kind.FORK, -1, 9, "main", name=":1"))
        made.append([Event(Kind.STEP, -1, 10, "main", name="set", what="update", of=first, body={"set": {"n": 2}})])
        made.close()
        carried.take(store.path, native_runs.RUN, carried.branch(there.path, native_runs.RUN, "probe"))
    assert verify(store.run(native_runs.RUN, "probe")).consistent


def test_what_is_another_recording_has_another_identity(store: Store) -> None:
    log_runs.write(store, "refund", log_runs.calls(4))
    fork(store, "refund", "try-2", "main", 7, call(9))
    fork(store, "refund", "try-3", "main", 7, call(9, value="newer"))
    names = {carried.identity(store.run("refund", branch)) for branch in ("main", "try-2", "try-3")}
    assert len(names) == 3


def test_what_does_not_fit_is_not_taken_in(store: Store, tmp_path: Path) -> None:
    log_runs.write(store, "refund", log_runs.calls(10))
    with elsewhere(store, tmp_path) as there:
        fork(there, "refund", "probe", "main", 7, call(9))
        content = carried.branch(there.path, "refund", "probe")
        [stream] = there.run("refund", "probe").own
    with forging.file(tmp_path / "other.db") as file:
        forging.rewrite(file, stream.id, lambda seq, event: forging.body(event, "bad") if event.pos == 10 else event)
    changed = carried.branch(str(tmp_path / "other.db"), "refund", "probe")
    log_runs.write(store, "alike", log_runs.calls(10))
    for run, sent, why in (
        ("alike", content, "of another run"),
        ("refund", carried.recording(store.run("refund"), store.path), "holds no branch"),
        ("refund", content[:-20], "no tape"),
        ("refund", b"no tape", "no tape"),
    ):
        with pytest.raises(StoreError, match=why) as refused:
            carried.take(store.path, run, sent)
        assert refused.value.code is Code.DAMAGED
    assert [one.name for one in store.run("refund").branches] == ["main"]
    # Its chain was made anew, so it is consistent: only its owner's key could tell.
    assert carried.take(store.path, "refund", changed) == "probe"
    with pytest.raises(StoreError, match="already") as refused:
        carried.take(store.path, "refund", content)
    assert refused.value.code is Code.UNWRITABLE


def test_a_branch_that_left_another_recording_is_not_taken_in(store: Store, tmp_path: Path) -> None:
    log_runs.write(store, "refund", log_runs.calls(10))
    with elsewhere(store, tmp_path) as there:
        fork(there, "refund", "probe", "main", 7, call(9))
        content = carried.branch(there.path, "refund", "probe")
    [stream] = store.run("refund").streams
    with forging.file(tmp_path / "store.db") as file:
        forging.rewrite(file, stream.id, lambda seq, event: forging.body(event, "x") if event.pos == 4 else event)
    with pytest.raises(StoreError, match="was changed, moved, added or dropped"):
        carried.take(store.path, "refund", content)
