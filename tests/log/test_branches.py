"""Branches: lines of events that share what came before them, and copy nothing."""

import log_runs
import msgspec
import pytest

from lockstep.errors import AddressError, Code, StoreError
from lockstep.log.model import Event, Kind, RunState, Status
from lockstep.log.store import RunReader, Store
from lockstep.log.timeline import Timeline

# Two calls that overlap, with a nested one each; the program has begun to read the second.
LAPPING = [
    Event(Kind.LANE, 1, 0, "", "main", "main"),
    Event(Kind.START, 2, 1, "main", body={"argv": ["a.py"]}),
    Event(Kind.BEGIN, 3, 2, "main", "tool", "plan", body={"request": "plan"}),
    Event(Kind.END, 4, 3, "main", Status.OK, of=3, body="planned"),
    Event(Kind.BEGIN, 5, 4, "main/t.1", "tool", "slow", body={"request": "slow"}),
    Event(Kind.BEGIN, 6, 5, "main/t.2", "model", "gpt", body={"request": "gpt"}),
    Event(Kind.BEGIN, 7, 6, "main/t.1", "http", "inner", of=5, body={"request": "inner"}),
    Event(Kind.PART, 8, 7, "main/t.1", of=7, body="inner piece"),
    Event(Kind.OUTPUT, 9, 8, "main/t.1", "stdout", of=5, body="slow prints"),
    Event(Kind.PART, 10, 9, "main/t.2", of=6, body="Hel"),
    Event(Kind.OUTPUT, 11, 10, "main/t.2", "stdout", of=6, body="gpt prints"),
    Event(Kind.OUTPUT, 12, 11, "main", "stdout", body="main prints"),
    Event(Kind.BEGIN, 13, 12, "main", "tool", "third", body={"request": "third"}),
    Event(Kind.END, 14, 13, "main", Status.OK, of=13, body="3"),
    Event(Kind.END, 15, 14, "main/t.1", Status.OK, of=7, body="inner"),
    Event(Kind.PART, 16, 15, "main/t.2", of=6, body="lo"),
    Event(Kind.END, 17, 16, "main/t.2", Status.OK, of=6),
    Event(Kind.END, 18, 17, "main/t.1", Status.OK, of=5, body="slow"),
    Event(Kind.FINISH, 19, 18, "main", "complete", body={"end": {"exit": 0}}),
]


def fork(
    store: Store, run: str, name: str, parent: str, pos: int, events: list[Event], state: str = "complete"
) -> RunReader:
    """A branch as the engine makes one: its FORK, then events of its own."""
    made = store.create_branch(run, name, parent, pos)
    appender = store.stream(run, "main", branch=made.name)
    appender.append([Event(Kind.FORK, pos + 1, 0, "main", name=":1", body={"edits": {}, "live": [], "tail": ""})])
    appender.append(events)
    if state:
        last = max([pos + 1, *(event.pos for event in events)])
        appender.append([Event(Kind.FINISH, last + 1, 99, "main", state, body={"end": None})])
    appender.close(RunState(state) if state else None)
    return store.run(run, made.name)


def seen(reader: RunReader) -> list[int]:
    return [event.pos for _, event in reader.heads(reader.streams[0].id)]


def call(pos: int, name: str = "again", value: str = "new") -> list[Event]:
    return [
        Event(Kind.BEGIN, pos, pos, "main", "tool", name, body={"request": name}),
        Event(Kind.END, pos + 1, pos + 1, "main", Status.OK, "edited", of=pos, body=value),
    ]


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
