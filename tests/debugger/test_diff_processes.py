"""Runs of several processes, and runs that were cut: compared from what is stored of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import lockstep
from lockstep.log.canonical import digest, key
from lockstep.log.model import Event, Kind, RunState, Status
from lockstep.log.store import open_store

type Call = tuple[int, int]  # order asked for and total answered


def events(lane: str, calls: Sequence[Call], *, parent: str = "", finish: bool = True) -> list[Event]:
    """The stream of one process that asks for orders."""
    found = [Event(Kind.LANE, 1, 0, parent, lane, lane), Event(Kind.START, 2, 0, lane, body={"argv": ["agent.py"]})]
    pos = 2
    for order, total in calls:
        request: Any = {"arguments": {"order": order}}
        body = {"request": request, "site": "agent.py:1 in main", "class": "read"}
        asked = key("tool", "get_order", {"arguments": request["arguments"]})
        found.append(Event(Kind.BEGIN, pos + 1, pos, lane, "tool", "get_order", key=asked, body=body))
        got = digest({"total": total})[:16]
        found.append(Event(Kind.END, pos + 2, pos, lane, Status.OK, of=pos + 1, key=got, body={"total": total}))
        pos += 2
    if finish:
        found.append(Event(Kind.FINISH, pos + 1, pos, lane, "complete", body={"end": {"exit": 0, "error": None}}))
    return found


def store(run: str, processes: dict[str, Sequence[Call]], *, finish: bool = True) -> None:
    with open_store(create=True) as opened:
        info = opened.create_run(run, {"command": ["python", "agent.py"]})
        for process, calls in processes.items():
            appender = opened.stream(info, process)
            parent = process.rpartition("/")[0]
            appender.append(events(process, calls, parent=parent, finish=finish))
            appender.close(RunState.COMPLETE if finish else None)


def test_a_difference_in_a_child_is_found_in_it() -> None:
    store("a", {"main": [(1, 10)], "main/python.1": [(5, 50), (6, 60)]})
    store("b", {"main": [(1, 10)], "main/python.1": [(5, 50), (6, 66)]})
    [entry] = lockstep.diff("a", "b").differences
    assert (entry.address_a, entry.address_b, entry.lane) == ("a/python.1:2", "b/python.1:2", "main/python.1")
    assert (entry.path, entry.a, entry.b) == ("answer.total", "60", "66")
    assert lockstep.diff("a/python.1", "b/python.1").differences == (entry,)
    assert lockstep.diff("a/main", "b/main").same
    assert lockstep.diff("a/python.1:2", "b/python.1:2").differences == (entry,)


def test_a_child_that_only_one_run_has_is_told_by_its_calls() -> None:
    store("a", {"main": [(1, 10)]})
    store("b", {"main": [(1, 10)], "main/python.1": [(5, 50)]})
    assert [(entry.kind, entry.address_b) for entry in lockstep.diff("a", "b").differences] == [
        ("added", "b/python.1:1")
    ]


def test_one_child_more_does_not_shift_the_others() -> None:
    store("a", {"main": [], "main/python.1": [(1, 1), (2, 2)], "main/python.2": [(3, 3), (4, 4)]})
    store(
        "b",
        {"main": [], "main/python.1": [(9, 9)], "main/python.2": [(1, 1), (2, 2)], "main/python.3": [(3, 3), (4, 5)]},
    )
    found = lockstep.diff("a", "b")
    assert [(entry.kind, entry.address_a, entry.address_b) for entry in found.differences] == [
        ("added", None, "b/python.1:1"),
        ("changed", "a/python.2:2", "b/python.3:2"),
    ]


def test_a_run_that_was_cut_ended_differently() -> None:
    store("a", {"main": [(1, 10), (2, 20)]})
    store("b", {"main": [(1, 10)]}, finish=False)
    found = lockstep.diff("a", "b")
    assert [(entry.kind, entry.address_a) for entry in found.differences] == [("removed", "a:2"), ("end", "a:3")]
    assert "state" in {change.path for change in found.differences[1].changes}


def test_what_could_not_be_stored_or_is_odd_is_compared_all_the_same() -> None:
    with open_store(create=True) as opened:
        for run, value in (("a", {"lockstep.unstorable": "a generator"}), ("b", float("nan")), ("c", float("nan"))):
            info = opened.create_run(run, {})
            appender = opened.stream(info, "main")
            body: Any = {"request": None}
            appender.append([
                Event(Kind.LANE, 1, 0, "", "main", "main"),
                Event(Kind.BEGIN, 2, 1, "main", "tool", "odd", key=b"k", body=body),
                Event(Kind.END, 3, 2, "main", Status.OK, of=2, key=run.encode(), body=value),
            ])  # fmt: skip
            appender.close(None)
    assert lockstep.diff("b", "c").same
    [entry] = lockstep.diff("a", "b").differences
    assert entry.path.startswith("answer")
