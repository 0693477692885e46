"""Branches: lines of events that share what came before them, and copy nothing."""

import json
import math
import sqlite3
from collections.abc import Callable
from pathlib import Path

import forging
import log_runs
import msgspec
import pytest
from branch_runs import LAPPING, call, fork, seen

from lockstep.debugger.scrub import check as check_scrub
from lockstep.debugger.scrub import scrub
from lockstep.errors import AddressError, Code, StoreError
from lockstep.log import seal
from lockstep.log.exchange import export, import_tape
from lockstep.log.model import Event, Kind, RunState, Status
from lockstep.log.sqlite.clean import clean
from lockstep.log.store import Store, open_store
from lockstep.log.timeline import Timeline
from lockstep.log.verify import Trust, Verified, verify


def test_a_branch_has_its_parents_events_up_to_the_cut_and_then_its_own(store: Store) -> None:
    log_runs.write(store, "refund", log_runs.calls(10), batch=3)
    branch = fork(store, "refund", "try-2", "main", 7, call(9))
    stream = branch.streams[0]
    assert seen(branch) == [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]
    assert [seq for seq, _ in branch.heads(stream.id)] == list(range(11))
    main = store.run("refund")
    shared = list(main.events(main.streams[0].id, 0, 7))
    assert list(branch.events(stream.id))[:7] == shared
    assert branch.body(stream.id, 9) == "new"
    assert branch.field(stream.id, 3, "site") == "agent.py:1 in ask"
    assert (branch.branch, branch.info.branch, stream.events) == ("try-2", "try-2", 11)
    assert [(one.name, one.parent, one.pos, one.base) for one in branch.branches] == [
        ("main", "", 0, 0), ("try-2", "main", 7, 7),
    ]  # fmt: skip
    assert branch.fork is not None and branch.fork.name == ":1"
    assert main.fork is None and main.branch == "main"


def test_what_is_in_flight_at_the_cut_keeps_its_beginning_and_loses_what_was_nested_in_it(store: Store) -> None:
    log_runs.write(store, "refund", LAPPING)
    own = [
        Event(Kind.PART, 16, 20, "main/t.2", of=6, body="p"),
        Event(Kind.END, 17, 21, "main/t.2", Status.OK, "served", of=6),
        Event(Kind.BEGIN, 18, 22, "main/t.1", "http", "inner", of=5, body={"request": "inner"}),
        Event(Kind.END, 19, 23, "main/t.1", Status.OK, of=18, body="inner anew"),
        Event(Kind.END, 20, 24, "main/t.1", Status.OK, of=5, body="slow anew"),
    ]
    branch = fork(store, "refund", "try-2", "main", 14, own)
    # 7 and 8 are nested in 5, and 9 was printed by it, whose code runs again; 11 was printed by what is read on.
    assert seen(branch) == [1, 2, 3, 4, 5, 6, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21]
    steps = Timeline(branch).steps
    assert [(step.number, step.name, [effect.name for effect in step.effects]) for step in steps] == [
        (0, "", []), (1, "plan", ["plan"]), (2, "third", ["third"]), (3, "gpt", ["gpt"]), (4, "slow", ["slow"]),
        (5, "", []),
    ]  # fmt: skip
    timeline = Timeline(branch)
    assert list(timeline.parts(steps[3].effects[0])) == ["Hel", "p"]
    assert timeline.outcome(steps[4].effects[0]) == "slow anew"
    assert [timeline.outcome(child) for child in steps[4].effects[0].children] == ["inner anew"]
    assert branch.info.steps == 4
    assert [Timeline(branch).step(number) for number in range(6)] == list(steps)


def test_events_stored_out_of_their_order_are_shared_by_position(store: Store) -> None:
    stored = sorted(log_runs.calls(6), key=lambda event: event.pos + (6 if event.pos in (3, 4) else 0))
    log_runs.write(store, "refund", stored)
    branch = fork(store, "refund", "try-2", "main", 5, call(7))
    assert sorted(seen(branch)) == [1, 2, 3, 4, 5, 6, 7, 8, 9]
    assert branch.branches[1].base == 9  # the last of them is number 8
    assert [step.name for step in Timeline(branch).steps] == ["", "gpt-4o", "gpt-4o", "again", ""]


