"""States of native runs: stored as what changed since the parent, read back whole, and never taken at their word."""

import random
from typing import Any

import native_runs
import pytest

from lockstep.errors import Code, StoreError
from lockstep.log import checkpoints
from lockstep.log.checkpoints import States
from lockstep.log.model import Event, Kind, Value
from lockstep.log.store import Store


def test_a_list_that_got_an_item_is_said_by_the_item() -> None:
    assert checkpoints.record({"m": [1, 2], "x": 1}, {"m": [1, 2, 3], "x": 1}) == {
        "channels": {"m": {"keep": 2, "items": [3]}}
    }


def test_what_is_new_changed_and_gone_is_said_and_what_is_the_same_is_not() -> None:
    before: dict[str, Value] = {"same": {"a": [1]}, "changed": "x", "gone": 1, "cut": [1, 2, 3], "list": [1]}
    after: dict[str, Value] = {"same": {"a": [1]}, "changed": "y", "new": None, "cut": [1], "list": [2]}
    record = checkpoints.record(before, after)
    assert record == {
        "channels": {
            "changed": {"value": "y"}, "new": {"value": None}, "cut": {"keep": 1, "items": []}, "list": {"value": [2]},
        },
        "gone": ["gone"],
    }  # fmt: skip
    state = dict(before)
    checkpoints.apply(state, record)
    assert state == after


@pytest.mark.parametrize(("one", "other"), [(1, True), (1, 1.0), (0.0, -0.0), ("1", b"1"), ([1], [True]), ({}, [])])
def test_values_of_another_type_are_another_value(one: Value, other: Value) -> None:
    assert checkpoints.record({"x": one}, {"x": other})["channels"] == {"x": {"value": other}}
    assert checkpoints.record({"x": one}, {"x": one})["channels"] == {}


def test_a_number_that_is_none_is_the_same_as_itself() -> None:
    assert checkpoints.record({"x": float("nan")}, {"x": float("nan")})["channels"] == {}


@pytest.mark.parametrize("seed", range(10))
def test_whatever_states_follow_each_other_are_read_as_they_were(store: Store, seed: int) -> None:
    rng = random.Random(seed)
    thread = native_runs.open_thread(store)
    made: dict[int, dict[str, Value]] = {}
    state: dict[str, Value] = {"messages": []}
    pos = 0
    for number in range(60):
        state = dict(state)
        messages: Any = list(state["messages"])  # type: ignore[arg-type]
        match rng.randrange(5):
            case 0:
                messages = messages[: rng.randrange(len(messages) + 1)]
            case 1:
                state.pop("order", None)
            case 2:
                state["order"] = {"id": rng.randrange(3), "tags": [rng.random()]}
            case _:
                messages.append({"type": "human", "content": "word " * rng.randrange(30), "n": number})
        state["messages"] = messages
        pos = thread.step(pos, state)
        made[pos] = state
    reader = store.run(native_runs.RUN)
    states = States(reader)
    for at in rng.sample(sorted(made), 30):
        assert states.at(at) == made[at]


def test_a_whole_record_bounds_how_far_is_read(store: Store) -> None:
    thread = native_runs.open_thread(store)
    first = thread.step(0, {"n": 1, "m": [1]})
    thread.states.pop(first)
    second = thread.step(first, {"n": 2, "m": [1, 2]})  # its parent's state is not known, so it says all
    third = thread.step(second, {"n": 2, "m": [1, 2, 3]})
    assert checkpoints.is_whole(store.run(native_runs.RUN).body(thread.shared.stream, second - 1))
    assert States(store.run(native_runs.RUN)).at(third) == {"n": 2, "m": [1, 2, 3]}


def test_what_changed_from_one_to_the_next_is_told_by_name(store: Store) -> None:
    thread = native_runs.open_thread(store)
    first = thread.step(0, {"gone": 1, "list": [1], "same": "x", "text": "a"})
    second = thread.step(first, {"list": [1, 2], "same": "x", "text": "b", "new": None})
    changes = States(store.run(native_runs.RUN)).changes(second)
    assert [(one.name, one.was, one.there, one.before, one.after, one.kept) for one in changes] == [
        ("gone", True, False, 1, None, -1),
        ("list", True, True, [1], [1, 2], 1),
        ("new", False, True, None, None, -1),
        ("text", True, True, "a", "b", -1),
    ]


def test_a_branch_reads_the_states_that_it_shares_and_its_own(store: Store) -> None:
    thread = native_runs.open_thread(store)
    first = thread.step(0, {"m": [1]})
    second = thread.step(first, {"m": [1, 2]})
    third = thread.step(second, {"m": [1, 2, 3]})
    fork = Event(Kind.FORK, -1, 0, "main", body={"latest": True})
    branch = native_runs.Thread(store.fork_shared(native_runs.RUN, "fork", "main", second, fork), thread.states)
    other = branch.step(second, {"m": [1, 2, 9]})
    assert other == third + 1  # the FORK stands where the parent's third checkpoint does
    assert States(store.run(native_runs.RUN, "fork")).at(other) == {"m": [1, 2, 9]}
    assert States(store.run(native_runs.RUN)).at(third) == {"m": [1, 2, 3]}


@pytest.mark.parametrize(
    ("of", "body"),
    [
        (0, "no map"),
        (3, {"channels": {"m": {"keep": 5, "items": []}}}),
        (3, {"channels": {"m": {"keep": -1, "items": []}}}),
        (3, {"channels": {"m": {"other": 1}}}),
        (3, {"channels": {"m": "x"}}),
        (3, {"channels": []}),
        (4, {"channels": {}}),
        (9, {"channels": {}}),
        (1, {"channels": {}}),
    ],
)
def test_a_forged_record_is_damage_and_no_crash(store: Store, of: int, body: Value) -> None:
    thread = native_runs.open_thread(store)
    thread.step(0, {"m": [1]})
    pos = thread.event(Kind.STEP, what="loop", name="n", of=of, body=body)
    with pytest.raises(StoreError) as caught:
        States(store.run(native_runs.RUN)).at(pos)
    assert caught.value.code is Code.DAMAGED
