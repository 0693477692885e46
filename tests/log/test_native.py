"""Native runs as people see them: checkpoints are steps, calls belong to the next one of their namespace."""

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import forging
import msgspec
import native_runs
import pytest
from native_runs import RUN, Thread

from lockstep.debugger import cuts
from lockstep.debugger.scrub import scrub
from lockstep.errors import AddressError, Code, StoreError
from lockstep.log import native
from lockstep.log.exchange import export, import_tape
from lockstep.log.model import Event, Kind, RunState, Status
from lockstep.log.sqlite import rows
from lockstep.log.sqlite.clean import clean
from lockstep.log.store import RunReader, Store, open_store
from lockstep.log.timeline import Timeline, resolve
from lockstep.log.verify import verify
from lockstep.session.native.record import Record


def listed(reader: RunReader) -> list[tuple[int, str, str, list[str]]]:
    return [
        (step.number, step.kind, step.name, [effect.name for effect in step.effects]) for step in Timeline(reader).steps
    ]


def test_every_checkpoint_is_a_step_and_the_first_one_is_step_0(store: Store) -> None:
    native_runs.refund(store)
    reader = store.run(RUN)
    assert listed(reader) == [
        (0, "input", "input", []),
        (1, "checkpoint", "input", []),
        (2, "checkpoint", "agent", ["gpt-4o"]),
        (3, "checkpoint", "tools", ["get_order"]),
        (4, "checkpoint", "agent", ["gpt-4o"]),
        (5, "checkpoint", "review", []),
    ]
    assert reader.info.steps == 6


def test_what_no_checkpoint_has_followed_is_in_an_end(store: Store) -> None:
    thread = native_runs.open_thread(store)
    first = thread.step(0, {"m": []}, "input", "input")
    assert listed(store.run(RUN)) == [(0, "input", "input", [])]
    thread.writes(first, "agent", ("m", [1]))
    assert listed(store.run(RUN)) == [(0, "input", "input", []), (1, "end", "", [])]
    thread.call("main/agent", "tool", "ask", {}, "answer")
    assert listed(store.run(RUN))[1:] == [(1, "end", "", ["ask"])]
    thread.step(first, {"m": [1]})
    assert listed(store.run(RUN))[1:] == [(1, "checkpoint", "agent", ["ask"])]


def test_a_thread_without_any_checkpoint_has_an_end_only(store: Store) -> None:
    native_runs.open_thread(store)
    assert listed(store.run(RUN)) == [(0, "end", "", [])]


def test_writes_that_come_after_the_checkpoint_made_of_them_are_no_end(store: Store) -> None:
    thread = native_runs.open_thread(store)
    first = thread.step(0, {"m": []})
    thread.step(first, {"m": [1]})
    thread.writes(first, "agent", ("m", [1]))
    assert [kind for _, kind, _, _ in listed(store.run(RUN))] == ["checkpoint", "checkpoint"]


def test_a_call_belongs_to_the_next_checkpoint_of_its_namespace(store: Store) -> None:
    thread = native_runs.open_thread(store)
    root = thread.step(0, {"m": []})
    thread.call("main/plan/search", "tool", "in the subgraph", {}, 1)
    thread.call("main/plan", "tool", "of the task that runs it", {}, 2)
    thread.call("main/other", "tool", "of another task", {}, 3)
    inner = thread.step(0, {"q": 1}, "search", lane="main/plan")
    thread.call("main/plan/search", "tool", "in its second step", {}, 4)
    thread.step(inner, {"q": 2}, "search", lane="main/plan")
    thread.call("main/plan/deep/x", "tool", "below, without checkpoints", {}, 5)
    thread.step(root, {"m": [1]}, "plan, other")
    steps = {(number, name): calls for number, _, name, calls in listed(store.run(RUN))}
    assert steps == {
        (0, "agent"): [],
        (1, "search"): ["in the subgraph"],
        (2, "search"): ["in its second step"],
        (3, "plan, other"): ["of another task", "of the task that runs it", "below, without checkpoints"],
    }


