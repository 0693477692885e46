"""Processes that the standard library starts, and what they say to each other."""

from __future__ import annotations

from typing import Any

import pytest

METHODS = ("fork", "spawn", "forkserver")


def assert_replays(runs: Any, times: int) -> None:
    for _ in range(times):
        again = runs.replay()
        assert again["identical"], runs.said


@pytest.mark.parametrize("method", METHODS)
def test_queues_pipes_locks_and_looks_at_them_come_as_recorded(runs: Any, method: str) -> None:
    recorded = runs.record("meeting.py", method)
    assert recorded["exit"] == 0, runs.said
    assert not recorded["coverage"] or all(entry["how"] != "not covered" for entry in recorded["coverage"])
    printed = lines(runs.printed)
    assert sum("got" in line for line in printed) == 9
    assert_replays(runs, 3 if method == "fork" else 1)
    assert lines(runs.printed) == printed


@pytest.mark.parametrize("method", METHODS)
def test_pools_hand_out_the_same_work_and_take_answers_in_the_same_order(runs: Any, method: str) -> None:
    recorded = runs.record("pools.py", method)
    assert recorded["exit"] == 0, runs.said
    printed = lines(runs.printed)
    assert_replays(runs, 3 if method == "fork" else 1)
    assert lines(runs.printed) == printed


def test_threads_may_start_processes_side_by_side(runs: Any) -> None:
    recorded = runs.record("threads.py")
    assert recorded["exit"] == 0, runs.said
    printed = lines(runs.printed)
    assert_replays(runs, 2)
    assert lines(runs.printed) == printed


def test_a_model_that_children_ask_is_recorded_and_not_asked_again(runs: Any) -> None:
    recorded = runs.record("asking.py", "fork")
    assert recorded["counts"]["model"] == 4, runs.said
    asked = runs.provider.requests
    assert_replays(runs, 1)
    assert runs.provider.requests == asked


def test_the_steps_of_all_processes_are_one_list_with_their_lanes(runs: Any) -> None:
    runs.record("asking.py", "fork")
    steps = runs.log()
    assert [step["address"] for step in steps] == [f"r:{number}" for number in range(6)]
    assert {effect["lane"] for step in steps for effect in step["effects"]} == {
        "main", "main/child.1", "main/child.2", "main/child.2/child.1",
    }  # fmt: skip
    assert steps[4]["effects"][0]["lane"] == "main"
    shown = runs._json("show", "r:4", "--json")
    assert shown["request"]["body"]["messages"][0]["content"] == "sum up"
    own = runs._json("log", "r/child.2", "--json")["steps"]
    assert [step["kind"] for step in own] == ["input", "model", "end"]


def test_a_child_that_asks_something_else_is_the_difference(runs: Any) -> None:
    runs.record("asking.py", "fork")
    again = runs.replay("asking.py", "fork", "how many")
    assert not again["identical"]
    found = again["divergence"]
    assert found["code"] == "LS101"
    assert found["lane"].startswith("main/child.")
    assert (found["expected"], found["actual"][:8]) == (f'"how much of {found["expected"][-2]}"', '"how man')


def lines(printed: str) -> list[str]:
    """What the program printed: processes share a terminal in any order, and Lockstep speaks there too."""
    return sorted(line for line in printed.splitlines() if not line.startswith(("●", "  ", "✓", "✗")))
