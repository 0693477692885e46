"""Threads compared: by what their checkpoints hold, where ids of their own do not count, and how they ended."""

from pathlib import Path
from uuid import uuid4

import pytest
from tests.log import native_runs

import lockstep
from lockstep.log.model import Event, Kind, Status, Value
from lockstep.log.store import open_store


@pytest.fixture
def store(tmp_path: Path) -> str:
    path = str(tmp_path / "store.db")
    open_store(path, create=True).close()
    return path


def write(store: str, name: str, *, total: int = 452, error: str = "", steps: int = 3, message_id: str = "") -> None:
    """A thread whose second checkpoint has a total in it, with messages that have ids."""
    message_id = message_id or str(uuid4())
    with open_store(store) as opened:
        thread = native_runs.open_thread(opened, f"langgraph/{name}")
        turn = thread.turn()
        said: Value = native_runs.message("human", "hello", id=message_id)
        pos = thread.step(0, {"__start__": {"messages": ["hello"]}}, "input", "input")
        for number in range(1, steps):
            state: dict[str, Value] = {"messages": [said] * number, "branch:to:x": str(uuid4())}
            if number > 1:
                state["order"] = {"total": total}
            pos = state_step(thread, pos, state)
        failed: Value = {"name": "ValueError", "args": [error]}
        thread.end(turn, Status.ERROR if error else Status.OK, failed if error else None)


def state_step(thread: native_runs.Thread, of: int, state: dict[str, Value]) -> int:
    """A checkpoint whose key is another for each state, as without a canonical digest."""
    pos = thread.event(
        Kind.STEP, what="loop", name="agent", of=of, key=uuid4().bytes,
        body={"channels": {name: {"value": value} for name, value in state.items()}, "whole": True},
    )  # fmt: skip
    thread.states[pos] = state
    return pos


def test_ids_that_a_framework_gives_its_messages_do_not_count(store: str) -> None:
    write(store, "a")
    write(store, "b")
    found = lockstep.diff("a", "b", store=store)
    assert found.same and found.steps == (3, 3)
    assert [(left.what, left.path) for left in found.left_out] == [("id", "state.messages[].id")]


def test_ids_that_are_used_at_other_places_do_count(store: str) -> None:
    write(store, "a", message_id="11111111-1111-4111-8111-111111111111")
    with open_store(store) as opened:
        thread = native_runs.open_thread(opened, "langgraph/b")
        one, two = str(uuid4()), str(uuid4())
        pos = thread.step(0, {"__start__": 1}, "input", "input")
        pos = state_step(thread, pos, {"messages": [native_runs.message("human", "hello", id=one)]})
        both: list[Value] = [native_runs.message("human", "hello", id=name) for name in (one, two)]
        state_step(thread, pos, {"messages": both, "order": {"total": 452}})
    assert not lockstep.diff("a", "b", store=store).same


def test_a_difference_in_a_state_is_named_by_its_channel(store: str) -> None:
    write(store, "a")
    write(store, "b", total=450)
    found = lockstep.diff("a", "b", store=store)
    assert found.first is not None and len(found.differences) == 1
    assert (found.first.kind, found.first.address_a, found.first.path) == (
        "changed", "langgraph/a:2", "state.order.total",
    )  # fmt: skip
    assert (found.first.a, found.first.b, found.first.reason) == ("452", "450", "has another state")


def test_a_checkpoint_that_only_one_has_and_another_end_are_differences(store: str) -> None:
    write(store, "a")
    write(store, "b", steps=4, error="no such order")
    found = lockstep.diff("a", "b", store=store)
    assert [(one.kind, one.effect, one.address_b) for one in found.differences][:1] == [
        ("added", "step", "langgraph/b:3")
    ]
    ended = [one for one in found.differences if one.kind == "end"]
    assert [(one.path, one.b) for one in ended[0].changes] == [
        ("state", '"failed"'), ("error", '{"name": "ValueError", "args": ["no such order"]}'),
    ]  # fmt: skip


def test_a_branch_is_compared_with_what_it_left(store: str) -> None:
    write(store, "a")
    with open_store(store) as opened:
        fork = Event(Kind.FORK, -1, 0, "main", body={})
        reader = opened.run("langgraph/a")
        cut = [event.pos for _, event in reader.heads(reader.main) if event.kind is Kind.STEP][1]
        branch = native_runs.Thread(opened.fork_shared("langgraph/a", "fork", "main", cut, fork))
        state: dict[str, Value] = {"messages": ["edited"]}
        state_step(branch, cut, state)
    found = lockstep.diff("a", "langgraph/a@fork", store=store)
    assert found.first is not None
    assert (found.first.address_a, found.first.address_b) == ("langgraph/a:2", "langgraph/a@fork:2")