def test_the_step_of_one_strand_closes_over_its_own_calls_and_what_such_strands_did_later(store: Store) -> None:
    thread = native_runs.open_thread(store)
    for turn in ("first", "second"):
        begun = thread.turn()
        root = thread.step(0, {"given": turn}, "input", "input", lane="desk")
        thread.call("desk/letter", "model", f"{turn} letter", {}, 1)
        thread.call("desk/research/tool-1", "tool", f"{turn} look", {}, 2)
        thread.call("desk", "model", f"{turn} plan", {}, 3)
        thread.call("desk/letters", "model", f"{turn} other name", {}, 4)
        thread.step(root, {"said": turn}, "letter", native.OWN, lane="desk")
        thread.call("desk/letter", "write", f"{turn} file", {}, 5)
        thread.step(root, {"said": turn}, "research", native.OWN, lane="desk")
        thread.end(begun)
    reader = store.run(RUN)
    assert listed(reader) == [
        (0, "input", "input", []),
        (1, "checkpoint", "letter", ["first plan", "first letter"]),
        (2, "checkpoint", "research", ["first file", "first look"]),
        (3, "input", "input", ["first other name"]),
        (4, "checkpoint", "letter", ["second plan", "second letter"]),
        (5, "checkpoint", "research", ["second file", "second look"]),
        (6, "end", "", ["second other name"]),
    ]
    record, steps = Record(reader), Timeline(reader).steps
    told = {effect.name: step.number for step in steps for effect in step.effects}
    tape = record.tape()
    assert {each.begin.name: record.step_of(each) for lane in tape.lanes.values() for each in lane.effects} == told
    # Of such runs the answers are searched, in the order in which they came, whichever step they are of.
    assert [cut.at for cut in cuts.of_run(Timeline(reader))][:5] == ["0", "1.2", "2.2", "1.1", "3.1"]


@pytest.mark.parametrize(
    ("lane", "checkpoints", "theirs"),
    [
        ("main/plan", "main", True),
        ("main", "main", True),
        ("main/plan/search", "main/plan", True),
        ("main/plan", "main/plan", False),
        ("main/planner/x", "main/plan", False),
        ("main/plan~1/x", "main/plan", False),
        ("main/worker.2", "main", True),
    ],
)
def test_which_checkpoints_close_over_a_lane(lane: str, checkpoints: str, theirs: bool) -> None:
    assert native.belongs(lane, checkpoints) is theirs


def test_a_call_in_flight_when_its_process_died_is_in_the_step_of_the_turn_that_went_on(store: Store) -> None:
    thread = native_runs.open_thread(store)
    thread.turn()
    first = thread.step(0, {"m": []})
    begun = thread.event(Kind.BEGIN, "main/agent", what="tool", name="cut off", body={"request": {}})
    thread.event(Kind.BEGIN, "main/agent", what="http", name="nested", of=begun, body={"request": {}})
    assert [effect.name for effect in Timeline(store.run(RUN)).steps[-1].effects] == ["cut off"]
    again = thread.turn()
    thread.call("main/agent", "tool", "again", {}, 1)
    thread.step(first, {"m": [1]})
    thread.end(again)
    step = Timeline(store.run(RUN)).steps[1]
    assert [(effect.name, effect.status) for effect in step.effects] == [("cut off", None), ("again", Status.OK)]
    assert [child.name for child in step.effects[0].children] == ["nested"]


def test_turns_say_which_steps_they_made_and_how_they_ended(store: Store) -> None:
    thread = native_runs.refund(store)
    thread.step(10, {"n": 1}, "", "update")
    failed = thread.turn("stream")
    thread.end(failed, Status.ERROR, {"name": "ValueError", "args": ["no"]})
    thread.turn("astream")
    turns = Timeline(store.run(RUN)).turns
    assert [(one.number, one.name, one.first, one.last, one.end and one.end.what) for one in turns] == [
        (1, "invoke", 0, 4, "ok"), (2, "invoke", 5, 5, "ok"), (3, "stream", -1, -1, "error"),
        (4, "astream", -1, -1, None),
    ]  # fmt: skip


def forked(store: Store, thread: Thread, pos: int, name: str = "fork", parent: str = "main") -> Thread:
    event = Event(Kind.FORK, -1, 0, "main", name=":1", body={"latest": True})
    return Thread(store.fork_shared(RUN, name, parent, pos, event), thread.states)