def test_a_branch_of_a_branch_shares_with_both(store: Store) -> None:
    log_runs.write(store, "refund", log_runs.calls(5), batch=2)
    fork(store, "refund", "try-2", "main", 5, [*call(7), *call(9)])
    third = fork(store, "refund", "try-3", "try-2", 8, call(10, value="newest"))
    assert seen(third) == [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]
    assert [one.parent for one in third.branches] == ["", "main", "try-2"]
    timeline = Timeline(third)
    assert [timeline.outcome(step.effects[0]) for step in timeline.steps[3:5]] == ["new", "newest"]
    assert Timeline(third).step(4) == timeline.steps[4]


def test_a_branch_of_what_its_parent_shares_is_one_of_whom_it_shares_it_with(store: Store) -> None:
    log_runs.write(store, "refund", log_runs.calls(5))
    fork(store, "refund", "try-2", "main", 5, call(7))
    early = store.create_branch("refund", "early", "try-2", 4)
    assert (early.parent, early.pos, early.state) == ("main", 4, RunState.INTERRUPTED)
    assert seen(store.run("refund", "early")) == [1, 2, 3, 4]


def test_a_taken_name_gets_a_number(store: Store) -> None:
    log_runs.write(store, "refund", log_runs.calls(2))
    names = [store.create_branch("refund", name, "main", 3).name for name in ("try", "try", "main", "try")]
    assert names == ["try", "try-2", "main-2", "try-3"]


@pytest.mark.parametrize(("parent", "pos"), [("none", 3), ("main", 0), ("main", 8), ("main", 1 << 62)])
def test_a_branch_of_nothing_is_refused(store: Store, parent: str, pos: int) -> None:
    log_runs.write(store, "refund", log_runs.calls(2))  # at positions 1 to 6
    with pytest.raises(AddressError) as caught:
        store.create_branch("refund", "try", parent, pos)
    assert caught.value.code is Code.NO_ADDRESS
    assert [one.name for one in store.run("refund").branches] == ["main"]


@pytest.mark.parametrize("name", ["", "a@b", "a:b", "a/b", "x" * 201, "a\nb"])
def test_what_is_no_name_is_refused(store: Store, name: str) -> None:
    log_runs.write(store, "refund", log_runs.calls(2))
    with pytest.raises(AddressError) as caught:
        store.create_branch("refund", name, "main", 3)
    assert caught.value.code is Code.NO_ADDRESS


def test_a_parent_that_grows_is_refused_and_one_that_was_cut_off_or_failed_is_not(store: Store) -> None:
    growing = store.create_run("growing", {})
    appender = store.stream(growing, "main")
    appender.append(log_runs.calls(3)[:-1])
    with pytest.raises(StoreError, match="still being written") as caught:
        store.create_branch("growing", "try", "main", 3)
    assert caught.value.code is Code.UNWRITABLE
    appender.close(None)
    assert store.create_branch("growing", "try", "main", 3).parent == "main"
    failed = log_runs.calls(3)
    log_runs.write(store, "failed", [*failed[:-1], msgspec.structs.replace(failed[-1], what="failed")])
    assert store.create_branch("failed", "try", "main", 3).base == 3


def test_a_refused_branch_says_so_and_one_that_diverged_has_failed(store: Store) -> None:
    log_runs.write(store, "refund", log_runs.calls(3))
    assert fork(store, "refund", "a", "main", 3, [], "refused").info.state is RunState.REFUSED
    assert fork(store, "refund", "b", "main", 3, [], "diverged").info.state is RunState.FAILED
    assert fork(store, "refund", "c", "main", 3, [], "").info.state is RunState.INTERRUPTED
    assert store.run("refund").info.state is RunState.COMPLETE


def test_what_of_the_meta_is_another_for_a_branch_is_in_its_fork(store: Store) -> None:
    log_runs.write(store, "refund", log_runs.calls(3))
    for name, parent, pos, command in (("a", "main", 3, ["other.py"]), ("b", "a", 4, None)):
        store.create_branch("refund", name, parent, pos)
        appender = store.stream("refund", "main", branch=name)
        body = {"meta": {"command": command}} if command else {}
        appender.append([Event(Kind.FORK, pos + 1, 0, "main", body=body)])
        appender.close(None)
    assert store.run("refund").meta == {"argv": ["refund"], "run": "refund"}
    changed = {"argv": ["refund"], "run": "refund", "command": ["other.py"]}
    assert store.run("refund", "a").meta == changed
    assert store.run("refund", "b").meta == changed