def test_a_branch_is_made_while_its_parent_grows_and_shares_what_came_before(store: Store) -> None:
    thread = native_runs.open_thread(store)
    lock = thread.shared.hold_turn()
    thread.turn()
    first = thread.step(0, {"m": [1]}, "input", "input")
    second = thread.step(first, {"m": [1, 2]})
    thread.call("main/agent", "tool", "ask", {}, 1)
    third = thread.step(second, {"m": [1, 2, 3]})
    branch = forked(store, thread, second)
    assert branch.shared.branch == "fork" and store.run(RUN).info.state is RunState.GROWING
    turn = branch.turn()
    own = branch.step(second, {"m": [1, 2, 9]}, "edited")
    deeper = forked(store, branch, own, parent="fork")
    deeper.step(own, {"m": []}, "deep")
    shared = forked(store, branch, first, parent="fork")  # before the fork: a branch of main
    thread.step(third, {"m": []}, "later")
    branch.end(turn)
    names = {one.name: (one.parent, one.pos, one.before, one.steps) for one in store.run(RUN).branches}
    assert names == {
        "main": ("", 0, 0, 4), "fork": ("main", second, 2, 3), "fork-2": ("fork", own, 3, 4),
        "fork-3": ("main", first, 1, 1),
    }  # fmt: skip
    assert [step.name for step in Timeline(store.run(RUN, "fork-2")).steps] == ["input", "agent", "edited", "deep"]
    assert [step.name for step in Timeline(store.run(RUN, "fork-3")).steps] == ["input"]
    assert shared.shared.branch == "fork-3" and not verify(store.run(RUN)).problems
    (turn_1, turn_2) = Timeline(store.run(RUN, "fork")).turns
    assert (turn_1.left, turn_1.last, turn_2.first) == (True, 1, 2)
    assert lock is not None
    lock.release()