def test_processes_that_began_before_the_cut_are_shared_with_their_children(store: Store) -> None:
    run = store.create_run("family", {})
    told = [
        Event(Kind.START, 1, 0, "main", body={}),
        Event(Kind.LANE, 2, 1, "main", "main", "main/early.1"),
        *log_runs.calls(3)[5:7],
        Event(Kind.LANE, 8, 9, "main", "main", "main/late.1"),
        Event(Kind.FINISH, 9, 10, "main", "complete", body={}),
    ]
    for process in ("main", "main/early.1", "main/early.1/below.1", "main/late.1", "launch"):
        appender = store.stream(run, process)
        appender.append(told if process == "main" else [Event(Kind.FINISH, 1, 0, process, "complete", body={})])
        appender.close(RunState.COMPLETE)
    store.create_branch("family", "try", "main", 7)
    for process in ("main", "main/new.1", "launch"):
        store.stream("family", process, branch="try").close(None)
    branch = store.run("family", "try")
    assert [one.process for one in branch.streams] == [
        "main", "main/early.1", "main/early.1/below.1", "main/new.1", "launch",
    ]  # fmt: skip
    assert [one.process for one in branch.own] == ["main", "main/new.1", "launch"]


# What is stored, and what a branch costs.


def rows_of(path: Path) -> dict[str, int]:
    connection = sqlite3.connect(path)
    try:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type='table'")]
        return {name: connection.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in tables}
    finally:
        connection.close()


def stored(path: Path) -> int:
    """Bytes of the store, without its write-ahead log and without pages that are free."""
    clean(str(path))
    connection = sqlite3.connect(path)
    try:
        return connection.execute("SELECT sum(pgsize) FROM dbstat").fetchone()[0]  # type: ignore[no-any-return]
    finally:
        connection.close()