@pytest.mark.parametrize("rows", [1, 30, 700])
def test_where_a_branch_left_is_right_wherever_in_a_row_it_is(store: Store, rows: int) -> None:
    thread = native_runs.open_thread(store)
    pos = 0
    for number in range(rows):
        pos = thread.step(pos, {"n": number, "text": "word " * 40})
    for at in {3, 3 + rows // 2, 2 + rows}:
        forked(store, thread, at, f"at-{at}")
    assert not verify(store.run(RUN)).problems


def test_a_branch_of_a_place_that_is_not_there_is_refused(store: Store) -> None:
    thread = native_runs.refund(store)
    for pos in (0, 10_000):
        with pytest.raises(AddressError) as caught:
            forked(store, thread, pos)
        assert caught.value.code is Code.NO_ADDRESS
    assert len(store.run(RUN).branches) == 1


def test_a_thread_is_found_without_its_framework_if_only_one_is_called_so(store: Store) -> None:
    native_runs.refund(store)
    native_runs.open_thread(store, "langgraph/a%2Fb")
    assert str(resolve(store, "t-91:3").address) == "langgraph/t-91:3"
    assert resolve(store, "a%2Fb").timeline.name == "langgraph/a%2Fb"
    assert resolve(store, "a/b").timeline.name == "langgraph/a%2Fb"
    store.create_run("t-91", {})
    store.stream("t-91", "main").close(None)
    assert resolve(store, "t-91").timeline.name == "t-91"
    native_runs.open_thread(store, "crewai/a%2Fb")
    with pytest.raises(AddressError, match=r"may mean any of these runs: crewai/a%2Fb, langgraph/a%2Fb"):
        resolve(store, "a/b")
    with pytest.raises(AddressError, match="no run named none"):
        resolve(store, "none")


def test_an_exported_thread_is_the_same_elsewhere_and_goes_on_there(path: Path, store: Store, tmp_path: Path) -> None:
    thread = native_runs.refund(store)
    forked(store, thread, 4)
    tape = tmp_path / "thread.tape"
    export(str(path), "t-91", str(tape))
    other = tmp_path / "other.db"
    (taken,) = import_tape(str(other), str(tape))
    assert taken.run == RUN and taken.branches == ("main", "fork")
    with open_store(other) as opened:
        reader = opened.run(RUN)
        assert listed(reader) == listed(store.run(RUN)) and reader.info.state is RunState.COMPLETE
        again = native_runs.open_thread(opened)
        again.step(4, {"n": 1}, "further")
        assert listed(opened.run(RUN))[-1][2] == "further" and not verify(opened.run(RUN)).problems


def test_a_thread_with_an_open_turn_is_exported_as_interrupted(path: Path, store: Store, tmp_path: Path) -> None:
    thread = native_runs.open_thread(store)
    lock = thread.shared.hold_turn()
    thread.turn()
    thread.step(0, {"m": []})
    tape = tmp_path / "thread.tape"
    export(str(path), RUN, str(tape))
    with open_store(tape) as opened:
        assert opened.run(RUN).info.state is RunState.INTERRUPTED
        assert verify(opened.run(RUN)).open_end
    assert lock is not None
    lock.release()


def test_a_scrubbed_thread_counts_its_steps_as_the_thread_does(path: Path, store: Store) -> None:
    thread = native_runs.refund(store)
    secret = "call me at alice@example.com"
    last = thread.step(10, {"m": [native_runs.message("human", secret)]})
    branch = forked(store, thread, last)
    branch.step(last, {"m": [native_runs.message("human", secret)], "n": 1})
    found = scrub(str(path), RUN)
    reader = store.run(found.scrubbed)
    assert listed(reader) == listed(store.run(RUN)) and not verify(reader).problems
    assert reader.info.steps == store.run(RUN).info.steps
    for branch_name in ("main", "fork"):
        told = store.run(found.scrubbed, branch_name)
        assert "alice" not in str([event.body for event in told.events(told.main)])


def test_threads_and_their_branches_are_deleted_as_other_runs(path: Path, store: Store) -> None:
    thread = native_runs.refund(store)
    branch = forked(store, thread, 4)
    branch.step(4, {"m": []})
    store.delete_branch(RUN, "fork")
    assert [one.name for one in store.run(RUN).branches] == ["main"] and not verify(store.run(RUN)).problems
    with pytest.raises(StoreError):
        branch.step(4, {"m": []})
    store.delete_run(RUN)
    assert store.names() == []
    clean(str(path))


def test_gc_leaves_threads_that_are_open_alone(path: Path, store: Store) -> None:
    thread = native_runs.refund(store)
    lock = thread.shared.hold_turn()
    turn = thread.turn()
    cleaned = clean(str(path))
    assert cleaned.orphans == 0 and store.run(RUN).info.state is RunState.GROWING
    thread.end(turn)
    assert lock is not None
    lock.release()
    thread.step(10, {"n": 1})
    assert not verify(store.run(RUN)).problems


def test_a_changed_checkpoint_is_found(path: Path, store: Store) -> None:
    native_runs.refund(store)
    store.close()
    with forging.file(path) as connection:
        found = [(key, rows.expand(body)) for key, body in connection.execute("SELECT id, body FROM segment")]
        changed = [(body.replace(b"delivered", b"elsewhere"), key) for key, body in found if b"delivered" in body]
        assert changed
        connection.executemany("UPDATE segment SET body=? WHERE id=?", changed)
    with open_store(path) as opened:
        assert any("content was changed" in problem.what for problem in verify(opened.run(RUN)).problems)


def test_checkpoints_that_are_cut_off_a_thread_at_rest_are_missed(path: Path, store: Store) -> None:
    native_runs.refund(store)
    store.close()
    with forging.file(path) as connection:
        connection.execute("DELETE FROM segment WHERE id=(SELECT max(id) FROM segment)")
    with open_store(path) as opened:
        assert any("cut short" in problem.what for problem in verify(opened.run(RUN)).problems)


def test_positions_that_are_not_those_of_their_numbers_are_found(path: Path, store: Store) -> None:
    native_runs.refund(store)
    store.close()

    def moved(number: int, event: Event) -> Event:
        return msgspec.structs.replace(event, pos=event.pos + 5) if number > 6 else event

    with forging.file(path) as connection:
        forging.rewrite(connection, 1, moved)
    with open_store(path) as opened:
        assert any("another position" in problem.what for problem in verify(opened.run(RUN)).problems)


def test_lines_of_json_have_the_writes_of_tasks(path: Path, store: Store, lockstep: Callable[..., Any]) -> None:
    native_runs.refund(store)
    done: subprocess.CompletedProcess[str] = lockstep("export", "t-91", "--format", "jsonl", "--output", "-")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count('"kind":"WRITES"') == 7 and done.stdout.count('"kind":"STEP"') == 6