def test_a_branch_costs_the_same_whatever_it_shares(store: Store, path: Path) -> None:
    """A branch from the middle of a run with 100,000 events: one row, a few hundred bytes, nothing copied."""
    log_runs.write(store, "small", log_runs.calls(50, size=8), batch=500)
    log_runs.write(store, "large", log_runs.calls(50_000, size=8), batch=5000)
    cost = []
    for run, events in (("small", 102), ("large", 100_002)):
        assert store.run(run).streams[0].events == events
        rows, size = rows_of(path), stored(path)
        fork(store, run, "try-2", "main", events // 2 + 1, call(events // 2 + 3))
        more = {name: count - rows[name] for name, count in rows_of(path).items()}
        cost.append((more, stored(path) - size))
    assert cost[0][0] == cost[1][0]
    assert {name for name, count in cost[1][0].items() if count} == {"branch", "stream", "segment"}
    assert all(count <= 1 for count in cost[1][0].values())
    assert cost[1][1] <= cost[0][1] + 2048  # a page more here or there, of 1 kB


def asked(path: Path, question: Callable[[Store], object]) -> list[str]:
    """The questions that the storage is asked, and for each the rows that it answers with."""
    with open_store(path) as opened:
        connection: sqlite3.Connection = opened._reader  # type: ignore[attr-defined]
        found: list[str] = []
        connection.set_trace_callback(found.append)
        question(opened)
        return found


def test_opening_a_branch_and_seeking_a_step_reads_little_of_its_parent(store: Store, path: Path) -> None:
    effort: dict[str, list[int]] = {}
    for run, count in (("small", 1000), ("large", 20_000)):
        log_runs.write(store, run, log_runs.calls(count, size=8), batch=100)
        half = 2 * count // 2 + 1
        fork(store, run, "try-2", "main", half, [*call(half + 2), *call(half + 4)])
        questions: list[Callable[[Store], object]] = [
            lambda opened, run=run: opened.run(run, "try-2"),  # type: ignore[misc]
            *(
                lambda opened, run=run, step=step: Timeline(opened.run(run, "try-2")).step(step)  # type: ignore[misc]
                for step in (count // 4, count // 2, count // 2 + 1, count // 2 + 2)
            ),
        ]
        effort[run] = [len(asked(path, question)) for question in questions]
    assert effort["small"][0] == effort["large"][0] <= 4
    # Two binary searches and what is around the step; a question reads at most 16 rows of up to 512 events.
    assert max(effort["large"]) <= 3 * math.log2(40_000), effort


def test_a_step_found_by_index_is_the_one_in_the_list(store: Store) -> None:
    log_runs.write(store, "refund", log_runs.calls(300, size=8), batch=20)
    fork(store, "refund", "a", "main", 401, [*call(403), *call(405)])
    last = fork(store, "refund", "b", "a", 404, [event for n in range(150) for event in call(406 + 2 * n)])
    steps = Timeline(last).steps
    assert len(steps) == 200 + 1 + 150 + 2
    for number in (0, 1, 100, 199, 200, 201, 202, 203, 300, 351, 352):
        found = Timeline(last).step(number)
        assert msgspec.structs.replace(found, before=0) == msgspec.structs.replace(steps[number], before=0)


# Verify.


def check(path: Path, run: str = "refund", branch: str = "main", key: seal.Key | None = None) -> Verified:
    with open_store(path) as opened:
        return verify(opened.run(run, branch), key)


@pytest.fixture
def family(store: Store) -> Store:
    """A run of ten calls with a branch from the fifth, one of that, and one from the second."""
    log_runs.write(store, "refund", log_runs.calls(10), batch=4)
    fork(store, "refund", "try-2", "main", 11, [*call(13), *call(15)])
    fork(store, "refund", "try-3", "try-2", 14, call(16))
    fork(store, "refund", "early", "main", 5, call(7), "")
    return store


def test_a_run_is_verified_with_its_branches(family: Store, path: Path) -> None:
    found = check(path)
    assert (found.consistent, found.open_end, found.run) == (True, False, "refund")
    assert [(one.address, one.consistent, one.open_end, one.events) for one in found.branches] == [
        ("refund", True, False, 22), ("refund@try-2", True, False, 6), ("refund@try-3", True, False, 4),
        ("refund@early", True, True, 3),
    ]  # fmt: skip
    assert found.events == 35
    one = check(path, branch="try-3")
    assert (one.run, one.consistent) == ("refund@try-3", True)
    assert [each.address for each in one.branches] == ["refund@try-3", "refund", "refund@try-2"]


def rewritten(path: Path, stream: int, change: Callable[[int, Event], Event]) -> None:
    """Somebody who knows the format and has no key: chain and totals of the stream are made anew."""
    with forging.file(path) as connection:
        forging.rewrite(connection, stream, change)


def test_a_change_in_what_is_shared_shows_in_the_branch_however_well_it_was_made(family: Store, path: Path) -> None:
    rewritten(path, 1, lambda seq, event: msgspec.structs.replace(event, at=event.at + 1) if seq == 3 else event)
    found = check(path)
    assert {problem.run for problem in found.problems} == {"refund@try-2", "refund@early"}
    assert {one.address for one in found.branches if one.consistent} == {"refund"}
    assert any("what it shares with its parent was changed" in problem.what for problem in found.problems)
    assert not check(path, branch="try-3").consistent


def test_a_change_behind_the_cut_is_none_of_the_branchs(store: Store, path: Path) -> None:
    log_runs.write(store, "refund", log_runs.calls(600, size=8), batch=100)
    fork(store, "refund", "try-2", "main", 201, call(203))
    with forging.file(path) as connection:
        [(last,)] = connection.execute("SELECT max(id) FROM segment WHERE id < 2<<40").fetchall()
        connection.execute("UPDATE segment SET head=zeroblob(32) WHERE id=?", (last,))
    assert {problem.run for problem in check(path).problems} == {"refund"}
    assert check(path, branch="try-2").consistent
    with forging.file(path) as connection:
        connection.execute("UPDATE segment SET head=zeroblob(32) WHERE id=1<<40")
    assert not check(path, branch="try-2").consistent


CHANGES = {
    "the place": "UPDATE branch SET pos=pos-2 WHERE name='try-2'",
    "the number": "UPDATE branch SET seq=seq-1 WHERE name='try-2'",
    "the steps": "UPDATE branch SET steps=steps-1 WHERE name='try-2'",
    "the head": "UPDATE branch SET head=zeroblob(32) WHERE name='try-2'",
    "the calls in flight": "UPDATE branch SET flying=x'91940100c3c2' WHERE name='try-2'",
    "the name": "UPDATE branch SET name='try-4' WHERE name='try-2'",
    "the parent": "UPDATE branch SET parent=(SELECT id FROM branch WHERE name='try-2') WHERE name='early'",
    "a stream given to another branch": "UPDATE stream SET branch=1 WHERE id=2",
    "the branch's own event": "UPDATE segment SET head=zeroblob(32) WHERE id=2<<40",
    "its end": "UPDATE stream SET state=2 WHERE id=2",
}


@pytest.mark.parametrize("name", CHANGES)
def test_whatever_is_changed_of_a_branch_is_found(family: Store, path: Path, name: str) -> None:
    with forging.file(path) as connection:
        connection.execute(CHANGES[name])
    assert not check(path).consistent


def test_a_branch_of_a_sealed_run_is_sealed(store: Store, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCKSTEP_KEY", "0123456789abcdef" * 4)
    key = seal.given()
    log_runs.write(store, "refund", log_runs.calls(10), batch=4)
    fork(store, "refund", "try-2", "main", 11, call(13))
    assert [one.trust for one in check(path, key=key).branches] == [Trust.AUTHENTIC] * 2
    # Who has no key can change neither.
    rewritten(path, 2, lambda _, event: msgspec.structs.replace(event, body="forged") if event.body == "new" else event)
    assert [one.trust for one in check(path, key=key).branches] == [Trust.AUTHENTIC, Trust.FORGED]
    monkeypatch.delenv("LOCKSTEP_KEY")
    fork(store, "refund", "unsealed", "main", 5, call(7))
    assert [one.trust for one in check(path, key=key).branches] == [
        Trust.AUTHENTIC, Trust.FORGED, Trust.UNKEYED,
    ]  # fmt: skip


# Away, and elsewhere.


def test_a_tape_holds_a_run_with_its_branches(family: Store, path: Path, tmp_path: Path) -> None:
    file = str(tmp_path / "refund.tape")
    done = export(str(path), "refund", file)
    assert (done.events, done.branches) == (35, ("main", "try-2", "try-3", "early"))
    mine = tmp_path / "mine" / "store.db"
    with open_store(mine, create=True) as opened:
        log_runs.write(opened, "refund", log_runs.calls(3))  # so that all numbers are others there
    [taken] = import_tape(str(mine), file)
    assert (taken.run, taken.branches) == ("refund-2", done.branches)
    with open_store(mine) as here, open_store(file) as there:
        for name in done.branches:
            ours, theirs, first = here.run("refund-2", name), there.run("refund", name), family.run("refund", name)
            told = [list(reader.events(reader.streams[0].id)) for reader in (ours, theirs, first)]
            assert told[0] == told[1] == told[2]
        assert check(mine, "refund-2").consistent
        # And more can be made of it here.
        assert here.create_branch("refund-2", "try-4", "try-3", 17).parent == "try-3"


def test_lines_of_json_hold_the_branches_too(family: Store, path: Path, tmp_path: Path) -> None:
    file = tmp_path / "refund.jsonl"
    export(str(path), "refund", str(file))
    head, *lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert [(one["branch"], one["parent"], one["pos"], one["base"]) for one in head["branches"]] == [
        ("try-2", "main", 11, 11), ("try-3", "try-2", 14, 14), ("early", "main", 5, 5),
    ]  # fmt: skip
    assert len(lines) == 35
    own = [(line["seq"], line["pos"]) for line in lines if line.get("branch") == "try-3"]
    assert own == [(14, 15), (15, 16), (16, 17), (17, 18)]
    export(str(path), "refund@try-3", str(file), force=True)
    head, *lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert (head["branch"], head["state"]) == ("try-3", "complete")
    assert [line["pos"] for line in lines] == list(range(1, 19))
    with pytest.raises(StoreError, match="a tape holds a whole run"):
        export(str(path), "refund@try-3", str(tmp_path / "one.tape"))


def test_deleting_a_branch_frees_its_rows_and_no_others(family: Store, path: Path) -> None:
    before = rows_of(path)
    with pytest.raises(StoreError, match="try-3") as caught:
        family.delete_branch("refund", "try-2")
    assert caught.value.code is Code.UNWRITABLE
    assert rows_of(path) == before
    family.delete_branch("refund", "try-2", below=True)
    after = rows_of(path)
    assert {name: before[name] - after[name] for name in ("branch", "stream", "segment")} == {
        "branch": 2, "stream": 2, "segment": 2,
    }  # fmt: skip
    assert [one.name for one in family.run("refund").branches] == ["main", "early"]
    assert check(path).consistent
    with pytest.raises(AddressError):
        family.delete_branch("refund", "main")
    with pytest.raises(AddressError):
        family.delete_branch("refund", "try-2")
    family.delete_run("refund")
    assert set(rows_of(path).values()) == {0, 1}  # what the store says of itself


def test_a_branch_that_is_written_is_not_deleted(family: Store) -> None:
    family.create_branch("refund", "now", "main", 5)
    appender = family.stream("refund", "main", branch="now")
    assert family.run("refund", "now").info.state is RunState.GROWING
    assert family.run("refund").info.state is RunState.COMPLETE
    for delete in (lambda: family.delete_branch("refund", "now"), lambda: family.delete_run("refund")):
        with pytest.raises(StoreError, match="being written"):
            delete()
    appender.close(None)
    family.delete_branch("refund", "now")


def test_a_run_is_scrubbed_with_its_branches(store: Store, path: Path) -> None:
    log_runs.write(store, "refund", log_runs.calls(10), batch=4)
    fork(store, "refund", "try-2", "main", 11, call(13, value="mail bob@example.com"))
    fork(store, "refund", "try-3", "try-2", 14, call(16, value="and bob@example.com again"))
    with pytest.raises(AddressError, match="name the run: refund"):
        scrub(str(path), "refund@try-2")
    assert {(one.process, one.kind) for one in check_scrub(str(path), "refund").found} == {
        ("main@try-2", "email"), ("main@try-3", "email"),
    }  # fmt: skip
    done = scrub(str(path), "refund")
    assert done.branches == ("main", "try-2", "try-3")
    assert check_scrub(str(path), done.scrubbed).clean
    assert check(path, done.scrubbed).consistent
    second, third = (store.run(done.scrubbed, name) for name in ("try-2", "try-3"))
    told = [reader.body(reader.streams[0].id, seq) for reader, seq in ((second, 13), (third, 16))]
    assert [str(text).count("scrubbed-email-1") for text in told] == [1, 1]


def test_processes_of_a_branch_stand_where_their_lanes_began(store: Store) -> None:
    """Their clocks are those of another day than the clock of what the branch shares."""
    run = store.create_run("family", {}).name
    told: list[tuple[str, str, list[Event]]] = [
        ("main", "main", [
            Event(Kind.START, 1, 0, "main", body={"clock": 10**15}),
            Event(Kind.STEP, 2, 100, "main", name="shared"),
            Event(Kind.STEP, 3, 200, "main", name="not shared"),
        ]),
        ("try", "main", [
            Event(Kind.FORK, 3, 150, "main", body={}),
            Event(Kind.LANE, 4, 300, "main", "main", "main/child.1"),
            Event(Kind.STEP, 5, 310, "main", name="before the child's"),
            Event(Kind.STEP, 6, 900, "main", name="last"),
        ]),
        ("try", "main/child.1", [
            Event(Kind.START, 1, 0, "main/child.1", body={"clock": 77_000}),
            Event(Kind.STEP, 2, 20, "main/child.1", name="the child's"),
        ]),
        ("try", "main/child.1/child.1", [
            Event(Kind.START, 1, 0, "main/child.1/child.1", body={"clock": 77_100}),
            Event(Kind.STEP, 2, 20, "main/child.1/child.1", name="its child's"),
        ]),
    ]  # fmt: skip
    for branch, process, events in told:
        if branch == "try" and process == "main":
            store.create_branch(run, "try", "main", 2)
        appender = store.stream(run, process, branch=branch)
        appender.append(events)
        appender.close(None)
    steps = Timeline(store.run(run, "try")).steps
    assert [step.name for step in steps[1:-1]] == [
        "shared", "before the child's", "the child's", "its child's", "last",
    ]  # fmt: skip
